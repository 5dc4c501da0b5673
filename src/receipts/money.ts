/**
 * What one request cost, and what it would have cost untouched. What was paid follows from the tokens the provider reported and the
 * price list; all else is a reckoning, not a bill (untouched.ts says how). Pure.
 */
import { addedBill, type Bill, billOf, type PriceOf, usd } from './bill.ts';
import { type AnsweredRequest, untouchedPromptOf, untouchedUsageOf } from './baseline-cost.ts';
import type { Usage } from './usage.ts';

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
