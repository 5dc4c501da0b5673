/**
 * Counts what requests cost at a provider with a prompt cache: the longest beginning that a request shares with the previous one is read
 * from the cache, message by message, and the rest is written. Counts tokens only; prices are applied later, so that one run serves every
 * price table.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';

/** Tokens read from the cache, written to it, and output. */
export type Tokens = { readonly read: number; readonly written: number; readonly output: number };

/** Prices relative to an uncached input token. */
export type CacheRates = { readonly read: number; readonly write: number; readonly output: number };

export const noTokens: Tokens = { read: 0, written: 0, output: 0 };

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
export type Billed = {
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
    const read = isCold ? 0 : sum(sizes.slice(0, shared));
    const written = sum(sizes) - read;
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
