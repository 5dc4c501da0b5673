/**
 * Fires when the request is dearer than a fixed number of tokens, whatever the window. The buffer covers under-counting:
 * it fires that much before the count reaches `trigger`. The gap down to `target` is the hysteresis.
 */
import { wholeNumber } from './allowed.ts';
import type { Trigger } from './trigger.ts';

export type TokenBudgetOptions = {
  /** Tokens that count plus buffer may not exceed. Default 110,000. */
  readonly trigger?: number | undefined;
  /** Tokens to fold down to, below `trigger` minus `buffer`. Default 40,000. */
  readonly target?: number | undefined;
  /** Tokens by which the count may be too low. Default 1,000. */
  readonly buffer?: number | undefined;
};

/** Throws `bad-config` for options out of range. */
export function createTokenBudget(options: TokenBudgetOptions = {}): Trigger {
  const trigger = wholeNumber('tokenBudget.trigger', options.trigger ?? 110_000, { least: 2 });
  const buffer = wholeNumber('tokenBudget.buffer', options.buffer ?? 1_000, {
    least: 0,
    most: trigger - 2,
    why: 'less than tokenBudget.trigger',
  });
  const target = wholeNumber('tokenBudget.target', options.target ?? 40_000, {
    least: 1,
    most: trigger - buffer - 1,
    why: 'less than tokenBudget.trigger minus tokenBudget.buffer',
  });
  const name = 'token-budget';
  return {
    name,
    demand({ tokens }) {
      if (tokens + buffer <= trigger) return undefined;
      return { trigger: name, goal: { unit: 'tokens', target }, atMost: undefined, force: false };
    },
  };
}
