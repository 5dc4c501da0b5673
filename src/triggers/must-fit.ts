/**
 * Fires when the request and the tokens reserved for its reply do not fit the context window: the provider would refuse it. Needs
 * a known window. It asks for the same low mark as `window-fraction`, so that a forced fold is not followed by another one a turn
 * later.
 */
import { fraction } from './option-checks.ts';
import type { Trigger } from './trigger.ts';
import { defaultMark, lowMark, newestGoal } from './window-fraction.ts';

export type MustFitOptions = {
  /** Fraction of the window to fold down to. Default 0.5. */
  readonly target?: number | undefined;
  /** Fraction of the window above which the next turn would ask for a fold again: newest results are brought below it. Default 0.85. */
  readonly mark?: number | undefined;
};

/** When the reply's reserve leaves less than the target, the goal still frees a fifth of the remaining tokens. */
const maxShareOfRoom = 0.8;

/** Throws `bad-config` for options out of range. */
export function createMustFit(options: MustFitOptions = {}): Trigger {
  const target = fraction('mustFit.target', options.target ?? 0.5, { below: 1, why: 'of the window' });
  const mark = fraction('mustFit.mark', options.mark ?? defaultMark, { max: 1 });
  const name = 'must-fit';
  return {
    name,
    demand(state) {
      const { tokens, window, reserved } = state;
      if (window === undefined) return undefined;
      const atMost = Math.max(0, window - reserved);
      if (tokens <= atMost) return undefined;
      const high = Math.min(atMost, window * mark);
      const goal = lowMark(Math.min(window * target, atMost * maxShareOfRoom), high, state.fixed);
      const newest = newestGoal(Math.floor(high));
      return { trigger: name, goal: { unit: 'tokens', target: goal }, atMost, force: true, newest };
    },
  };
}
