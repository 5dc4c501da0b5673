/**
 * Fires when the request has more tokens than a budget, whatever the context window. Tokens that no fold can remove (tools, system
 * text, protected content) may take three fifths of the target; tokens beyond that are added to trigger and target alike. So a fold
 * saves the same amount however large the fixed part is. The buffer covers counts that are too low: the trigger fires that many
 * tokens early. The gap between trigger and target is the hysteresis.
 */
import { wholeNumber } from './option-checks.ts';
import { isTooShortToCache, shortestCached, type Trigger } from './trigger.ts';

export type TokenBudgetOptions = {
  /** Tokens that count plus buffer may not exceed. Default 110,000. */
  readonly trigger?: number | undefined;
  /** Tokens to fold down to, below `trigger` minus `buffer`. Default 40,000. */
  readonly target?: number | undefined;
  /** Tokens by which the count may be too low. Default 1,000. */
  readonly buffer?: number | undefined;
};

/** Share of the target that is kept for foldable tokens. */
const foldableShare = 0.4;

/** Throws `bad-config` for options out of range. */
export function createTokenBudget(options: TokenBudgetOptions = {}): Trigger {
  const trigger = wholeNumber('tokenBudget.trigger', options.trigger ?? 110_000, { min: 2 });
  const buffer = wholeNumber('tokenBudget.buffer', options.buffer ?? 1_000, {
    min: 0,
    max: trigger - 2,
    why: 'less than tokenBudget.trigger',
  });
  const target = wholeNumber('tokenBudget.target', options.target ?? 40_000, {
    min: 1,
    max: trigger - buffer - 1,
    why: 'less than tokenBudget.trigger minus tokenBudget.buffer',
  });
  const name = 'token-budget';
  return {
    name,
    demand(state) {
      const { tokens, economy } = state;
      // The fixed part is counted only when it can change the decision.
      if (tokens + buffer <= trigger || isTooShortToCache(tokens, economy)) return undefined;
      const beyond = Math.max(0, Math.ceil((state.fixed ?? 0) - target * (1 - foldableShare)));
      if (tokens + buffer <= trigger + beyond) return undefined;
      const left = Math.max(target + beyond, shortestCached(economy));
      return { trigger: name, goal: { unit: 'tokens', target: left }, atMost: undefined, force: false };
    },
  };
}
