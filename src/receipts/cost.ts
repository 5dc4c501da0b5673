/**
 * Adds and compares the token usage of model calls, computes what a request cost, and estimates what it would have cost without Leporello. The
 * paid cost follows from the tokens that the provider reported and the price list; the rest is an estimate. Pure.
 */
import { type Caches, createCaches } from '../caches.ts';
import type { Usage } from '../conversation/conversation.ts';
import type { Price } from '../tokens/model-facts.ts';

/** Returns the tokens that a provider reported for the sent prompt; undefined if its report includes other tokens. */
export function sentPromptOf({ input, sentPrompt = input }: Usage): number | undefined {
  return sentPrompt === 'unknown' ? undefined : sentPrompt;
}

export const noUsage: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

export function addedUsage(one: Usage, other: Usage): Usage {
  return combined(one, other, (a, b) => a + b);
}

/** Returns the usage without `sentPrompt`, which only concerns rounds within one call. */
export function plainUsage(usage: Usage): Usage {
  return addedUsage(noUsage, usage);
}

/** Returns the difference of a running total and its `earlier` value. */
export function usageSince(earlier: Usage, total: Usage): Usage {
  return combined(total, earlier, (a, b) => a - b);
}

function combined(one: Usage, other: Usage, combine: (a: number, b: number) => number): Usage {
  const long = combine(one.cacheWriteLong ?? 0, other.cacheWriteLong ?? 0);
  return {
    input: combine(one.input, other.input),
    cacheRead: combine(one.cacheRead, other.cacheRead),
    cacheWrite: combine(one.cacheWrite, other.cacheWrite),
    ...(long === 0 ? {} : { cacheWriteLong: long }),
    output: combine(one.output, other.output),
  };
}

// Bills

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

/**
 * Returns the break-even point of a saving: how many extra requests for each 1,000 folded tokens cost as much as was saved. Undefined if nothing was
 * folded. It holds for the same trajectory only: nobody knows whether an agent that saw everything would have made the same requests.
 */
export function extraRequestsPer1000Tokens(saving: Saving): number | undefined {
  const { saved, tokensFolded, perRequest } = saving;
  if (tokensFolded <= 0 || perRequest <= 0) return undefined;
  return saved / perRequest / (tokensFolded / 1_000);
}

type Saving = {
  /** The cost without folds, minus the actual cost. */
  readonly saved: number;
  /** Tokens that folds took out, each once. */
  readonly tokensFolded: number;
  /** The cost of one more request, in the same unit: the mean of all. */
  readonly perRequest: number;
};

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
  /**
   * The break-even point: extra requests like this one, for each 1,000 tokens that it was sent without, that cost as much as it saved. 0 if it saved
   * nothing; undefined if it was sent with all its tokens.
   */
  readonly extraRequestsPer1000Tokens?: number | undefined;
};

/** Words the break-even point for people; empty for a request that saved nothing. */
export function breakEvenText({ extraRequestsPer1000Tokens: extra }: Money): string {
  return !extra ? '' : ` (break-even: ${extra} extra requests for each 1,000 folded tokens)`;
}

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
  const net = usd(untouched.total - paid.total);
  const { tokensBefore = 0, tokensAfter = 0 } = request.difference ?? {};
  const saving = {
    saved: Math.max(0, net),
    tokensFolded: tokensBefore - tokensAfter,
    perRequest: atOnce.total,
  };
  const extra = extraRequestsPer1000Tokens(saving);
  return {
    paid,
    recalls: usd(paid.total - atOnce.total),
    fold: foldPrice(request, priceOf),
    untouched,
    untouchedUsage,
    net,
    ...(extra !== undefined && { extraRequestsPer1000Tokens: Math.round(extra * 1e4) / 1e4 }),
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

// The baseline: an estimate of the tokens of a request if the client had sent it without Leporello, and of how many of them the
// provider would have read from its cache. The length follows the provider's own counts from request to request, so that errors
// of our counter affect only new messages. The cached part is as large as the previous baseline request, in the share that the
// provider really read. If the facts are unknown, the cheaper baseline is taken, so that reported savings are too low rather
// than too high. Pure.

/** An answered request. */
export type BilledRequest = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The usage that the provider reported for each round. */
  readonly rounds: readonly [Usage, ...Usage[]];
  /** Undefined if the request was sent unmodified. */
  readonly difference: Difference | undefined;
  readonly earlier: EarlierRequest | undefined;
  /** True if this request begins with all of the earlier one; false if the two only share a beginning. */
  readonly continues: boolean;
};

/** How the sent request differs from the client's. */
export type Difference = {
  /** Tokens of the client's request, by the counter without correction. */
  readonly counted: number;
  /** Tokens of the client's request and of the sent one, corrected by earlier reports. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** The number of edits, and of hidden recalls that were put back. */
  readonly edits: number;
  readonly hiddenRecalls: number;
  /** Cache breakpoints that were set for a client that sets none: without them nothing would have been cached. */
  readonly cacheMarks: number;
  /** Set if this request made a fold or added the recall tool: tokens of the sent request's unchanged prefix. */
  readonly tokensKept: number | undefined;
};

/** The facts about a request that the next request of its conversation needs. */
export type EarlierRequest = {
  readonly at: number;
  /** Tokens of the sent prompt and of the baseline prompt, as the provider counts. */
  readonly prompt: number;
  readonly baseline: number;
  /** From its `difference`. */
  readonly counted: number | undefined;
  readonly edits: number;
  readonly hiddenRecalls: number;
  /** True if the provider reported a cache read or write. */
  readonly cached: boolean;
  /** How long the provider keeps the cache, in milliseconds. */
  readonly lifetimeMs: number;
};

/** The shortest cache lifetime that providers promise; a provider with a longer one reports that with its cache writes. */
const defaultLifetimeMs = 5 * 60_000;
const longLifetimeMs = 60 * 60_000;

/** Estimates the usage that the provider would have reported for the baseline. Tokens not read are written in the same share as they really were. */
export function baselineUsageOf(request: BilledRequest): Usage {
  const [first] = request.rounds;
  const { input, couldBeRead } = baselinePromptOf(request);
  // The baseline is answered in one round.
  const { output } = request.rounds.at(-1)!;
  if (request.difference?.cacheMarks) return { ...noUsage, input, output };
  const unread = first.input - first.cacheRead;
  const written = (tokens: number) =>
    unread > 0 ? Math.round(((input - couldBeRead) * tokens) / unread) : 0;
  const cacheWriteLong = written(first.cacheWriteLong ?? 0);
  return {
    input,
    cacheRead: couldBeRead,
    cacheWrite: written(first.cacheWrite),
    ...(cacheWriteLong > 0 ? { cacheWriteLong } : {}),
    output,
  };
}

/** Estimates the tokens of the baseline prompt, and how many could have come from the cache with the same cache breakpoints. */
function baselinePromptOf(request: BilledRequest): {
  readonly input: number;
  readonly couldBeRead: number;
} {
  const input = Math.round(baselinePrompt(request));
  return { input, couldBeRead: Math.round(baselineRead(request, input)) };
}

/** Returns the facts about a request that the next one needs. */
export function earlierRequestOf(request: BilledRequest): EarlierRequest {
  const { at, rounds, difference, earlier } = request;
  const { cacheRead, cacheWrite, cacheWriteLong = 0 } = rounds.reduce(addedUsage, noUsage);
  return {
    at,
    prompt: rounds[0].input,
    baseline: baselinePrompt(request),
    counted: difference?.counted,
    edits: difference?.edits ?? 0,
    hiddenRecalls: difference?.hiddenRecalls ?? 0,
    cached: cacheRead + cacheWrite > 0,
    lifetimeMs: cacheWriteLong > 0 ? longLifetimeMs : (earlier?.lifetimeMs ?? defaultLifetimeMs),
  };
}

function baselinePrompt({ rounds: [{ input }], difference, earlier, continues }: BilledRequest): number {
  if (!difference) return input;
  const { counted, tokensBefore, tokensAfter, edits, hiddenRecalls, tokensKept } = difference;
  const saved = tokensBefore - tokensAfter;
  // Only the recall tool was added.
  if (edits === 0 && hiddenRecalls === 0) return Math.max(0, input + saved);
  if (earlier && continues) {
    const isSameFold =
      tokensKept === undefined && edits === earlier.edits && hiddenRecalls === earlier.hiddenRecalls;
    if (isSameFold) return Math.max(0, earlier.baseline + input - earlier.prompt);
    if (earlier.counted) return earlier.baseline * (counted / earlier.counted);
  }
  // A counter that overestimates must not inflate the savings.
  return Math.max(0, input + saved * Math.min(1, input / tokensAfter));
}

function baselineRead({ at, rounds, difference, earlier }: BilledRequest, prompt: number): number {
  const [{ input, cacheRead }] = rounds;
  const isFold = difference?.tokensKept !== undefined;
  if (!earlier) {
    // Everything that may have been read counts as read: only the tail is new, and for a fold its start is unknown.
    const tail = isFold ? 0 : input - cacheRead;
    return cacheRead > 0 ? Math.max(0, prompt - tail) : 0;
  }
  if (!isFold) {
    // The provider reports how much of the previous request it still had.
    const { prompt: sent, baseline } = earlier;
    const read = cacheRead < sent ? (cacheRead / sent) * baseline : baseline + cacheRead - sent;
    return Math.min(prompt, Math.max(0, read));
  }
  // After a fold, the reported cache read does not cover folded messages: the clock decides instead.
  const isWarm = at - earlier.at <= earlier.lifetimeMs && (cacheRead > 0 || earlier.cached);
  return Math.min(prompt, isWarm ? earlier.baseline : cacheRead);
}

/** Identifies a request's conversation and its place in it. */
type ConversationPosition = {
  readonly tenant: string;
  /** The prefix hashes, one per message. */
  readonly links: readonly string[];
  /** The prefix hash that all requests of the conversation share. */
  readonly beginning: string | undefined;
};

type FoundRequest = {
  readonly earlier: EarlierRequest | undefined;
  /** True if this request begins with the earlier one; false if they only share a beginning, for example after a client rewrote its history. */
  readonly continues: boolean;
};

interface EarlierRequests {
  /** Finds the newest request that this one continues, else the newest with the same beginning. */
  find(position: ConversationPosition): FoundRequest;
  /** Remembers a request for the next one. */
  note(position: ConversationPosition, request: EarlierRequest): void;
}

/** The number of newest messages that are looked up. A turn adds a few messages; a batch of parallel calls some dozens. */
const maxNewMessages = 200;

/**
 * Creates a memory of earlier requests, found by prefix hash as folds are, so that branches stay apart: by their last message, or by
 * their beginning. Kept in memory only.
 */
export function createEarlierRequests(caches: Caches = createCaches()): EarlierRequests {
  const byLast = caches<{ readonly tenant: string; readonly request: EarlierRequest }>('earlier requests');
  /** `shortest`: the links of the shortest request with this beginning. A request is dropped from `byLast` first. */
  const byBeginning = caches<{ readonly request: EarlierRequest; readonly shortest: number }>(
    'first requests',
  );
  return {
    find({ tenant, links, beginning }) {
      const alike = byBeginning.get(`${tenant} ${beginning}`);
      const oldest = Math.max((alike?.shortest ?? 1) - 1, links.length - maxNewMessages, 0);
      for (let at = links.length - 1; at >= oldest; at--) {
        const last = byLast.get(links[at]!);
        if (last?.tenant === tenant) return { earlier: last.request, continues: true };
      }
      return { earlier: alike?.request, continues: false };
    },
    note({ tenant, links, beginning }, request) {
      const last = links.at(-1);
      if (last !== undefined) byLast.set(last, { tenant, request });
      if (beginning === undefined) return;
      const name = `${tenant} ${beginning}`;
      const shortest = Math.min(byBeginning.peek(name)?.shortest ?? Infinity, links.length);
      byBeginning.set(name, { request, shortest });
    },
  };
}
