/**
 * Implements two triggers that compare what a fold costs with what it saves, at the prices of the provider's cache: one while the cache is
 * warm, one after it has expired.
 */
import { checkSettings, numberFrom, object, wholeNumber } from '../checks.ts';
import type { EvictionCandidate, FoldOnly, KeepForRequests, RentLimit, Trigger } from './trigger.ts';
import { isTooShortToCache } from './limits.ts';

// Cache rent. The trigger fires when sending unused content again in each request has cost several times what it costs to fold it. An old
// result is read from the cache with every request: that is its rent. Removing it re-bills everything after it once: that is the price. A
// fold that is made when the rent paid reaches the price costs at most twice as much as the best decision in hindsight (ski rental, Karlin et
// al. 1988). The model recalls some of what was folded, and each recall reads the whole context once more; that is part of the price even
// when the provider does not cache.

export type CacheRentOptions = {
  /** Requests for which a result counts as used after it arrived; arguments of calls count as used twice as long. Default 4. */
  readonly keepForRequests?: number | undefined;
  /** Requests for which a whole step (a reply with its calls and results) counts as used. Default 14; 12 when nothing is cached. */
  readonly keepStepsForRequests?: number | undefined;
  /** Tokens that a fold must save. Default 2,000. */
  readonly minTokens?: number | undefined;
  /** The trigger fires when the rent is so many times the price: more than once, because some folded content is recalled. Default 6. */
  readonly minPayback?: number | undefined;
};

/** Requests for which `cacheRent` counts a result as used, unless it is set otherwise. */
export const usualKeepForRequests = 4;

/**
 * The highest write price at which `minPayback` was measured. The payback factor allows for recalls, and a recall does not cost more
 * when writing costs more (as it does for caches that keep for an hour). So the part of the price above this one counts once.
 */
const usualWrite = 1.25;

/**
 * Number of recalls that a fold causes (2.7 on recorded coding sessions); each reads the whole request once more. `minPayback` covers
 * them while tools and system text take no more than `usuallyAhead` tokens, where it was measured; tokens beyond that are added.
 */
const recallsPerFold = 3;
const usuallyAhead = 15_000;

/** Requests for which a reply to the user counts as used: the talk builds on it long after the steps that led to it. */
const keepRepliesForRequests = 70;

/**
 * How many times as long as results the arguments of edits count as used, and as other steps those that edit files, and those that only run commands or search.
 */
type TimesKept = { readonly editArguments: number; readonly edits: number; readonly commands: number };

type RentTerms = {
  /** Requests for which a step counts as used. */
  readonly steps: number;
  /** Requests for which recalled content counts as used: it already has an id, and needs no stub. */
  readonly recalls: number;
  /** The least price of a fold for each token after it, in tokens read: rewriting the cache may be free, a recall is not. */
  readonly minPrice: number;
  readonly timesKept: TimesKept;
  /** Share of the price of one recall that a candidate must have cost by itself: small ones are cheap to keep. */
  readonly shareOfRecall: { readonly texts: number; readonly recalls: number };
};

/** Returns for how many requests each kind of content counts as used, from those of results and of steps. */
function keptByKind(
  results: number,
  steps: number,
  times: TimesKept,
): Omit<KeepForRequests, 'recalls' | 'replies'> {
  return {
    results,
    arguments: 2 * results,
    editArguments: Math.round(times.editArguments * results),
    steps,
    edits: Math.round(times.edits * steps),
    commands: Math.round(times.commands * steps),
  };
}

/** No kind of step counts as used for longer than another. */
const alike: TimesKept = { editArguments: 2, edits: 1, commands: 1 };

/** With a cache, a candidate that is left out has to wait for the next fold, which has its own price: so everything idle is folded. */
const cached: RentTerms = {
  steps: 14,
  recalls: 14,
  minPrice: 3,
  // A later edit must quote what an edit wrote; from the output of a command or a search it quotes nothing.
  timesKept: { editArguments: 3, edits: 1.6, commands: 0.35 },
  shareOfRecall: { texts: 0.05, recalls: 0 },
};

/** Without a cache a fold can be made with any request, so each candidate is folded when it is due by itself. */
const uncached: RentTerms = {
  steps: 12,
  recalls: 3,
  minPrice: 2.512,
  timesKept: alike,
  shareOfRecall: { texts: 0.17, recalls: 0.06 },
};

/** Checks the options. */
export const cacheRentCheck = object<CacheRentOptions>({
  keepForRequests: wholeNumber(0),
  keepStepsForRequests: wholeNumber(0),
  minTokens: numberFrom(0),
  minPayback: numberFrom(0),
});

/** Folds old content when sending it again in each request has cost several times (minPayback) what a fold costs. Throws `bad-config` for options out of range. */
export function cacheRent(options: CacheRentOptions = {}): Trigger {
  checkSettings(cacheRentCheck, options, 'cacheRent');
  const results = options.keepForRequests ?? usualKeepForRequests;
  const { keepStepsForRequests, minTokens = 2_000, minPayback = 6 } = options;
  const name = 'cache-rent';
  return {
    name,
    demand({ tokens, economy }) {
      if (!economy || isTooShortToCache(tokens, economy)) return undefined;
      const { read, write, bringsTool, candidates, mayPay, ahead = 0, fetchedAgain } = economy;
      const terms = write > read ? cached : uncached;
      const usual = Math.min(write, usualWrite);
      const price = minPayback * Math.max(usual - read, terms.minPrice * read) + (write - usual);
      const keepForRequests = {
        ...keptByKind(results, keepStepsForRequests ?? terms.steps, terms.timesKept),
        recalls: terms.recalls,
        replies: keepRepliesForRequests,
      };
      // Tools and system text are not recalled, so the payback factor does not apply to them.
      const priceOfRecalls = recallsPerFold * read * Math.max(0, ahead - usuallyAhead);
      const pays = ({ rent, tokens: evicted, behind }: RentLimit) =>
        evicted >= minTokens && rent * read - priceOfRecalls >= price * behind;
      // Most conversations are too young to look for candidates.
      if (mayPay && !mayPay(keepForRequests, pays)) return undefined;
      const priceAhead = bringsTool ? Math.max(0, write - read) : 0;
      const gainOf = ({ rent, behind, tokens: evicted, texts, messages }: EvictionSums) => {
        // A step in which the agent fetches a result again reads the whole request once more.
        const stepsAgain =
          (texts && (fetchedAgain?.texts ?? 0)) + (messages && (fetchedAgain?.messages ?? 0));
        return (
          rent * read -
          priceOfRecalls -
          read * tokens * stepsAgain -
          price * behind -
          priceAhead * (tokens - evicted - behind)
        );
      };
      const idle = candidates(keepForRequests).filter((one) => hasCostEnough(one, terms, tokens));
      const best = bestRun(idle, minTokens, gainOf);
      if (!best || isTooShortToCache(tokens - best.tokens, economy)) return undefined;
      return {
        trigger: name,
        goal: { unit: 'tokens', target: tokens - best.tokens },
        atMost: undefined,
        force: false,
        only: onlyCandidates(best.candidates),
      };
    },
  };
}

/** True for a candidate that has cost enough by itself. `tokens` counts the whole request, which a recall reads once more. */
function hasCostEnough(one: EvictionCandidate, { shareOfRecall }: RentTerms, tokens: number): boolean {
  switch (one.evicts) {
    case 'message':
      return true;
    case 'texts':
      return one.tokens * one.requests >= shareOfRecall.texts * tokens;
    case 'recall':
      return one.exchange * one.requests >= shareOfRecall.recalls * tokens;
  }
}

type EvictionRun = { readonly tokens: number; readonly candidates: readonly EvictionCandidate[] };

/** The sums of a run of candidates; `texts` and `messages` are 1 if it evicts such content, else 0. */
type EvictionSums = {
  readonly rent: number;
  readonly tokens: number;
  readonly behind: number;
  readonly texts: number;
  readonly messages: number;
};

/** Returns all candidates from the message on that gains most by a fold; undefined when no message gains. */
function bestRun(
  candidates: readonly EvictionCandidate[],
  minTokens: number,
  gainOf: (run: EvictionSums) => number,
): EvictionRun | undefined {
  let best: { readonly gain: number; readonly from: number; readonly tokens: number } | undefined;
  let rent = 0;
  let tokens = 0;
  let texts = 0;
  let messages = 0;
  for (let from = candidates.length - 1; from >= 0; from--) {
    const one = candidates[from]!;
    rent += one.tokens * one.requests;
    tokens += one.tokens;
    if (one.evicts === 'texts') texts = 1;
    else if (one.evicts === 'message') messages = 1;
    const gain = gainOf({ rent, tokens, behind: one.behind - tokens, texts, messages });
    if (tokens >= minTokens && gain >= 0 && gain >= (best?.gain ?? 0)) best = { gain, from, tokens };
  }
  return best && { tokens: best.tokens, candidates: candidates.slice(best.from) };
}

/** Limits a fold to these candidates. */
function onlyCandidates(candidates: readonly EvictionCandidate[]): FoldOnly {
  const gone = new Set(candidates.flatMap(({ message, evicts }) => (evicts === 'texts' ? [] : [message])));
  const smaller = new Set(candidates.flatMap(({ message }) => (gone.has(message) ? [] : [message])));
  return { smaller, gone };
}

// Cold caches. The trigger fires when a conversation continues after its provider dropped it from the cache. The provider writes the whole
// prompt to its cache again in any case, so a fold costs nothing extra, and everything idle is folded at once. This trigger
// comes before `cache-rent`, which would fold only a part and would still subtract the price of rewriting the cache.

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
        ...keptByKind(results, steps, alike),
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
