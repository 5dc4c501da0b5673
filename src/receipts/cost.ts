/**
 * Computes what a request cost, and estimates what it would have cost without Leporello. The paid cost follows from the tokens that the
 * provider reported and the price list; the rest is an estimate (see baseline-cost.ts). Pure.
 */
import { baselinePromptOf, baselineUsageOf, type BilledRequest } from './baseline-cost.ts';
import type { Price } from './prices.ts';
import type { Usage } from './usage.ts';

/** The cost of reported tokens by kind, in USD. */
export type Bill = {
  /** Cost of prompt tokens that were neither read from a cache nor written to one. */
  readonly uncached: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly total: number;
};

/** Returns the prices for a prompt of so many tokens; undefined if unknown. */
export type PriceOf = (promptTokens: number) => Price | undefined;

/** Computes the cost of a usage; undefined if the price is unknown, since unknown is not zero. */
export function billOf(priceOf: PriceOf, usage: Usage): Bill | undefined {
  const price = priceOf(usage.input);
  if (!price) return undefined;
  const { input, cacheRead, cacheWrite, cacheWriteLong = 0, output } = usage;
  return billed({
    uncached: Math.max(0, input - cacheRead - cacheWrite) * price.input,
    cacheRead: cacheRead * price.cacheRead,
    cacheWrite:
      (cacheWrite - cacheWriteLong) * price.cacheWrite +
      cacheWriteLong * (price.cacheWriteLong ?? price.cacheWrite),
    output: output * price.output,
  });
}

export const noBill: Bill = { uncached: 0, cacheRead: 0, cacheWrite: 0, output: 0, total: 0 };

export function addedBill(one: Bill, other: Bill): Bill {
  return {
    uncached: usd(one.uncached + other.uncached),
    cacheRead: usd(one.cacheRead + other.cacheRead),
    cacheWrite: usd(one.cacheWrite + other.cacheWrite),
    output: usd(one.output + other.output),
    total: usd(one.total + other.total),
  };
}

/** Rounds to a billionth of a dollar, so that sums show no rounding noise; a token of the cheapest models costs about ten billionths. */
export function usd(amount: number): number {
  // Adding zero turns a negative zero into zero.
  return Math.round(amount * 1e9) / 1e9 + 0;
}

/** Converts tokens times dollars per million tokens into dollars. */
function billed(items: Omit<Bill, 'total'>): Bill {
  const uncached = usd(items.uncached / 1e6);
  const cacheRead = usd(items.cacheRead / 1e6);
  const cacheWrite = usd(items.cacheWrite / 1e6);
  const output = usd(items.output / 1e6);
  return { uncached, cacheRead, cacheWrite, output, total: usd(uncached + cacheRead + cacheWrite + output) };
}

/** The cost of one request, in USD. */
export type Money = {
  /** The cost of all rounds, as the provider bills them. */
  readonly paid: Bill;
  /** The part of `paid` for recalls: the prompts of further rounds, and the output of all rounds but the last. */
  readonly recalls: number;
  /** The part of `paid` that this request's own fold added: tokens after the fold were sent again and not read from the cache. */
  readonly fold: number;
  /** Estimated cost of the request as the client sent it. */
  readonly untouched: Bill;
  readonly untouchedUsage: Usage;
  /** `untouched` minus `paid`: the savings. Negative if folding cost more. */
  readonly net: number;
};

/** Computes the cost of a request; undefined if the price is unknown. */
export function computeMoney(request: BilledRequest, priceOf: PriceOf): Money | undefined {
  const { rounds } = request;
  const [first] = rounds;
  const { output } = rounds.at(-1)!;
  const bills = rounds.map((round) => billOf(priceOf, round));
  const atOnce = billOf(priceOf, { ...first, output });
  const untouchedUsage = baselineUsageOf(request);
  const untouched = billOf(priceOf, untouchedUsage);
  if (!atOnce || !untouched || !bills.every((bill) => bill !== undefined)) return undefined;
  const paid = bills.reduce(addedBill);
  return {
    paid,
    recalls: usd(paid.total - atOnce.total),
    fold: foldPrice(request, priceOf),
    untouched,
    untouchedUsage,
    net: usd(untouched.total - paid.total),
  };
}

/** Estimates what the fold added: tokens that the cache would have held without it, at the difference of their price. */
function foldPrice(request: BilledRequest, priceOf: PriceOf): number {
  const {
    rounds: [first],
    difference,
  } = request;
  const price = priceOf(first.input);
  if (difference?.tokensKept === undefined || !price) return 0;
  const kept = (difference.tokensKept / Math.max(1, difference.tokensAfter)) * first.input;
  const unread = first.input - first.cacheRead;
  const { input, couldBeRead } = baselinePromptOf(request);
  const old = first.input - (input - couldBeRead);
  const rewritten = Math.min(unread, old - Math.max(kept, first.cacheRead));
  if (rewritten <= 0) return 0;
  const bill = billOf(priceOf, first)!;
  const paidPerToken = (bill.uncached + bill.cacheWrite) / unread;
  return usd(rewritten * (paidPerToken - price.cacheRead / 1e6));
}
