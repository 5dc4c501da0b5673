/**
 * Fires when the request takes more than the fraction `triggerShare` of the context window, and asks for `targetShare`: the gap is the
 * hysteresis. Needs a known window; `reserved` plays no part here.
 */
import { checkSettings, fraction, object } from '../checks.ts';
import { checkBelow } from './option-checks.ts';
import type { Demand, Trigger } from './trigger.ts';

export type WindowFractionOptions = {
  /** Fraction of the window above which the trigger fires. Default 0.85. */
  readonly triggerShare?: number | undefined;
  /** Fraction of the window to fold down to, below `triggerShare`. Default 0.5. */
  readonly targetShare?: number | undefined;
};

/** Checks the options, each by itself. */
export const windowFractionCheck = object<WindowFractionOptions>({
  triggerShare: fraction(),
  targetShare: fraction(),
});

/** Share of the gap between trigger and target that a fold must save, or the next one would follow a few turns later. */
const minShareOfGap = 0.25;

/** Fraction of the window at which the trigger fires by default. */
export const defaultMark = 0.85;

/** Folds a request that takes more than a share of its window. Throws `bad-config` for options out of range. */
export function windowFraction(options: WindowFractionOptions = {}): Trigger {
  checkSettings(windowFractionCheck, options, 'windowFraction');
  const trigger = options.triggerShare ?? defaultMark;
  const target = options.targetShare ?? 0.5;
  checkBelow('windowFraction.targetShare', target, trigger, 'windowFraction.triggerShare');
  const name = 'window-fraction';
  return {
    name,
    demand(state) {
      const { tokens, window } = state;
      if (window === undefined || tokens <= window * trigger) return undefined;
      const [low, high] = [window * target, window * trigger];
      const left = lowMark(low, high, state.fixed);
      const goal = { unit: 'tokens', target: left } as const;
      const newest = newestGoal(Math.floor(high));
      const minimum = left > low && { minTokens: Math.floor((high - low) * minShareOfGap) };
      return { trigger: name, goal, atMost: undefined, force: false, newest, ...minimum };
    },
  };
}

/** Share of the foldable tokens below the high mark that a fold leaves in place: folding all of them causes recalls of most. */
const minShareLeft = 0.25;

/**
 * Returns the tokens to fold down to: `low`, or more when the `fixed` tokens leave too little to fold. A fold then asks for at most
 * three quarters of the tokens between `fixed` and `high`. All values are tokens.
 */
export function lowMark(low: number, high: number, fixed = 0): number {
  if (fixed >= high) return Math.floor(low);
  return Math.floor(Math.max(low, fixed + (high - fixed) * Math.min(minShareLeft, low / high)));
}

/** From 0.85 of a window to 0.8 of it: enough for the next tool result, without shrinking more of the newest results than necessary. */
const shareOfMark = 0.94;

/**
 * Returns how far the newest results are made smaller when folding history did not bring a request below a mark. `above` is the mark
 * in tokens.
 */
export function newestGoal(above: number): NonNullable<Demand['newest']> {
  return { above, target: Math.floor(above * shareOfMark) };
}
