/** What one request went through: data for users, headers and logs. Holds counts, names and ids, never content. */
import type { Compression } from './compression.ts';
import { addedBill, billOf, type Bill, type Money } from './cost.ts';
import type { PriceList } from './prices.ts';
import { addedUsage, noUsage, type Usage } from './usage.ts';

export type Outcome =
  | { readonly status: 'untouched'; readonly reason: string }
  | { readonly status: 'compacted' }
  /** Nothing was changed; the report says what would have been sent. */
  | { readonly status: 'observed' }
  /** Something inside went wrong; the original bytes went out. */
  | { readonly status: 'failed'; readonly reason: string };

/**
 * How the request came to be what was sent. Tokens are those of the counter named, corrected by what the provider reported before;
 * bytes are of the whole body.
 */
export type FoldReport = {
  readonly model: string | undefined;
  readonly counter: string | undefined;
  readonly window: number | undefined;
  /** The trigger that asked for a new fold; undefined when none did. */
  readonly trigger: string | undefined;
  /** Edits replayed from an earlier fold. */
  readonly replayed: number;
  /** Texts of tool results that stand there smaller than they came. */
  readonly shrunk: number;
  /** Private recalls of earlier requests that were put back. */
  readonly hiddenRecalls: number;
  readonly steps: readonly FoldStep[];
  /** Summaries, and lists made shorter, that this request's own fold put in: how much smaller each is, and whose words it has. */
  readonly compressions: readonly Compression[];
  /** Ids of all that is folded in what was sent: each brings its original back. */
  readonly memories: readonly string[];
  readonly tokensBefore: number | undefined;
  readonly tokensAfter: number | undefined;
  /**
   * Where a new fold was made: of `tokensAfter`, those ahead of its first edit; 0 where the recall tool came with this request. A provider's
   * cache holds on to no more.
   */
  readonly tokensKept: number | undefined;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Marks for the provider's cache that were set, because the client sets none. */
  readonly cacheMarks: number;
  /**
   * The first message that was sent otherwise in the request before, though the client's own are the same and no fold was made; undefined
   * when all is as it was sent; 0 also where the recall tool came or went for no reason. Such a change is a fault, and costs what was
   * cached behind it.
   */
  readonly unstableFrom: number | undefined;
  /** Why the request may still be too large, naming what is; undefined when it fits or nobody knows the window. */
  readonly unfit: string | undefined;
};

export type FoldStep = {
  readonly strategy: string;
  readonly edits: number;
  readonly tokensSaved: number;
  /** Set when the step was given up, with the rule that forbade it. */
  readonly refused?: string;
};

/** One private recall: how large the answer was, and in which round of the request it came. */
export type RecallReport = { readonly round: number; readonly found: boolean; readonly tokens: number };

/** The prompt that was sent first, before anything was recalled: its tokens, and what the provider said of them. */
export type CountedPrompt = {
  /** By the counter alone. */
  readonly counted: number;
  /** Corrected by what was reported before: what triggers saw. */
  readonly expected: number;
  readonly reported: number;
  /** How far `expected` is from `reported`, in percent of that, to a tenth. Negative when it was too little. */
  readonly errorPercent: number;
};

export type Receipt = FoldReport & {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly path: string;
  readonly outcome: Outcome;
  /** The client's name of the session; where it sends none, `begins:` and a digest of how the conversation begins. Groups receipts. */
  readonly session: string | undefined;
  /** Status of the last upstream response; undefined when there was none. */
  readonly upstreamStatus: number | undefined;
  readonly recalls: readonly RecallReport[];
  /** How well its prompt was counted; undefined when it was not counted, or nothing was reported. */
  readonly prompt: CountedPrompt | undefined;
  /** Tokens as the provider reported them, over all rounds. */
  readonly usage: Usage | undefined;
  /** The same round by round: the first is the request, each further one goes on from recalls. Empty when one was not reported. */
  readonly rounds: readonly Usage[];
  /** What it cost, and would have cost untouched; undefined without usage, and where nobody knows the price. */
  readonly money: Money | undefined;
  /** Set when the response could not be completed. */
  readonly problem: string | undefined;
  readonly ms: {
    /** From the whole body received to the request sent: what Leporello added. */
    readonly prepare: number;
    /** Until the response was sent to the end. */
    readonly total: number;
  };
};

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
