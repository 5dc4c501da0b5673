/**
 * Fires when a request has more messages than `targetMessages + bufferMessages`, and asks for `targetMessages`: the buffer is the hysteresis. It counts
 * messages, not tokens, so it needs neither a context window nor a token counter.
 */
import { checkSettings, object, wholeNumber } from '../checks.ts';
import type { Trigger } from './trigger.ts';

export type MessageCountOptions = {
  /** Number of messages to fold down to. Default 20. */
  readonly targetMessages?: number | undefined;
  /** Number of messages allowed above the target before the trigger fires. Default 5. */
  readonly bufferMessages?: number | undefined;
};

/** Checks the options. */
export const messageCountCheck = object<MessageCountOptions>({
  targetMessages: wholeNumber(1),
  bufferMessages: wholeNumber(1),
});

/** Folds a request of more than a number of messages. Throws `bad-config` for options out of range. */
export function messageCount(options: MessageCountOptions = {}): Trigger {
  checkSettings(messageCountCheck, options, 'messageCount');
  const target = options.targetMessages ?? 20;
  const buffer = options.bufferMessages ?? 5;
  const name = 'message-count';
  return {
    name,
    demand({ messages }) {
      if (messages <= target + buffer) return undefined;
      return { trigger: name, goal: { unit: 'messages', target }, atMost: undefined, force: false };
    },
  };
}
