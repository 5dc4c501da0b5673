/**
 * What a summary by a model came to that was written ahead of a fold, used or not: data for users and sums. Holds counts, names and ids,
 * never content. Pure.
 */
import { addedBill, type Bill, billOf } from './bill.ts';
import type { PriceList } from './prices.ts';
import { addedUsage, noUsage, type Usage } from './usage.ts';

export type SummaryReceipt = {
  readonly kind: 'summary';
  readonly id: string;
  /** When it was begun: milliseconds since the epoch. */
  readonly at: number;
  readonly path: string;
  readonly outcome: { readonly status: 'written' } | { readonly status: 'failed'; readonly reason: string };
  /** As in the receipt of the request. */
  readonly session: string | undefined;
  /** The receipt of the request behind which it was begun. */
  readonly behind: string;
  /** The model that was asked; undefined where the URL named it. */
  readonly model: string | undefined;
  /** Calls of the model: a long transcript takes several. */
  readonly calls: number;
  readonly tokensBefore: number;
  /** Undefined where none was written. */
  readonly tokensAfter: number | undefined;
  /** As the provider reported it, over all calls; undefined where it did not, for one that it answered. */
  readonly usage: Usage | undefined;
  /** Undefined without usage, and where nobody knows the price. */
  readonly paid: Bill | undefined;
  readonly ms: number;
};

/** Usage of each call that was answered; undefined where one reported none. */
export type CallUsage = readonly (Usage | undefined)[];

/** Sums of calls, each at the price of its own prompt. */
export function costOf(
  calls: CallUsage,
  prices: PriceList,
  model: string | undefined,
): Pick<SummaryReceipt, 'usage' | 'paid'> {
  const known = calls.flatMap((usage) => usage ?? []);
  if (known.length === 0 || known.length < calls.length) return { usage: undefined, paid: undefined };
  const bills = known.map((usage) => billOf((promptTokens) => prices.priceOf(model, promptTokens), usage));
  return {
    usage: known.reduce(addedUsage, noUsage),
    paid: bills.every((bill) => bill !== undefined) ? bills.reduce(addedBill) : undefined,
  };
}
