/**
 * What requests cost a provider with a prompt cache: of each request the longest beginning that it shares with the one sent before is
 * read from the cache, message by message, and the rest is written. Tokens only; prices come later, so that one run serves every table.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';

export type Tokens = { readonly read: number; readonly written: number; readonly output: number };

/** Prices relative to an input token that no cache holds. */
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

export type Billed = {
  /** Tokens of the request. */
  readonly context: number;
  readonly read: number;
  readonly written: number;
  /** Whether it begins with the whole of the one before. True for the first. */
  readonly isStable: boolean;
};

/** Bills the requests of one conversation, one after the other. Of a cold one nothing is read. */
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
