/**
 * Converts a recorded conversation to the body of a request, and defines the prices of the replay. Recordings lack the system prompt and tools,
 * or have the small ones of a benchmark, so each gets tools and a filler that make a prefix of the same size.
 */
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { conversationCounter } from '../../tokens/count-conversation.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import type { PriceOverrides } from '../../tokens/model-facts.ts';
import type { CacheRates } from '../../replay/tally.ts';

/** Name of the model of conversations that were recorded without one. */
export const replayedModel = 'replayed';

/** A line of a file of conversations, in the format of Chat Completions. */
export type ConversationRecord = {
  readonly id: string;
  readonly source: string;
  readonly tools?: readonly unknown[];
  readonly messages: readonly RecordedMessage[];
};

export type RecordedMessage = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly function: { readonly name: string } }[];
};

/**
 * Returns the body, with tools of `prefixTokens` tokens, or more if the recorded ones are larger. `marks` are further fields of the last tool,
 * such as a cache mark.
 */
export function conversationBody(
  { messages, tools }: Pick<ConversationRecord, 'messages' | 'tools'>,
  prefixTokens: number,
  counter: TokenCounter,
  marks: object = {},
): Uint8Array {
  const offered = tools ?? namesIn(messages).map((name) => toolNamed(name));
  const bodyWith = (filler: number) => {
    const padded = [...offered, { ...toolNamed('filler', ' the'.repeat(filler)), ...marks }];
    return new TextEncoder().encode(JSON.stringify({ model: replayedModel, messages, tools: padded }));
  };
  // Starts at 1, because the first word of the filler forms a token with the quote in front of it.
  const missing = prefixTokens - preambleTokens(bodyWith(1), counter);
  return bodyWith(Math.max(0, missing + 1));
}

function preambleTokens(body: Uint8Array, counter: TokenCounter): number {
  const conversation = openaiChat.read(body, {
    digest: () => '',
    blocks: { get: () => undefined, set: () => undefined },
  });
  const counts = conversationCounter(counter);
  return conversation.preamble.reduce((sum, block) => sum + counts.block(conversation, block), 0);
}

function namesIn(messages: readonly RecordedMessage[]): readonly string[] {
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  return [...new Set(calls.map((call) => call.function.name))];
}

function toolNamed(name: string, description = ''): object {
  return { type: 'function', function: { name, description, parameters: { type: 'object' } } };
}

export const priceTables: Readonly<Record<PriceTable, CacheRates>> = {
  anthropic: { read: 0.1, write: 1.25, output: 5 },
  openai: { read: 0.1, write: 1, output: 8 },
  uncached: { read: 1, write: 1, output: 5 },
};

type PriceTable = 'anthropic' | 'openai' | 'uncached';

/** Price of a token that Anthropic caches for an hour. */
export const writtenForAnHour = 2;

/** Returns price overrides for engines, for the model of conversations that were recorded without one. */
export function pricesIn(table: PriceTable): PriceOverrides {
  const { read, write, output } = priceTables[table];
  const long = table === 'anthropic' ? { cacheWriteLong: writtenForAnHour } : {};
  return { [replayedModel]: { input: 1, cacheRead: read, cacheWrite: write, output, ...long } };
}
