/**
 * Fires when the request takes more than a fraction of the window. Needs a known window; `reserved` plays no part here.
 * Fires above `trigger`, asks for `target`: the gap is the hysteresis.
 */
import { fraction } from './allowed.ts';
import { lowMark } from './low-mark.ts';
import { newestGoal } from './newest-goal.ts';
import type { Trigger } from './trigger.ts';

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
