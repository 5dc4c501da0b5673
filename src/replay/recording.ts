/**
 * Prepares a recorded conversation for replay: where the model replied, how long its replies are, and which values of earlier messages
 * each of its calls needed. All policies are measured against the same recording.
 */
import type { Codec, ToolCall } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { pairCalls, type Pair } from '../conversation/turns.ts';
import { sha256 } from '../store/encrypted-store.ts';
import { conversationCounter, type ConversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { argumentsOf, messageText, candidatesOf, placeOf, type Value } from './needs.ts';

/** A wire format as replay needs it: replay also writes calls that are not in the recording. */
export interface ReplayFormat {
  readonly codec: Codec;
  /** Returns a model turn with these calls and no text, as responses of this format contain it. */
  turn(calls: readonly ToolCall[]): Uint8Array;
  /** Returns the response turn that these messages of the model are from; undefined if it is unknown. */
  turnOf(messages: readonly Uint8Array[]): Uint8Array | undefined;
}

export type RecordingSource = {
  readonly id: string;
  /** Groups the figures. */
  readonly source: string;
  readonly format: ReplayFormat;
  /** A request body with the whole conversation. */
  readonly body: Uint8Array;
  /** Indices of model messages before which the provider's cache had expired. Default: none. */
  readonly coldAt?: ReadonlySet<number> | undefined;
};

export type Recording = Omit<RecordingSource, 'body' | 'coldAt'> & {
  readonly conversation: Conversation;
  readonly counter: ConversationCounter;
  readonly steps: readonly RecordedStep[];
  /** Calls with their results. */
  readonly pairs: readonly Pair[];
  /** The text of each message as the model reads it. */
  readonly texts: readonly string[];
};

/** One reply of the model. */
export type RecordedStep = {
  /** The request contains the messages before this index. */
  readonly at: number;
  /** Index after the reply's last message: some formats and clients split a reply into several messages. */
  readonly end: number;
  readonly replyTokens: number;
  readonly needs: readonly Need[];
  /** The provider's cache has expired. */
  readonly isCold: boolean;
};

/** A value that a call used, and the indices of earlier messages that contain it. */
export type Need = { readonly value: Value; readonly in: readonly number[] };

/** Reads a recording. Throws `not-this-format` for a body that the format's codec cannot read. */
export function readRecording(source: RecordingSource, tokens: TokenCounter): Recording {
  const { body, coldAt = new Set<number>(), ...rest } = source;
  const conversation = source.format.codec.read(body, { digest: sha256, blocks: new Map() });
  const counter = conversationCounter(tokens);
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

/**
 * Creates a search for values in texts. It returns the indices of the texts before `before` that contain the value, in order, and remembers
 * results: later calls use the same paths and names again and again.
 */
export function createOccurrences(
  texts: readonly string[],
): (value: Value, before: number) => readonly number[] {
  // One search in a long text is much faster than many searches in short ones; no value contains the separator.
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

/** Returns the index of the text at an offset of the joined text, searching from index `from`. */
function indexAt(starts: readonly number[], at: number, from: number): number {
  let low = from;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
