/**
 * Fires when the request takes more than a fraction of the window. Needs a known window; `reserved` plays no part here.
 * Fires above `trigger`, asks for `target`: the gap is the hysteresis.
 */
import { fraction } from './option-checks.ts';
import type { Demand, Trigger } from './trigger.ts';

export type WindowFractionOptions = {
  /** Fraction of the window above which it fires. Default 0.85. */
  readonly trigger?: number | undefined;
  /** Fraction of the window to fold down to, below `trigger`. Default 0.5. */
  readonly target?: number | undefined;
};

/** Share of the gap between trigger and target that a fold must win, or the next one would follow a few turns later. */
const leastWon = 0.25;

/** Of the window. */
export const defaultMark = 0.85;

/** Throws `bad-config` for options out of range. */
export function createWindowFraction(options: WindowFractionOptions = {}): Trigger {
  const trigger = fraction('windowFraction.trigger', options.trigger ?? defaultMark, { most: 1 });
  const target = fraction('windowFraction.target', options.target ?? 0.5, {
    below: trigger,
    why: 'windowFraction.trigger',
  });
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
      const least = left > low && { least: Math.floor((high - low) * leastWon) };
      return { trigger: name, goal, atMost: undefined, force: false, newest, ...least };
    },
  };
}

/** Share of the foldable room below the high mark that a fold leaves at least: asking for all of it brings most of it back by recalls. */
const leastLeft = 0.25;

/**
 * Returns `low`, or more where too little of the request could be folded to come down to it: then at most three quarters are asked for of
 * what fits between the fixed tokens and `high`. Where everything is foldable it is `low`. All in tokens.
 */
export function lowMark(low: number, high: number, fixed = 0): number {
  if (fixed >= high) return Math.floor(low);
  return Math.floor(Math.max(low, fixed + (high - fixed) * Math.min(leastLeft, low / high)));
}

/** From .85 of a window to .8 of it: enough for what a tool answers next, and no more than must be of what was just asked for. */
const belowTheMark = 0.94;

/** `above`: the mark in tokens. */
export function newestGoal(above: number): NonNullable<Demand['newest']> {
  return { above, target: Math.floor(above * belowTheMark) };
}
