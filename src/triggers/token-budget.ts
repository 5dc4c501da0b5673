/**
 * Fires when the request has more tokens than a budget, whatever the context window. Tokens that no fold can remove (tools, system
 * text, protected content) may take three fifths of the target; tokens beyond that are added to trigger and target alike. So a fold
 * saves the same amount however large the fixed part is. The buffer covers counts that are too low: the trigger fires that many
 * tokens early. The gap between trigger and target is the hysteresis.
 */
import { checkSettings, object, wholeNumber } from '../checks.ts';
import { checkBelow } from './option-checks.ts';
import { isTooShortToCache, shortestCached, type Trigger } from './trigger.ts';

export type TokenBudgetOptions = {
  /** Tokens that count plus buffer may not exceed. Default 110,000. */
  readonly triggerTokens?: number | undefined;
  /** Tokens to fold down to, below `triggerTokens` minus `bufferTokens`. Default 40,000. */
  readonly targetTokens?: number | undefined;
  /** Tokens by which the count may be too low. Default 1,000. */
  readonly bufferTokens?: number | undefined;
};

/** Checks the options, each by itself. */
export const tokenBudgetCheck = object<TokenBudgetOptions>({
  triggerTokens: wholeNumber(2),
  targetTokens: wholeNumber(1),
  bufferTokens: wholeNumber(0),
});

/** Share of the target that is kept for foldable tokens. */
const foldableShare = 0.4;

/** Folds a request of more than a number of tokens, whatever its window is. Throws `bad-config` for options out of range. */
export function tokenBudget(options: TokenBudgetOptions = {}): Trigger {
  checkSettings(tokenBudgetCheck, options, 'tokenBudget');
  const trigger = options.triggerTokens ?? 110_000;
  const buffer = options.bufferTokens ?? 1_000;
  const target = options.targetTokens ?? 40_000;
  checkBelow('tokenBudget.bufferTokens', buffer, trigger - 1, 'tokenBudget.triggerTokens minus 1');
  checkBelow(
    'tokenBudget.targetTokens',
    target,
    trigger - buffer,
    'tokenBudget.triggerTokens minus tokenBudget.bufferTokens',
  );
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
