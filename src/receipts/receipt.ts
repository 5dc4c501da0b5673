/**
 * Defines receipts. They report what happened to one request, or what a summary cost that a model wrote ahead of a fold. Data for users,
 * response headers and logs. Holds counts, names and ids, never content.
 */
import { type Bill, type Money, addedBill, billOf, addedUsage, noUsage } from './cost.ts';
import type { PriceList } from '../tokens/model-facts.ts';
import type { Usage } from '../conversation/conversation.ts';

/** The outcome of a request. */
export type Outcome =
  | { readonly status: 'untouched'; readonly reason: string }
  | { readonly status: 'compacted' }
  /** Observe mode: the request was sent unmodified; the report says what would have been sent. */
  | { readonly status: 'observed' }
  /** Leporello failed; the original request was sent. */
  | { readonly status: 'failed'; readonly reason: string };

/**
 * How the request was changed. Token counts are those of the named counter, corrected by earlier reports of the provider; byte counts are
 * of the whole body.
 */
export type FoldReport = {
  readonly model: string | undefined;
  readonly counter: string | undefined;
  readonly window: number | undefined;
  /** The trigger that demanded a new fold; undefined if none did. */
  readonly trigger: string | undefined;
  /** Set if a new fold was made: how far the trigger wanted to fold, and the tokens of messages that stayed in full, by the reason (`newest`, `in use` ...). */
  readonly goal?: { readonly unit: 'tokens' | 'messages'; readonly target: number } | undefined;
  readonly stayed?: Readonly<Record<string, number>> | undefined;
  /** Edits replayed from an earlier fold. */
  readonly replayed: number;
  /** Number of tool result texts that were made smaller on arrival. */
  readonly shrunk: number;
  /** Identifies the fold that was repeated. The recalls of all receipts with the same value are those of one fold. */
  readonly fold?: string | undefined;
  /** Number of hidden recalls that were put back. */
  readonly hiddenRecalls: number;
  readonly steps: readonly FoldStep[];
  /** Summaries and shortened lists that this request's own fold inserted, with their ratio and author. */
  readonly compressions: readonly Compression[];
  /** Ids of all originals that are folded in the sent request. */
  readonly memories: readonly string[];
  readonly tokensBefore: number | undefined;
  readonly tokensAfter: number | undefined;
  /**
   * Set if a new fold was made: the tokens of `tokensAfter` before its first edit, which is all that a provider's cache can still hold; 0 if
   * the recall tool was added with this request.
   */
  readonly tokensKept: number | undefined;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Number of cache breakpoints that were set because the client sets none. */
  readonly cacheMarks: number;
  /**
   * Index of the first message whose sent bytes changed since the previous request although the client's messages did not change and no
   * fold was made; 0 also if the recall tool was added or removed without a reason; undefined if nothing changed. Such a change is a bug:
   * it loses the provider's cache from there on.
   */
  readonly unstableFrom: number | undefined;
  /** New results whose lines a fold had taken: the agent ran a tool again instead of recalling. Undefined if there are none. */
  readonly fetchedAgain?: readonly FetchedAgainReport[];
  /** Why the request may still be too large, and which part is; undefined if it fits or the window is unknown. */
  readonly unfit: string | undefined;
  /** The arm of the experiment that the conversation is part of; undefined outside of experiments. */
  readonly experiment?: 'control' | 'folded' | undefined;
  /** With a shadow: the strategies whose edits were sent and left something out, joined by ` + `; empty if there were none. */
  readonly strategies?: string | undefined;
};

/** One result that was fetched again: its tokens, and the fold and the strategy that had taken its lines. */
export type FetchedAgainReport = {
  readonly fold: string;
  readonly strategy: string;
  readonly tokens: number;
};

export type FoldStep = {
  readonly strategy: string;
  readonly edits: number;
  readonly tokensSaved: number;
  /** The rule that forbade this step, if the step was undone. */
  readonly refused?: string;
};

/** One recall: the size of its answer, and the round of the request it happened in. */
export type RecallReport = { readonly round: number; readonly found: boolean; readonly tokens: number };

/** The prompt of the first round, before any recall: its tokens as counted and as reported by the provider. */
export type CountedPrompt = {
  /** By the counter without correction. */
  readonly counted: number;
  /** Corrected by earlier reports; triggers use this count. */
  readonly expected: number;
  readonly reported: number;
  /** The difference of `expected` and `reported`, in percent of `reported`, to one decimal. Negative if `expected` was too low. */
  readonly errorPercent: number;
};

/** The receipt of a request. */
export type Receipt = FoldReport & {
  /** Tells it from the receipts of summaries and shadows. Receipts of requests that earlier versions stored lack it. */
  readonly kind: 'request';
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly path: string;
  readonly outcome: Outcome;
  /** The client's session id; if it sends none, `begins:` and a digest of the start of the conversation. Groups receipts. */
  readonly session: string | undefined;
  /** HTTP status of the last upstream response; undefined if there was none. */
  readonly upstreamStatus: number | undefined;
  readonly recalls: readonly RecallReport[];
  /** How accurately the prompt was counted; undefined if it was not counted or no usage was reported. */
  readonly prompt: CountedPrompt | undefined;
  /** Tokens that the provider reported, over all rounds. With `cutOff`, those that it had reported until then. */
  readonly usage: Usage | undefined;
  /** The usage of each round: the first is the request, each further one follows a recall. Empty if any round lacks a report. */
  readonly rounds: readonly Usage[];
  /** The actual cost and the estimated cost without Leporello; undefined without usage or without a known price. */
  readonly money: Money | undefined;
  /** Set if the response did not reach its end: the client disconnected, or the provider did. The provider may bill more output than `usage` has. */
  readonly cutOff?: 'client left' | 'broke off' | undefined;
  /** Why the store failed, or why the response could not be completed; undefined if neither happened. */
  readonly problem: string | undefined;
  readonly ms: {
    /** From the received body to the sent request: the time that Leporello added. */
    readonly prepare: number;
    /** Until the response was sent completely. */
    readonly total: number;
  };
};

/** The receipt of a summary that a model wrote ahead of a fold, whether it was used or not. */
export type SummaryReceipt = {
  readonly kind: 'summary';
  readonly id: string;
  /** When it was started, in milliseconds since the epoch. */
  readonly at: number;
  readonly path: string;
  readonly outcome: { readonly status: 'written' } | { readonly status: 'failed'; readonly reason: string };
  /** As in the request's receipt. */
  readonly session: string | undefined;
  /** Id of the receipt of the request after which it was started. */
  readonly behind: string;
  /** The model that was asked; undefined if the URL names it. */
  readonly model: string | undefined;
  /** Number of calls of the model: a long transcript takes several. */
  readonly calls: number;
  readonly tokensBefore: number;
  /** Undefined if no summary was written. */
  readonly tokensAfter: number | undefined;
  /** Tokens that the provider reported over all calls; undefined if an answered call lacks a report. */
  readonly usage: Usage | undefined;
  /** Undefined without usage or without a known price. */
  readonly paid: Bill | undefined;
  readonly ms: number;
};

/** The receipt of a folded request that was sent again, to compare the replies. Its cost is no part of other costs. */
export type ShadowReceipt = Pick<
  SummaryReceipt,
  'id' | 'at' | 'path' | 'session' | 'behind' | 'model' | 'calls' | 'ms'
> & {
  readonly kind: 'shadow';
  readonly outcome: { readonly status: 'compared' } | { readonly status: 'failed'; readonly reason: string };
  /** The cost as the provider bills it; the most that it can be if a usage is not known. */
  readonly usd: number;
};

/** The usage of each answered call; undefined for a call without a report. */
export type CallUsage = readonly (Usage | undefined)[];

/** Computes usage and cost over calls, each at the price of its own prompt length. */
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

// Compressions in a receipt: tokens before and after, the ratio asked for and the ratio reached. They hold counts, names and ids,
// never content.

/** Part of a conversation that was compressed. */
export type Compression = {
  /** The id of what replaces it: a sub-goal, a phase, an overview or an original. */
  readonly id: string;
  /** The kind of content: `history` (a summary), `items` (a list), or `subgoal`, `phase`, `overview`. */
  readonly level: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** `tokensBefore` divided by `tokensAfter`. */
  readonly ratio: number;
  /** The ratio that was asked for; undefined if none was, as in a light merge. */
  readonly target: number | undefined;
  /** The writer of the text: the summarizer, the local extractive summarizer, both, or none (lines merged, not summarized). */
  readonly by: SummaryBy;
  /** `under`: the ratio is below 0.7 times the target, too little was saved. `over`: above 1.5 times, too much may be lost. */
  readonly warning: 'under' | 'over' | undefined;
  /** Why the summarizer's text was not used unchanged; undefined if it was, or if no summarizer was asked. */
  readonly problem: string | undefined;
  /** How many outcomes, findings, demands and artifacts (files) the text has of those that it replaces; undefined if that was not measured. */
  readonly kept?: KeptShare | undefined;
};

/** The shares that a text keeps, by kind. A ratio alone says nothing about quality. */
export type KeptShare = Readonly<
  Partial<
    Record<'outcomes' | 'findings' | 'demands' | 'artifacts', { readonly kept: number; readonly of: number }>
  >
>;

export type SummaryBy = 'summarizer' | 'extractive' | 'both' | 'merge';

/** Builds a compression: adds the ratio and the warning. */
export function compressionOf(made: Omit<Compression, 'ratio' | 'warning'>): Compression {
  const ratio = made.tokensBefore / Math.max(made.tokensAfter, 1);
  return { ...made, ratio, warning: warningOf(ratio, made.target) };
}

function warningOf(ratio: number, target: number | undefined): Compression['warning'] {
  if (target === undefined) return undefined;
  if (ratio < 0.7 * target) return 'under';
  return ratio > 1.5 * target ? 'over' : undefined;
}
