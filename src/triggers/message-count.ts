/**
 * Fires when a request has more messages than `target + buffer`, and asks for `target`: the buffer is the hysteresis. It counts
 * messages, not tokens, so it needs neither a context window nor a token counter.
 */
import { wholeNumber } from './option-checks.ts';
import type { Trigger } from './trigger.ts';

export type MessageCountOptions = {
  /** Number of messages to fold down to. Default 20. */
  readonly target?: number | undefined;
  /** Number of messages allowed above the target before the trigger fires. Default 5. */
  readonly buffer?: number | undefined;
};

/** Throws `bad-config` for options out of range. */
export function createMessageCount(options: MessageCountOptions = {}): Trigger {
  const target = wholeNumber('messageCount.target', options.target ?? 20, { min: 1 });
  const buffer = wholeNumber('messageCount.buffer', options.buffer ?? 5, { min: 1 });
  const name = 'message-count';
  return {
    name,
    demand({ messages }) {
      if (messages <= target + buffer) return undefined;
      return { trigger: name, goal: { unit: 'messages', target }, atMost: undefined, force: false };
    },
  };
}
