/**
 * What is made smaller at birth: every result of a tool, from the first request on in which it stands, so that nothing that was sent is
 * ever rewritten but by folds. A pure function of the conversation and of what is folded in it; nothing needs to be kept to do it again.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import type { Protection } from '../strategies/strategy.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import { type Conversation, inputOf, type Part } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, pairCalls, type PartPlace, placeKey } from '../conversation/pairing.ts';
import { lastAssistant } from '../conversation/turns.ts';
import type { Fold } from '../store/fold-store.ts';
import { type ToolResultPart, type ShrinkSettings, shrinkResult } from '../strategies/shrink-results.ts';
import { callLabel } from '../strategies/lib/tool-calls.ts';
import { type Repeats, type Standing, withReferences } from './repeats.ts';
import type { Shrink } from './shrink.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';

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
  const standings = inOrder(pairCalls(conversation).pairs).flatMap((pair) =>
    standingsOf(input, shrinking, way, pair, gone),
  );
  const { repeats } = shrinking;
  return references && repeats
    ? withReferences(repeats, conversation, standings, (text) => counter.text(text))
    : standings.flatMap(({ shrink }) => shrink ?? []);
}

/** By where the results stand. */
function inOrder(pairs: readonly Pair[]): readonly Pair[] {
  return pairs.toSorted(
    ({ result: one }, { result: other }) =>
      (one?.message ?? 0) - (other?.message ?? 0) || (one?.part ?? 0) - (other?.part ?? 0),
  );
}

/** The texts of one result that are still there, as they stand without references; none of what was recalled. */
function standingsOf(
  input: ShrinkInput,
  { settings, from }: Shrinking,
  way: string,
  pair: Pair,
  gone: ReturnType<typeof placesEdited>,
): readonly Standing[] {
  const { conversation, protects, codec } = input;
  const { result: place } = pair;
  if (!place || gone.messages.has(place.message) || gone.parts.has(placeKey(place))) return [];
  const result = conversation.messages[place.message]!.parts[place.part]!;
  if (result.type !== 'tool-result' || protects.recalled(place.message, place.part)) return [];
  const isFree = place.message >= from && !protects.part(place.message, place.part);
  const shrinks = isFree ? remembered(input, settings, way, pair, place) : [];
  const label = labelOf(conversation, pair);
  return result.texts.flatMap((_, text): readonly Standing[] => {
    if (gone.texts.has(`${placeKey(place)}.${text}`)) return [];
    const at = { ...place, text };
    const edit: Edit = { kind: 'replace-text', at, stub: '', memory: undefined };
    const mayEdit = isFree && codec.rules.mayEdit(conversation, edit);
    const shrink = mayEdit ? shrinks.find((one) => one.at.text === text) : undefined;
    return [{ at, result, shrink, label, mayRefer: mayEdit && result.isError !== true }];
  });
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

type Known = {
  readonly way: string;
  readonly message: number;
  /** Digest of the message with the call. */
  readonly asking: string;
  readonly shrinks: readonly Shrink[];
};

/** By result, which is read once for all bodies in which the same bytes stand; then by all else the edits hang on. */
const known = new WeakMap<ToolResultPart, Known[]>();

/** A client may drop its oldest messages, so that the same result stands elsewhere in every request. */
const mostWays = 16;

/** What is the same for all results of a conversation. */
function wayOf({ counter, recallTool }: ShrinkInput, { settings, tenant }: Shrinking): string {
  return [tenant, counter.name, recallTool?.name, ...Object.values(settings)].join(' ');
}

function remembered(
  input: ShrinkInput,
  settings: ShrinkSettings,
  way: string,
  { call }: Pair,
  { message: index, part }: PartPlace,
): readonly Shrink[] {
  const { conversation, counter, recallTool, idOf } = input;
  const message = conversation.messages[index]!;
  const result = message.parts[part];
  if (result?.type !== 'tool-result') return [];
  const { digest: asking } = conversation.messages[call.message]!;
  const ways = known.get(result) ?? [];
  const before = ways.find((one) => one.message === index && one.asking === asking && one.way === way);
  if (before) return before.shrinks;
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
  known.set(result, [{ way, message: index, asking, shrinks }, ...ways].slice(0, mostWays));
  return shrinks;
}

function callAt(conversation: Conversation, place: PartPlace) {
  const message = conversation.messages[place.message]!;
  const part = message.parts[place.part];
  return part?.type === 'tool-call'
    ? { name: part.name, input: inputOf(conversation.body, message, part) }
    : undefined;
}
