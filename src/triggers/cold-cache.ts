/**
 * Fires when a conversation comes back after its provider dropped it from the cache. Everything is written anew then, so folding costs nothing,
 * and all that is dead goes at once: what would be written, and read from then on, for nobody. It looks before `cache-rent`, which would
 * put up with a stretch of it and for which the price of writing anew still stands.
 */
import { numberFrom, wholeNumber } from './option-checks.ts';
import { isTooShortToCache, onlyDead, type Trigger } from './trigger.ts';

export type ColdCacheOptions = {
  /** Milliseconds without a request after which nothing is cached any more. Default: as long as the model's provider says, or the client. */
  readonly idleMs?: number | undefined;
  /** Requests for which a result counts as used after it came; the arguments of calls count as used twice as long. Default 8. */
  readonly usedFor?: number | undefined;
  /** Requests for which a whole step, a reply with its calls and results, counts as used. Default 20. */
  readonly stepsUsedFor?: number | undefined;
  /** Tokens a fold must take out at least. Default 2,000. */
  readonly least?: number | undefined;
};

/** Throws `bad-config` for options out of range. */
export function createColdCache(options: ColdCacheOptions = {}): Trigger {
  const idle = options.idleMs === undefined ? undefined : numberFrom('coldCache.idleMs', options.idleMs, 0);
  const results = wholeNumber('coldCache.usedFor', options.usedFor ?? 8, { least: 0 });
  const steps = wholeNumber('coldCache.stepsUsedFor', options.stepsUsedFor ?? 20, { least: 0 });
  const least = numberFrom('coldCache.least', options.least ?? 2_000, 0);
  const name = 'cold-cache';
  return {
    name,
    demand({ tokens, economy, idleMs }) {
      const kept = idle ?? economy?.keptMs;
      if (!economy || kept === undefined || idleMs === undefined || idleMs <= kept) return undefined;
      const dead = economy.dead({
        results,
        arguments: 2 * results,
        steps,
        recalls: results,
        replies: 4 * steps,
      });
      const saved = dead.reduce((sum, one) => sum + one.tokens, 0);
      if (dead.length === 0 || saved < least || isTooShortToCache(tokens - saved, economy)) return undefined;
      return {
        trigger: name,
        goal: { unit: 'tokens', target: tokens - saved },
        atMost: undefined,
        force: false,
        only: onlyDead(dead),
      };
    },
  };
}
