/**
 * A recorded conversation made ready for being replayed: where the model replied, how long its replies are, and what each of its calls
 * needed from the messages before. All policies are measured against the same one.
 */
import type { Codec, ToolCall } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { pairCalls, type Pair } from '../conversation/pairing.ts';
import { sha256 } from '../store/digest.ts';
import { createConversationCounter, type ConversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { argumentsOf, messageText, candidatesOf, placeOf, type Value } from './needs.ts';

/** A wire format as replay needs it: calls that nobody recorded must be spelled, too. */
export interface ReplayFormat {
  readonly codec: Codec;
  /** A turn of the model that makes these calls and says nothing, as responses of this format hold it. */
  turn(calls: readonly ToolCall[]): Uint8Array;
  /** The turn that these messages of the model came from, as responses hold it; undefined where one cannot tell. */
  turnOf(messages: readonly Uint8Array[]): Uint8Array | undefined;
}

export type RecordingSource = {
  readonly id: string;
  /** Figures are told by it. */
  readonly source: string;
  readonly format: ReplayFormat;
  /** A request body with the whole conversation. */
  readonly body: Uint8Array;
  /** Messages of the model before which the provider had dropped the conversation from its cache. Default: none. */
  readonly coldAt?: ReadonlySet<number> | undefined;
};

export type Recording = Omit<RecordingSource, 'body' | 'coldAt'> & {
  readonly conversation: Conversation;
  readonly counter: ConversationCounter;
  readonly steps: readonly RecordedStep[];
  /** Calls with their results. */
  readonly pairs: readonly Pair[];
  /** What the model reads of each message. */
  readonly texts: readonly string[];
};

/** One reply of the model. */
export type RecordedStep = {
  /** The request holds the messages in front of this one. */
  readonly at: number;
  /** The message behind the reply: some formats and clients make several of one. */
  readonly end: number;
  readonly replyTokens: number;
  readonly needs: readonly Need[];
  /** Nothing of the request is cached any more. */
  readonly isCold: boolean;
};

/** A value that a call used, and the earlier messages that hold it. */
export type Need = { readonly value: Value; readonly in: readonly number[] };

/** Throws `not-this-format` for a body the format's codec does not read. */
export function readRecording(source: RecordingSource, tokens: TokenCounter): Recording {
  const { body, coldAt = new Set<number>(), ...rest } = source;
  const conversation = source.format.codec.read(body, { digest: sha256, outlines: new Map() });
  const counter = createConversationCounter({ counter: tokens, memo: new Map() });
  const texts = conversation.messages.map((message) => messageText(conversation, message));
  return {
    ...rest,
    conversation,
    counter,
    texts,
    pairs: pairCalls(conversation).pairs,
    steps: stepsOf(conversation, counter, texts, coldAt),
  };
}

function stepsOf(
  conversation: Conversation,
  counter: ConversationCounter,
  texts: readonly string[],
  coldAt: ReadonlySet<number>,
): readonly RecordedStep[] {
  const { messages } = conversation;
  const occurrences = createOccurrences(texts);
  return messages.flatMap(({ role, index: at }): readonly RecordedStep[] => {
    if (role !== 'assistant' || at === 0 || messages[at - 1]!.role === 'assistant') return [];
    let end = at;
    while (messages[end]?.role === 'assistant') end++;
    const reply = messages.slice(at, end);
    const replyTokens = reply.reduce((sum, message) => sum + counter.block(conversation, message), 0);
    const needs = reply.flatMap((message) =>
      message.parts.flatMap((part) =>
        part.type === 'tool-call'
          ? needsOf(argumentsOf(conversation.body, message, part.input), at, occurrences)
          : [],
      ),
    );
    const isCold = reply.some(({ index }) => coldAt.has(index));
    return [{ at, end, replyTokens, needs, isCold }];
  });
}

function needsOf(
  argumentsJson: string,
  at: number,
  occurrences: (value: Value, before: number) => readonly number[],
): readonly Need[] {
  const needOf = (value: Value): Need => ({ value, in: occurrences(value, at) });
  const needs = candidatesOf(argumentsJson).flatMap(({ value, within }) => {
    const whole = needOf(value);
    return whole.in.length > 0 ? [whole] : within.map(needOf).filter((need) => need.in.length > 0);
  });
  return [...new Map(needs.map((need) => [need.value.text, need])).values()];
}

/** Returns the indices of the texts before `before` that hold the value, in order. */
export function createOccurrences(
  texts: readonly string[],
): (value: Value, before: number) => readonly number[] {
  // One search through one long text is far quicker than many through short ones; the separator stands in no value.
  const joined = texts.join('\u0000');
  const starts: number[] = [];
  let start = 0;
  for (const text of texts) {
    starts.push(start);
    start += text.length + 1;
  }
  const known = new Map<string, readonly number[]>();

  function find(value: Value): readonly number[] {
    const found: number[] = [];
    let at = placeOf(joined, value, 0);
    let index = 0;
    while (at >= 0) {
      index = indexAt(starts, at, index);
      found.push(index);
      const next = starts[index + 1];
      at = next === undefined ? -1 : placeOf(joined, value, next);
    }
    return found;
  }

  return function occurrencesOf(value, before) {
    const key = `${value.kind} ${value.text}`;
    let found = known.get(key);
    if (found === undefined) known.set(key, (found = find(value)));
    return found.filter((index) => index < before);
  };
}

/** The text that holds a position of the joined text; none before `least` does. */
function indexAt(starts: readonly number[], at: number, least: number): number {
  let low = least;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
