/**
 * What one request cost, and what it would have cost untouched. What was paid follows from the tokens the provider reported and the
 * price list. All else is a reckoning, not a bill: nobody sent the untouched request. It is taken to be longer by what was folded
 * away, to be answered at once with the words that came in the end, and to be read from the provider's cache as far as the
 * request before it went, in the share in which the provider read what was really sent. Where that cannot be known the cheaper
 * case for the untouched request is taken, so that what is told to be saved is rather too little. Pure.
 */
import { addedBill, type Bill, billOf, type PriceOf, usd } from './bill.ts';
import { addedUsage, noUsage, type Usage } from './usage.ts';

/** USD. */
export type Money = {
  /** All rounds, as they are billed. */
  readonly paid: Bill;
  /** Of `paid`, what came of private recalls: the prompts of further rounds, and the words of all rounds but the last. */
  readonly recalls: number;
  /** Of `paid`, what the fold of this very request made dearer: what stands behind it was not read from the cache but sent anew. */
  readonly fold: number;
  /** The request as the client sent it: reckoned. */
  readonly untouched: Bill;
  readonly untouchedUsage: Usage;
  /** `untouched` less `paid`: what was saved. Negative where it was dearer. */
  readonly net: number;
};

/** A request that was answered. */
export type AnsweredRequest = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What the provider reported, round by round; none of them unknown. */
  readonly rounds: readonly [Usage, ...Usage[]];
  /** By how many tokens what was sent is shorter than what came; negative when longer. 0 where it was sent as it came. */
  readonly tokensSaved: number;
  /** Set where a fold was made in this request: tokens of what was sent that stand ahead of its first edit. */
  readonly tokensKept: number | undefined;
  /** The request before in the same conversation; undefined where nobody knows of one. */
  readonly earlier: EarlierRequest | undefined;
};

/** What is remembered of a request for the next one of its conversation. */
export type EarlierRequest = {
  readonly at: number;
  /** Tokens of the prompt that was sent, and of the untouched one. */
  readonly prompt: number;
  readonly untouched: number;
  /** Whether the provider reported that it read from its cache, or wrote to it. */
  readonly cached: boolean;
  /** How long it keeps what is cached, in milliseconds. */
  readonly lifetimeMs: number;
};

/** The shortest that providers promise; those that promise more report it with what they write. */
const usualLifetimeMs = 5 * 60_000;
const longLifetimeMs = 60 * 60_000;

/** Undefined where nobody knows the price. */
export function reckonMoney(request: AnsweredRequest, priceOf: PriceOf): Money | undefined {
  const { rounds, tokensKept } = request;
  const [first] = rounds;
  const { output } = rounds.at(-1)!;
  const bills = rounds.map((round) => billOf(priceOf, round));
  const atOnce = billOf(priceOf, { ...first, output });
  const untouchedUsage = untouchedUsageOf(request);
  const untouched = billOf(priceOf, untouchedUsage);
  if (!atOnce || !untouched || !bills.every((bill) => bill !== undefined)) return undefined;
  const paid = bills.reduce(addedBill);
  return {
    paid,
    recalls: usd(paid.total - atOnce.total),
    fold: tokensKept === undefined ? 0 : foldPrice(request, tokensKept, untouchedUsage, priceOf),
    untouched,
    untouchedUsage,
    net: usd(untouched.total - paid.total),
  };
}

export function asEarlier(request: AnsweredRequest): EarlierRequest {
  const { at, rounds, earlier } = request;
  const { cacheRead, cacheWrite, cacheWriteLong = 0 } = rounds.reduce(addedUsage, noUsage);
  return {
    at,
    prompt: rounds[0].input,
    untouched: untouchedPrompt(request),
    cached: cacheRead + cacheWrite > 0,
    lifetimeMs: cacheWriteLong > 0 ? longLifetimeMs : (earlier?.lifetimeMs ?? usualLifetimeMs),
  };
}

/** What the provider would have reported for the untouched request; what it would not have read it would have written as it did. */
function untouchedUsageOf(request: AnsweredRequest): Usage {
  const [first] = request.rounds;
  const input = untouchedPrompt(request);
  const cacheRead = Math.round(untouchedRead(request, input));
  const unread = first.input - first.cacheRead;
  const written = (tokens: number) => (unread > 0 ? Math.round(((input - cacheRead) * tokens) / unread) : 0);
  const cacheWriteLong = written(first.cacheWriteLong ?? 0);
  return {
    input,
    cacheRead,
    cacheWrite: written(first.cacheWrite),
    ...(cacheWriteLong > 0 ? { cacheWriteLong } : {}),
    output: request.rounds.at(-1)!.output,
  };
}

/** By what the provider counted, so that what was sent as it came costs exactly what was paid for it. */
function untouchedPrompt({ rounds: [first], tokensSaved }: AnsweredRequest): number {
  return Math.max(0, first.input + tokensSaved);
}

/** How much of the untouched prompt would have come from the cache. */
function untouchedRead(request: AnsweredRequest, prompt: number): number {
  const { at, rounds, tokensKept, earlier } = request;
  const [{ input, cacheRead }] = rounds;
  const isFold = tokensKept !== undefined;
  if (!earlier) {
    // All that may have been read counts as read: the tail alone is new, and of a fold nobody can tell where that begins.
    const tail = isFold ? 0 : input - cacheRead;
    return cacheRead > 0 ? Math.max(0, prompt - tail) : 0;
  }
  if (!isFold) {
    // The provider says itself how much of the request before it still had.
    const { prompt: sent, untouched } = earlier;
    const read = cacheRead < sent ? (cacheRead / sent) * untouched : untouched + cacheRead - sent;
    return Math.min(prompt, Math.max(0, read));
  }
  // What it read says nothing of what the fold took away: the clock does.
  const isWarm = at - earlier.at <= earlier.lifetimeMs && (cacheRead > 0 || earlier.cached);
  return Math.min(prompt, isWarm ? earlier.untouched : cacheRead);
}

/** Tokens that would have been read without the fold, were sent all the same and were not read: at what they cost more. */
function foldPrice(
  { rounds: [first] }: AnsweredRequest,
  tokensKept: number,
  untouched: Usage,
  priceOf: PriceOf,
): number {
  const price = priceOf(first.input);
  const unread = first.input - first.cacheRead;
  const couldBeRead = first.input - (untouched.input - untouched.cacheRead);
  const rewritten = Math.min(unread, couldBeRead - Math.max(tokensKept, first.cacheRead));
  if (!price || rewritten <= 0) return 0;
  const bill = billOf(priceOf, first)!;
  const paidPerToken = (bill.uncached + bill.cacheWrite) / unread;
  return usd(rewritten * (paidPerToken - price.cacheRead / 1e6));
}
