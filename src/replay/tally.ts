/**
 * Counts what requests cost at a provider with a prompt cache, and adds up a replay, in tokens and counts. The longest beginning that a request
 * shares with the previous one is read from the cache, message by message, and the rest is written. Prices are applied later, so that one run
 * serves every price table.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';

/** Totals over the steps of one conversation, or of many. */
export type Tally = {
  readonly steps: number;
  /** All tokens sent and received, recalls included. */
  readonly tokens: Tokens;
  /** The part of `tokens` for recalls or repeated tool calls. */
  readonly forRecalls: Tokens;
  readonly contextSum: number;
  readonly contextPeak: number;
  /** The part of `contextSum` before the messages: tools and system text. */
  readonly fixedSum: number;
  /** Tokens that folds took out, each once. */
  readonly folded: number;
  /** Values in calls that occur in earlier messages; those not in the context; those not recovered. */
  readonly needs: number;
  readonly missing: number;
  readonly lost: number;
  /** Round trips to recover values. */
  readonly recalls: number;
  /** Requests that begin with all of the previous request. */
  readonly stable: number;
  readonly folds: number;
  /** Requests larger than the window. */
  readonly overWindow: number;
  /** Requests on which the engine failed, and requests that it reported as too large. */
  readonly failed: number;
  readonly unfit: number;
};

export type StepFigures = {
  readonly first: Billed;
  /** Tokens of tools and system text. */
  readonly fixedTokens: number;
  /** Tokens that a new fold took out. */
  readonly folded: number;
  /** The continuations. */
  readonly later: readonly Billed[];
  readonly replyTokens: number;
  /** The tokens of a further request that wrote a summary. */
  readonly forSummary: Tokens | undefined;
  readonly needs: number;
  readonly missing: number;
  readonly lost: number;
  readonly isOverWindow: boolean;
  readonly isFold: boolean;
  readonly isFailed: boolean;
  readonly isUnfit: boolean;
};

const noTokens: Tokens = { read: 0, written: 0, output: 0 };

export const noTally: Tally = {
  steps: 0,
  tokens: noTokens,
  forRecalls: noTokens,
  contextSum: 0,
  contextPeak: 0,
  fixedSum: 0,
  folded: 0,
  needs: 0,
  missing: 0,
  lost: 0,
  recalls: 0,
  stable: 0,
  folds: 0,
  overWindow: 0,
  failed: 0,
  unfit: 0,
};

/** Adds one step. `callTokens`: the output tokens of a reply that only recovers values. */
export function addStep(tally: Tally, step: StepFigures, callTokens: number): Tally {
  const { first, later } = step;
  const forRecalls = later.reduce(
    (sum, { read, written }) => sumOf(sum, { read, written, output: callTokens }),
    noTokens,
  );
  const own = { read: first.read, written: first.written, output: step.replyTokens };
  const largest = Math.max(first.context, ...later.map(({ context }) => context));
  return {
    steps: tally.steps + 1,
    tokens: [own, forRecalls, step.forSummary ?? noTokens].reduce(sumOf, tally.tokens),
    forRecalls: sumOf(tally.forRecalls, forRecalls),
    contextSum: tally.contextSum + first.context,
    contextPeak: Math.max(tally.contextPeak, largest),
    fixedSum: tally.fixedSum + step.fixedTokens,
    folded: tally.folded + step.folded,
    needs: tally.needs + step.needs,
    missing: tally.missing + step.missing,
    lost: tally.lost + step.lost,
    recalls: tally.recalls + later.length,
    stable: tally.stable + Number(first.isStable),
    folds: tally.folds + Number(step.isFold),
    overWindow: tally.overWindow + Number(step.isOverWindow),
    failed: tally.failed + Number(step.isFailed),
    unfit: tally.unfit + Number(step.isUnfit),
  };
}

export function addTally(one: Tally, other: Tally): Tally {
  return {
    steps: one.steps + other.steps,
    tokens: sumOf(one.tokens, other.tokens),
    forRecalls: sumOf(one.forRecalls, other.forRecalls),
    contextSum: one.contextSum + other.contextSum,
    contextPeak: Math.max(one.contextPeak, other.contextPeak),
    fixedSum: one.fixedSum + other.fixedSum,
    folded: one.folded + other.folded,
    needs: one.needs + other.needs,
    missing: one.missing + other.missing,
    lost: one.lost + other.lost,
    recalls: one.recalls + other.recalls,
    stable: one.stable + other.stable,
    folds: one.folds + other.folds,
    overWindow: one.overWindow + other.overWindow,
    failed: one.failed + other.failed,
    unfit: one.unfit + other.unfit,
  };
}

/** Tokens read from the cache, written to it, and output. */
export type Tokens = { readonly read: number; readonly written: number; readonly output: number };

/** Prices relative to an uncached input token. */
export type CacheRates = { readonly read: number; readonly write: number; readonly output: number };

export function costOf({ read, written, output }: Tokens, rates: CacheRates): number {
  return read * rates.read + written * rates.write + output * rates.output;
}

export function sumOf(one: Tokens, other: Tokens): Tokens {
  return {
    read: one.read + other.read,
    written: one.written + other.written,
    output: one.output + other.output,
  };
}

/** The tokens of one request. */
type Billed = {
  /** Tokens of the whole request. */
  readonly context: number;
  readonly read: number;
  readonly written: number;
  /** True if the request begins with all of the previous one, and for the first request. */
  readonly isStable: boolean;
};

/** Creates a function that bills the requests of one conversation in order. A cold request reads nothing from the cache. */
export function createBill(counter: ConversationCounter): (sent: Conversation, isCold?: boolean) => Billed {
  let before: readonly string[] = [];
  return function bill(sent, isCold = false) {
    const blocks = [...sent.preamble, ...sent.messages];
    const digests = blocks.map(({ digest }) => digest);
    const shared = commonLength(before, digests);
    const sizes = [
      ...sent.preamble.map((block) => counter.block(sent, block)),
      ...sent.messages.map(({ index }) => counter.message(sent, index)),
    ];
    const read = isCold ? 0 : total(sizes.slice(0, shared));
    const written = total(sizes) - read;
    const isStable = shared === before.length;
    before = digests;
    return { context: read + written, read, written, isStable };
  };
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0);
}
