/**
 * Fires when the request and the tokens reserved for its reply do not fit the context window: the provider would refuse it. Needs
 * a known window. It asks for the same low mark as `window-fraction`, so that a forced fold is not followed by another one a turn
 * later.
 */
import { checkSettings, fraction, object } from '../checks.ts';
import type { Trigger } from './trigger.ts';
import { defaultMark, lowMark, newestGoal } from './window-fraction.ts';

export type MustFitOptions = {
  /** Fraction of the window to fold down to. Default 0.5. */
  readonly targetShare?: number | undefined;
  /** Fraction of the window above which the next turn would ask for a fold again: newest results are brought below it. Default 0.85. */
  readonly markShare?: number | undefined;
};

/** Checks the options. */
export const mustFitCheck = object<MustFitOptions>({
  targetShare: fraction({ isWhole: false }),
  markShare: fraction(),
});

/** When the reply's reserve leaves less than the target, the goal still frees a fifth of the remaining tokens. */
const maxShareOfRoom = 0.8;

/**
 * Folds a request that would not fit its window together with the reply. Throws `bad-config` for options out of range.
 *
 * @example
 * const leporello = createLeporello({ triggers: [mustFit(), tokenBudget({ triggerTokens: 60_000, targetTokens: 25_000 })] });
 */
export function mustFit(options: MustFitOptions = {}): Trigger {
  checkSettings(mustFitCheck, options, 'mustFit');
  const target = options.targetShare ?? 0.5;
  const mark = options.markShare ?? defaultMark;
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
