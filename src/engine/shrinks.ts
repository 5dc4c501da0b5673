/**
 * What is made smaller at birth: every result of a tool, from the first request on in which it stands, so that nothing that was sent is
 * ever rewritten but by folds. A pure function of the conversation and of what is folded in it; nothing needs to be kept to do it again.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import { type Conversation, type Message, type Part, inputOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, type PartPlace, pairCalls, placeKey } from '../conversation/pairing.ts';
import { lastAssistant } from '../conversation/turns.ts';
import { type ArrivedText, type Repeats, type Shrink, withReferences } from './references.ts';
import type { Slices } from '../codecs/slices.ts';
import type { Fold } from '../store/fold-records.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import { callLabel } from '../strategies/lib/tool-calls.ts';
import { type ShrinkSettings, type ToolResultPart, shrinkResult } from '../strategies/shrink-results.ts';
import type { Protection } from '../strategies/strategy.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';

export type Shrinking = {
  readonly settings: ShrinkSettings;
  /** Index of the first message whose results may be made smaller. */
  readonly from: number;
  /** Whether the provider checks that what was sent once stays, so that `from` must be remembered. */
  readonly isBound: boolean;
  /** What was referred to in this conversation before; undefined where nothing is. */
  readonly repeats: Repeats | undefined;
  /** Whose conversation it is: ids of originals are theirs. */
  readonly tenant: string;
};

/** What edits at birth are made from. */
export type ShrinkInput = {
  readonly codec: Codec;
  readonly conversation: Conversation;
  readonly counter: ConversationCounter;
  readonly protects: Protection;
  readonly idOf: (original: Uint8Array) => string;
  readonly recallTool: RecallTool | undefined;
  /** Undefined where nothing is made smaller. */
  readonly shrinking: Shrinking | undefined;
  /** Lets other requests run between two steps. Default: nothing is paused. */
  readonly slices?: Slices | undefined;
};

export type ShrinkRequest = {
  readonly codec: Codec;
  readonly tenant: string;
  /** Undefined where nothing is to be made smaller. */
  readonly settings: ShrinkSettings | undefined;
  readonly repeats: Repeats | undefined;
};

/**
 * How to make results smaller in this conversation, after what was remembered of it. One that its provider wants as it came is left
 * alone; one that began elsewhere and holds replies bound to their prefix is made smaller from here on.
 */
export function shrinkingOf(
  { codec, tenant, settings, repeats }: ShrinkRequest,
  conversation: Conversation,
  fold: Pick<Fold, 'foldingDisabled' | 'shrinksFrom'> | undefined,
): Shrinking | undefined {
  if (!settings || fold?.foldingDisabled) return undefined;
  const isBound = conversation.toolNames.length > 0 && codec.rules.bindsPrefix(conversation);
  const isSealed = isBound && conversation.messages.some(({ parts }) => parts.some(isReasoning));
  const unsent = (lastAssistant(conversation) ?? -1) + 1;
  return { settings, from: fold?.shrinksFrom ?? (isSealed ? unsent : 0), isBound, repeats, tenant };
}

function isReasoning({ type }: Part): boolean {
  return type === 'reasoning';
}

/**
 * Edits beside those of the fold; a place that the fold has touched is the fold's. `references: false`: with what only refers to other
 * results laid out as if these were gone.
 */
export function shrinksOf(
  input: ShrinkInput,
  fold: readonly Edit[],
  { references = true }: { readonly references?: boolean } = {},
): readonly Shrink[] {
  const { shrinking, conversation, counter } = input;
  if (!shrinking) return [];
  const gone = placesEdited(fold);
  const way = wayOf(input, shrinking);
  const texts: ArrivedText[] = [];
  for (const pair of inOrder(pairCalls(conversation).pairs)) {
    const laid = textsOfResult(input, shrinking, way, pair, gone);
    for (const text of laid) texts.push(text);
  }
  const { repeats } = shrinking;
  if (references && repeats)
    return withReferences(repeats, conversation, texts, (text) => counter.text(text));
  const shrinks: Shrink[] = [];
  for (const { shrink } of texts) if (shrink) shrinks.push(shrink);
  return shrinks;
}

/**
 * Makes the results smaller that were not made smaller before, one after another, for `shrinksOf` to find. Only for what is new in a
 * conversation, so it costs a turn nothing.
 */
export async function shrinkInSlices(input: ShrinkInput, fold: readonly Edit[]): Promise<void> {
  const { shrinking, conversation, counter, slices } = input;
  const last = conversation.messages.at(-1);
  if (!slices || !shrinking || !last) return;
  const way = wayOf(input, shrinking);
  let from = conversation.messages.length;
  while (from > 0 && shrunkBefore.get(conversation.messages[from - 1]!) !== way) from--;
  if (from === conversation.messages.length) return;
  shrunkBefore.set(last, way);
  const pairs = inOrder(pairCalls(conversation).pairs);
  const isNew = ({ result }: Pair): boolean => result !== undefined && result.message >= from;
  const newest = pairs.filter(isNew);
  const gone = placesEdited(fold);
  const { repeats } = shrinking;
  const refersToMany = repeats !== undefined && newest.length > mostAtOnce;
  const texts: ArrivedText[] = [];
  let count = 0;
  for (const pair of refersToMany ? pairs : newest) {
    if (slices.isOver()) await slices.pause();
    texts.push(...textsOfResult(input, shrinking, way, pair, gone));
    if (!refersToMany || !isNew(pair) || ++count % mostAtOnce > 0) continue;
    withReferences(repeats, conversation, texts, (text) => counter.text(text));
  }
}

/** Results that are compared with earlier ones before others may run. */
const mostAtOnce = 200;

/** By the newest message of a request: the way in which all results up to it were made smaller. */
const shrunkBefore = new WeakMap<Message, string>();

/** Sorts pairs by the places of their results. Nearly always they are sorted already. */
function inOrder(pairs: readonly Pair[]): readonly Pair[] {
  const isSorted = pairs.every((pair, at) => at === 0 || byResult(pairs[at - 1]!, pair) <= 0);
  return isSorted ? pairs : pairs.toSorted(byResult);
}

function byResult({ result: one }: Pair, { result: other }: Pair): number {
  return (one?.message ?? 0) - (other?.message ?? 0) || (one?.part ?? 0) - (other?.part ?? 0);
}

/** Returns the texts of one result that are still there, as they are sent without references; none of what was recalled. */
function textsOfResult(
  input: ShrinkInput,
  { settings, from }: Shrinking,
  way: string,
  pair: Pair,
  gone: ReturnType<typeof placesEdited>,
): readonly ArrivedText[] {
  const { conversation, protects, codec } = input;
  const { result: place } = pair;
  if (!place || gone.messages.has(place.message)) return [];
  if (gone.parts.size > 0 && gone.parts.has(placeKey(place))) return [];
  const result = conversation.messages[place.message]!.parts[place.part]!;
  if (result.type !== 'tool-result' || protects.recalled(place.message, place.part)) return [];
  const isFree = place.message >= from && !protects.part(place.message, place.part);
  // One answer holds for all texts of a part.
  const at = { ...place, text: 0 };
  const mayEdit =
    isFree && codec.rules.mayEdit(conversation, { kind: 'replace-text', at, stub: '', memory: undefined });
  const texts = mayEdit
    ? shrunkTexts(input, settings, way, pair, place)
    : arrivedTexts(conversation, pair, place, result, undefined);
  if (gone.texts.size === 0) return texts;
  return texts.filter((one) => !gone.texts.has(`${placeKey(place)}.${one.at.text}`));
}

/** `shrinks`: undefined for a result that must stay as it came. */
function arrivedTexts(
  conversation: Conversation,
  pair: Pair,
  place: PartPlace,
  result: ToolResultPart,
  shrinks: readonly Shrink[] | undefined,
): readonly ArrivedText[] {
  const label = labelOf(conversation, pair);
  const mayRefer = shrinks !== undefined && result.isError !== true;
  return result.texts.map((_, text) => ({
    at: { ...place, text },
    result,
    shrink: shrinks?.find((one) => one.at.text === text),
    label,
    mayRefer,
  }));
}

const labels = new WeakMap<Part, string>();

/** Remembered with the call. */
function labelOf(conversation: Conversation, { call }: Pair): string {
  const message = conversation.messages[call.message]!;
  const part = message.parts[call.part]!;
  const label = labels.get(part) ?? callLabel(callAt(conversation, call)!);
  labels.set(part, label);
  return label;
}

type ShrunkResult = {
  readonly way: string;
  readonly message: number;
  /** Digest of the message with the call. */
  readonly asking: string;
  readonly texts: readonly ArrivedText[];
};

/** By result, which is read once for all bodies in which the same bytes stand; then by all else the edits hang on. */
const known = new WeakMap<ToolResultPart, ShrunkResult[]>();

/** A client may drop its oldest messages, so that the same result stands elsewhere in every request. */
const mostWays = 16;

/** What is the same for all results of a conversation. */
function wayOf({ counter, recallTool }: ShrinkInput, { settings, tenant }: Shrinking): string {
  return [tenant, counter.name, recallTool?.name, ...Object.values(settings)].join(' ');
}

function shrunkTexts(
  input: ShrinkInput,
  settings: ShrinkSettings,
  way: string,
  pair: Pair,
  place: PartPlace,
): readonly ArrivedText[] {
  const { conversation, counter, recallTool, idOf } = input;
  const { call } = pair;
  const { message: index, part } = place;
  const message = conversation.messages[index]!;
  const result = message.parts[part];
  if (result?.type !== 'tool-result') return [];
  const { digest: asking } = conversation.messages[call.message]!;
  const ways = known.get(result) ?? [];
  const before = ways.find((one) => one.message === index && one.asking === asking && one.way === way);
  if (before) return before.texts;
  const view = {
    conversation,
    count: (text: string) => counter.text(text),
    idOf,
    recallTool: recallTool?.name,
  };
  const smaller = shrinkResult(view, settings, message, result, callAt(conversation, call));
  const shrinks = smaller.map(
    ({ text, shrunk, saved, memory }): Shrink => ({
      kind: 'replace-text',
      at: { message: index, part, text },
      stub: shrunk,
      memory,
      saved,
    }),
  );
  const texts = arrivedTexts(conversation, pair, place, result, shrinks);
  known.set(result, [{ way, message: index, asking, texts }, ...ways].slice(0, mostWays));
  return texts;
}

function callAt(conversation: Conversation, place: PartPlace) {
  const message = conversation.messages[place.message]!;
  const part = message.parts[place.part];
  return part?.type === 'tool-call'
    ? { name: part.name, input: inputOf(conversation.body, message, part) }
    : undefined;
}
