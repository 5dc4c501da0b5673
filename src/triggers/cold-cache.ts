/**
 * Fires when a conversation continues after its provider dropped it from the cache. The provider writes the whole prompt to its
 * cache again in any case, so a fold costs nothing extra, and everything idle is folded at once. This trigger comes before
 * `cache-rent`, which would fold only a part and would still subtract the price of rewriting the cache.
 */
import { checkSettings, numberFrom, object, wholeNumber } from '../checks.ts';
import type { Trigger } from './trigger.ts';
import { onlyCandidates } from './cache-rent.ts';
import { isTooShortToCache } from './token-limits.ts';

export type ColdCacheOptions = {
  /**
   * Milliseconds without a request after which nothing is cached any more. Default: the time that the provider documents for the
   * model, or the one that the client asks for.
   */
  readonly idleMs?: number | undefined;
  /** Requests for which a result counts as used after it arrived; arguments of calls count as used twice as long. Default 8. */
  readonly keepForRequests?: number | undefined;
  /** Requests for which a whole step (a reply with its calls and results) counts as used. Default 20. */
  readonly keepStepsForRequests?: number | undefined;
  /** Tokens that a fold must save. Default 2,000. */
  readonly minTokens?: number | undefined;
};

/** Checks the options. */
export const coldCacheCheck = object<ColdCacheOptions>({
  idleMs: numberFrom(0),
  keepForRequests: wholeNumber(0),
  keepStepsForRequests: wholeNumber(0),
  minTokens: numberFrom(0),
});

/** Folds old content after a pause in which the provider dropped the conversation from its cache. Throws `bad-config` for options out of range. */
export function coldCache(options: ColdCacheOptions = {}): Trigger {
  checkSettings(coldCacheCheck, options, 'coldCache');
  const results = options.keepForRequests ?? 8;
  const steps = options.keepStepsForRequests ?? 20;
  const minTokens = options.minTokens ?? 2_000;
  const name = 'cold-cache';
  return {
    name,
    demand({ tokens, economy, idleMs }) {
      const kept = options.idleMs ?? economy?.keptMs;
      if (!economy || kept === undefined || idleMs === undefined || idleMs <= kept) return undefined;
      const candidates = economy.candidates({
        results,
        arguments: 2 * results,
        steps,
        recalls: results,
        replies: 4 * steps,
      });
      const saved = candidates.reduce((sum, one) => sum + one.tokens, 0);
      if (candidates.length === 0 || saved < minTokens || isTooShortToCache(tokens - saved, economy))
        return undefined;
      return {
        trigger: name,
        goal: { unit: 'tokens', target: tokens - saved },
        atMost: undefined,
        force: false,
        only: onlyCandidates(candidates),
      };
    },
  };
}
