/** What a provider takes for the tokens it reported, item by item. Pure. */
import { untouchedPromptOf, untouchedUsageOf, type AnsweredRequest } from './baseline-cost.ts';
import type { Price } from './prices.ts';
import type { Usage } from './usage.ts';

/** USD. */
export type Bill = {
  /** Prompt tokens that were neither read from a cache nor written to one. */
  readonly uncached: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly total: number;
};

/** The price of a prompt of so many tokens; undefined where nobody knows it. */
export type PriceOf = (promptTokens: number) => Price | undefined;

/** Undefined where the price is: what nobody knows is not nothing. */
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

/** To a billionth of a dollar: one token of the cheapest models costs some ten of them, and sums show no rounding noise. */
export function usd(amount: number): number {
  // Adding zero takes the sign off a negative zero.
  return Math.round(amount * 1e9) / 1e9 + 0;
}

/** From dollars per million tokens, times tokens. */
function billed(items: Omit<Bill, 'total'>): Bill {
  const uncached = usd(items.uncached / 1e6);
  const cacheRead = usd(items.cacheRead / 1e6);
  const cacheWrite = usd(items.cacheWrite / 1e6);
  const output = usd(items.output / 1e6);
  return { uncached, cacheRead, cacheWrite, output, total: usd(uncached + cacheRead + cacheWrite + output) };
}

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

/** Undefined where nobody knows the price. */
export function reckonMoney(request: AnsweredRequest, priceOf: PriceOf): Money | undefined {
  const { rounds } = request;
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
    fold: foldPrice(request, priceOf),
    untouched,
    untouchedUsage,
    net: usd(untouched.total - paid.total),
  };
}

/** Tokens that would have been read without the fold, were sent all the same and were not read: at what they cost more. */
function foldPrice(request: AnsweredRequest, priceOf: PriceOf): number {
  const {
    rounds: [first],
    difference,
  } = request;
  const price = priceOf(first.input);
  if (difference?.tokensKept === undefined || !price) return 0;
  const kept = (difference.tokensKept / Math.max(1, difference.tokensAfter)) * first.input;
  const unread = first.input - first.cacheRead;
  const { input, couldBeRead } = untouchedPromptOf(request);
  const old = first.input - (input - couldBeRead);
  const rewritten = Math.min(unread, old - Math.max(kept, first.cacheRead));
  if (rewritten <= 0) return 0;
  const bill = billOf(priceOf, first)!;
  const paidPerToken = (bill.uncached + bill.cacheWrite) / unread;
  return usd(rewritten * (paidPerToken - price.cacheRead / 1e6));
}
