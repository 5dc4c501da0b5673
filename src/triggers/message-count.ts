/**
 * Fires when a request has more messages than wanted. Counts messages, not tokens, so it needs neither window nor counter.
 * The buffer is the hysteresis: it fires above `target + buffer` and asks for `target`.
 */
import { wholeNumber } from './option-checks.ts';
import type { Trigger } from './trigger.ts';

export type MessageCountOptions = {
  /** Messages to fold down to. Default 20. */
  readonly target?: number | undefined;
  /** Messages above the target that are put up with before it fires. Default 5. */
  readonly buffer?: number | undefined;
};

/** Throws `bad-config` for options out of range. */
export function createMessageCount(options: MessageCountOptions = {}): Trigger {
  const target = wholeNumber('messageCount.target', options.target ?? 20, { least: 1 });
  const buffer = wholeNumber('messageCount.buffer', options.buffer ?? 5, { least: 1 });
  const name = 'message-count';
  return {
    name,
    demand({ messages }) {
      if (messages <= target + buffer) return undefined;
      return { trigger: name, goal: { unit: 'messages', target }, atMost: undefined, force: false };
    },
  };
}
