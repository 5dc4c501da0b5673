/**
 * Fires when what nobody uses any more has cost as much rent as it costs to be rid of it. An old result is read from the cache with every
 * request: that is its rent. Taking it out re-bills everything behind it once: that is the price. Folding when the rent paid reaches the
 * price costs at most twice what the best decision in hindsight would have cost (ski rental, Karlin et al. 1988). Some of what goes is
 * asked for again, which is a price too, also where nothing is cached: a round trip that reads the whole context once more.
 */
import { numberFrom, wholeNumber } from './option-checks.ts';
import { type Dead, isTooShortToCache, onlyDead, type Trigger } from './trigger.ts';

export type CacheRentOptions = {
  /** Requests for which a result counts as used after it came; the arguments of calls count as used twice as long. Default 4. */
  readonly usedFor?: number | undefined;
  /** Requests for which a whole step, a reply with its calls and results, counts as used. Default 14, and 12 where nothing is cached. */
  readonly stepsUsedFor?: number | undefined;
  /** Tokens a fold must take out at least. Default 2,000. */
  readonly least?: number | undefined;
  /** How many times the price the rent must reach: more than once, for some of what goes will be asked for again. Default 9. */
  readonly patience?: number | undefined;
};

/**
 * The dearest price of writing at which `patience` was measured. It is there for what will be asked for again, and that costs no more where
 * writing costs more, as it does for caches that keep for an hour: so what is beyond this price counts once.
 */
const usualWrite = 1.25;

/**
 * A fold brings so many recalls (2.7 on recorded coding sessions, whatever stands ahead), and each reads the whole request once more.
 * `patience` covers that as far as tools and system text are no longer than where it was measured; what they have beyond that comes on top.
 */
const recallsAFold = 3;
const usuallyAhead = 15_000;

/** Requests for which what the model told the user counts as used: it is what their talk goes on from, long after the steps that led there. */
const repliesUsedFor = 70;

type Terms = {
  /** Requests for which a step counts as used. */
  readonly steps: number;
  /** Requests for which what was recalled counts as used: it has its id already, and needs no stub. */
  readonly recalls: number;
  /** What a fold costs at least for each token behind it, as so many tokens read: writing anew may be free, asking again is not. */
  readonly leastPrice: number;
  /** They must have cost by themselves this share of a round trip that would bring them back: small ones are cheap to keep. */
  readonly shareOfRecall: { readonly texts: number; readonly recalls: number };
};

/** What is put off waits for the next fold, and that one has its price: so all goes that is due. */
const cached: Terms = { steps: 14, recalls: 14, leastPrice: 3, shareOfRecall: { texts: 0.05, recalls: 0 } };

/** A fold can be made with any request, so each thing goes when it is due by itself. */
const uncached: Terms = {
  steps: 12,
  recalls: 3,
  leastPrice: 2.15,
  shareOfRecall: { texts: 0.17, recalls: 0.06 },
};

/** Throws `bad-config` for options out of range. */
export function createCacheRent(options: CacheRentOptions = {}): Trigger {
  const results = wholeNumber('cacheRent.usedFor', options.usedFor ?? 4, { least: 0 });
  const { stepsUsedFor } = options;
  if (stepsUsedFor !== undefined) wholeNumber('cacheRent.stepsUsedFor', stepsUsedFor, { least: 0 });
  const least = numberFrom('cacheRent.least', options.least ?? 2_000, 0);
  const patience = numberFrom('cacheRent.patience', options.patience ?? 9, 0);
  const name = 'cache-rent';
  return {
    name,
    demand({ tokens, economy }) {
      if (!economy || isTooShortToCache(tokens, economy)) return undefined;
      const { read, write, bringsTool, dead, ahead = 0 } = economy;
      const terms = write > read ? cached : uncached;
      const usual = Math.min(write, usualWrite);
      const price = patience * Math.max(usual - read, terms.leastPrice * read) + (write - usual);
      // What stands ahead is not asked for again, so patience has no part in it.
      const priceOfRecalls = recallsAFold * read * Math.max(0, ahead - usuallyAhead);
      const priceAhead = bringsTool ? Math.max(0, write - read) : 0;
      const best = bestStretch(
        dead({
          results,
          arguments: 2 * results,
          steps: stepsUsedFor ?? terms.steps,
          recalls: terms.recalls,
          replies: repliesUsedFor,
        }).filter((one) => hasCostEnough(one, terms, tokens)),
        least,
        (rent, behind, gone) =>
          rent * read - priceOfRecalls - price * behind - priceAhead * (tokens - gone - behind),
      );
      if (!best || isTooShortToCache(tokens - best.tokens, economy)) return undefined;
      return {
        trigger: name,
        goal: { unit: 'tokens', target: tokens - best.tokens },
        atMost: undefined,
        force: false,
        only: onlyDead(best.dead),
      };
    },
  };
}

/** `tokens`: of the whole request, which a recall reads once more. */
function hasCostEnough(dead: Dead, { shareOfRecall }: Terms, tokens: number): boolean {
  switch (dead.goes) {
    case 'message':
      return true;
    case 'texts':
      return dead.tokens * dead.requests >= shareOfRecall.texts * tokens;
    case 'recall':
      return dead.exchange * dead.requests >= shareOfRecall.recalls * tokens;
  }
}

type EvictionRun = { readonly tokens: number; readonly dead: readonly Dead[] };

/** Of all that is dead from some message on, the stretch that gains most; undefined when none gains. */
function bestStretch(
  dead: readonly Dead[],
  least: number,
  gainOf: (rent: number, behind: number, gone: number) => number,
): EvictionRun | undefined {
  let best: { readonly gain: number; readonly from: number; readonly tokens: number } | undefined;
  let rent = 0;
  let tokens = 0;
  for (let from = dead.length - 1; from >= 0; from--) {
    const one = dead[from]!;
    rent += one.tokens * one.requests;
    tokens += one.tokens;
    const gain = gainOf(rent, one.behind - tokens, tokens);
    if (tokens >= least && gain >= 0 && gain >= (best?.gain ?? 0)) best = { gain, from, tokens };
  }
  return best && { tokens: best.tokens, dead: dead.slice(best.from) };
}
