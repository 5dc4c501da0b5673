/**
 * Makes tool results smaller on arrival: from the first request that holds them, so that only folds ever change content that was sent. It is a
 * pure function of the conversation and its fold, so nothing is stored to repeat it. Also says why a fold left a message in full.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import { openNotes } from '../caches.ts';
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { inputOf } from '../conversation/messages.ts';
import { type Edit, lastMessageOf, stayingInSteps } from '../conversation/edit.ts';
import {
  type Pair,
  type Pairing,
  type PartPlace,
  lastAssistant,
  pairCalls,
  placeKey,
} from '../conversation/turns.ts';
import type { FetchedAgain } from './at-work.ts';
import { isMarkedResult } from './in-view.ts';
import { type ArrivedText, type ReferenceMemo, type Shrink, withReferences } from './references.ts';
import type { Steps } from '../conversation/steps.ts';
import type { Fold } from '../store/folds.ts';
import { type EditedPlaces, placesInSteps } from '../strategies/lib/editable-texts.ts';
import {
  callLabel,
  type ShrinkSettings,
  type ToolResultPart,
  shrinkResult,
} from '../strategies/shrink-results.ts';
import type { Protection } from '../strategies/strategy.ts';
import type { KeptReason } from '../receipts/detail.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import type { Demand } from '../triggers/trigger.ts';

/** How the results of one conversation are made smaller. */
export type Shrinking = {
  readonly settings: ShrinkSettings;
  /** The index of the first message whose results may be made smaller. */
  readonly from: number;
  /** True when the provider checks that earlier messages never change, so that `from` must be stored. */
  readonly isBound: boolean;
  /** The references of the conversation's last request; undefined when results are not deduplicated. */
  readonly referenceMemo: ReferenceMemo | undefined;
  /** The owner of the conversation. Ids of originals depend on it. */
  readonly tenant: string;
};

/** The input that shrinks are made from. */
export type ShrinkInput = {
  /** Results that were fetched again after the fold that was found. */
  readonly fetchedAgain?: readonly FetchedAgain[];
  /** False where the provider caches nothing: then no fold spares reads that the agent is working with. Default true. */
  readonly isCached?: boolean;
  readonly codec: Codec;
  readonly conversation: Conversation;
  readonly counter: ConversationCounter;
  readonly protects: Protection;
  readonly idOf: (original: Uint8Array) => string;
  readonly recallTool: RecallTool | undefined;
  /** Undefined when nothing is made smaller. */
  readonly shrinking: Shrinking | undefined;
};

type ShrinkRequest = {
  readonly codec: Codec;
  readonly tenant: string;
  /** Undefined when nothing is to be made smaller. */
  readonly settings: ShrinkSettings | undefined;
  readonly referenceMemo: ReferenceMemo | undefined;
};

/**
 * Decides which results of a conversation are made smaller, given its newest fold: none while folding is disabled. If the conversation
 * began without this engine and has replies that are bound to their prefix, only results after its last reply.
 */
export function shrinkingOf(
  { codec, tenant, settings, referenceMemo }: ShrinkRequest,
  conversation: Conversation,
  fold: Pick<Fold, 'foldingDisabled' | 'shrinksFrom'> | undefined,
): Shrinking | undefined {
  if (!settings || fold?.foldingDisabled) return undefined;
  const isBound = conversation.toolNames.length > 0 && codec.rules.bindsPrefix(conversation);
  const isSealed = isBound && conversation.messages.some(({ parts }) => parts.some(isReasoning));
  const unsent = (lastAssistant(conversation) ?? -1) + 1;
  return { settings, from: fold?.shrinksFrom ?? (isSealed ? unsent : 0), isBound, referenceMemo, tenant };
}

function isReasoning({ type }: Part): boolean {
  return type === 'reasoning';
}

/**
 * Returns the shrinks of a conversation under a fold. They never touch a place that the fold edits. `references: false` shows every result
 * as if no other existed.
 */
export function* shrinksOf(
  input: ShrinkInput,
  fold: readonly Edit[],
  { references = true }: { readonly references?: boolean } = {},
): Steps<readonly Shrink[]> {
  const { shrinking, conversation, counter } = input;
  if (!shrinking) return [];
  yield* stayingInSteps(conversation);
  const edited = yield* placesInSteps(fold);
  const variant = variantOf(input, shrinking);
  const { pairs, turn } = pairCalls(conversation);
  const context = `${variant} ${shrinking.from} ${conversation.previousReplyId}`;
  const before = input.protects.hasPlainResults ? arrivedBefore(conversation, fold, context) : undefined;
  const texts: ArrivedText[] = before ? before.list.slice(0, before.length) : [];
  let finished: number | undefined;
  let visited = 0;
  for (const pair of inOrder(before ? pairs.slice(before.pairs) : pairs)) {
    if (++visited % 64 === 0) yield;
    const arrived = leftByFold(input, shrinking, pair, edited);
    if (turn && pair.result && pair.call.message >= turn.message.index) finished ??= texts.length;
    if (!arrived) continue;
    // Nearly all results are known, and a generator for each would take longer than all else here.
    const resultTexts =
      knownTexts(input, variant, pair, arrived) ??
      (yield* textsOfResult(input, shrinking, variant, pair, arrived));
    const isCallEdited = edited.inputs.size > 0 && edited.inputs.has(placeKey(pair.call));
    for (const text of resultTexts) {
      if (edited.texts.size > 0 && edited.texts.has(`${placeKey(arrived.place)}.${text.at.text}`)) continue;
      texts.push(isCallEdited ? { ...text, call: undefined } : text);
    }
  }
  if (turn && input.protects.hasPlainResults)
    rememberArrived(turn, { fold, context, before, texts, length: finished ?? texts.length });
  const { referenceMemo } = shrinking;
  if (references && referenceMemo)
    return yield* withReferences(referenceMemo, conversation, texts, (text) => counter.textInSteps(text));
  const shrinks: Shrink[] = [];
  for (const { shrink } of texts) if (shrink) shrinks.push(shrink);
  return shrinks;
}

/**
 * The texts of all results ahead of an assistant turn. Later messages do not change them. Conversations that continue each other share the list, of
 * which the first `length` texts count.
 */
type ArrivedBefore = {
  readonly fold: readonly Edit[];
  /** Everything else that the texts depend on. */
  readonly context: string;
  readonly pairs: number;
  readonly list: ArrivedText[];
  readonly length: number;
};

/** The texts by the message that begins the turn. */
const arrivedTextsBefore = openNotes<Message, ArrivedBefore>('message');

/** Finds the texts of the longest beginning of the conversation whose results were made smaller under the same fold. */
function arrivedBefore(
  { messages }: Conversation,
  fold: readonly Edit[],
  context: string,
): ArrivedBefore | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const known = arrivedTextsBefore.get(messages[at]!);
    if (!known) continue;
    const isSameFold = known.fold === fold || (known.fold.length === 0 && fold.length === 0);
    return isSameFold && known.context === context ? known : undefined;
  }
  return undefined;
}

function rememberArrived(
  { message, pairs }: NonNullable<Pairing['turn']>,
  {
    before,
    texts,
    ...rest
  }: Pick<ArrivedBefore, 'fold' | 'context' | 'length'> & {
    readonly before: ArrivedBefore | undefined;
    readonly texts: readonly ArrivedText[];
  },
): void {
  // Another request may have continued the list while this one was paused.
  const continues = before?.list.length === before?.length;
  const list = before && continues ? before.list : texts.slice(0, before?.length ?? 0);
  for (let at = list.length; at < rest.length; at++) list.push(texts[at]!);
  arrivedTextsBefore.set(message, { ...rest, pairs, list });
}

/** Sorts pairs by the places of their results. Nearly always they are sorted already. */
function inOrder(pairs: readonly Pair[]): readonly Pair[] {
  for (let at = 1; at < pairs.length; at++)
    if (byResult(pairs[at - 1]!, pairs[at]!) > 0) return pairs.toSorted(byResult);
  return pairs;
}

function byResult({ result: one }: Pair, { result: other }: Pair): number {
  return (one?.message ?? 0) - (other?.message ?? 0) || (one?.part ?? 0) - (other?.part ?? 0);
}

/** A result that a fold has left. `mayEdit`: true if it may be made smaller. */
type ArrivedResult = {
  readonly place: PartPlace;
  readonly result: ToolResultPart;
  readonly mayEdit: boolean;
};

/** Returns the result of a call unless it is missing, recalled, or removed by the fold. */
function leftByFold(
  { conversation, protects, codec }: ShrinkInput,
  { from }: Shrinking,
  { result: place }: Pair,
  edited: EditedPlaces,
): ArrivedResult | undefined {
  if (!place || edited.messages.has(place.message)) return undefined;
  if (edited.parts.size > 0 && edited.parts.has(placeKey(place))) return undefined;
  const { message, part } = place;
  const result = conversation.messages[message]!.parts[part]!;
  if (result.type !== 'tool-result' || protects.recalled(message, part)) return undefined;
  // One answer holds for all texts of a part.
  const at = { message, part, text: 0 };
  const mayEdit =
    message >= from &&
    !(protects.isPinned?.(message, part) ?? protects.part(message, part)) &&
    !isMarkedResult(conversation, place) &&
    codec.rules.mayEdit(conversation, { kind: 'replace-text', at, stub: '', memory: undefined });
  return { place, result, mayEdit };
}

/** Returns the texts of a result as they are sent without references. */
function* textsOfResult(
  input: ShrinkInput,
  { settings }: Shrinking,
  variant: string,
  pair: Pair,
  { place, result, mayEdit }: ArrivedResult,
): Steps<readonly ArrivedText[]> {
  if (mayEdit) return yield* shrunkTexts(input, settings, variant, pair, place, result);
  return arrivedTexts(input.conversation, pair, place, result, undefined);
}

/** Describes the texts of a result. `shrinks` is undefined for a result that must not change. */
function arrivedTexts(
  conversation: Conversation,
  pair: Pair,
  place: PartPlace,
  result: ToolResultPart,
  shrinks: readonly Shrink[] | undefined,
): readonly ArrivedText[] {
  const label = labelOf(conversation, pair);
  const shrinkOf = new Map(shrinks?.map((shrink) => [shrink.at.text, shrink]));
  const mayRefer = shrinks !== undefined && result.isError !== true;
  const part = conversation.messages[pair.call.message]!.parts[pair.call.part]!;
  const call = part.type === 'tool-call' ? { message: pair.call.message, part } : undefined;
  return result.texts.map((_, text) => ({
    at: { ...place, text },
    result,
    shrink: shrinkOf.get(text),
    label,
    mayRefer,
    call,
  }));
}

const labels = openNotes<Part, string>('part');

/** Returns the name that references use for a result. It is remembered with the call. */
function labelOf(conversation: Conversation, { call }: Pair): string {
  const message = conversation.messages[call.message]!;
  const part = message.parts[call.part]!;
  const label = labels.get(part) ?? callLabel(callAt(conversation, call)!);
  labels.set(part, label);
  return label;
}

type ShrunkResult = {
  readonly variant: string;
  readonly message: number;
  /** The digest of the message with the call. */
  readonly callDigest: string;
  readonly texts: readonly ArrivedText[];
};

/** Shrinks by result, and then by everything else that they depend on. Bodies with the same bytes share the result object. */
const shrunkResults = openNotes<ToolResultPart, ShrunkResult[]>('part');

/** A client may drop its oldest messages, so that the same result has another index in every request. */
const maxVariants = 16;

/** Identifies everything that shrinks depend on and that is the same for all results of a conversation. */
function variantOf({ counter, recallTool }: ShrinkInput, { settings, tenant }: Shrinking): string {
  return [tenant, counter.name, recallTool?.name, ...Object.values(settings)].join(' ');
}

function knownTexts(
  { conversation }: ShrinkInput,
  variant: string,
  { call }: Pair,
  { place, result, mayEdit }: ArrivedResult,
): readonly ArrivedText[] | undefined {
  const variants = mayEdit ? shrunkResults.get(result) : undefined;
  if (!variants) return undefined;
  const { digest } = conversation.messages[call.message]!;
  for (const one of variants)
    if (one.message === place.message && one.callDigest === digest && one.variant === variant)
      return one.texts;
  return undefined;
}

function* shrunkTexts(
  input: ShrinkInput,
  settings: ShrinkSettings,
  variant: string,
  pair: Pair,
  place: PartPlace,
  result: ToolResultPart,
): Steps<readonly ArrivedText[]> {
  const { conversation, counter, recallTool, idOf } = input;
  const { call } = pair;
  const { message: index, part } = place;
  const message = conversation.messages[index]!;
  const { digest: callDigest } = conversation.messages[call.message]!;
  const view = {
    conversation,
    count: (text: string) => counter.text(text),
    countInSteps: (text: string) => counter.textInSteps(text),
    idOf,
    recallTool: recallTool?.name,
  };
  yield;
  const smaller = yield* shrinkResult(view, settings, message, result, callAt(conversation, call));
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
  shrunkResults.set(
    result,
    [{ variant, message: index, callDigest, texts }, ...(shrunkResults.get(result) ?? [])].slice(
      0,
      maxVariants,
    ),
  );
  return texts;
}

/** Returns the tool call at a place. */
function callAt(conversation: Conversation, place: PartPlace) {
  const message = conversation.messages[place.message]!;
  const part = message.parts[place.part];
  return part?.type === 'tool-call'
    ? { name: part.name, input: inputOf(conversation.body, message, part) }
    : undefined;
}

// Messages that a fold leaves in full.

type KeptInput = Pick<ShrinkInput, 'protects' | 'counter'> & { readonly minResultBytes: number };

/** Returns the tokens of the messages that a fold left in full, by the reason. */
export function stayedIn(
  { input, fullConversation }: { readonly input: KeptInput; readonly fullConversation: Conversation },
  demand: Demand,
  { edits }: { readonly edits: readonly Edit[] },
): Readonly<Record<string, number>> {
  const stayed: Record<string, number> = {};
  const edited = new Set(edits.filter(({ kind }) => kind !== 'insert-message').map(lastMessageOf));
  for (const message of fullConversation.messages) {
    if (edited.has(message.index)) continue;
    const reason = keptReason(input, demand, message);
    stayed[reason] = (stayed[reason] ?? 0) + input.counter.message(fullConversation, message.index);
  }
  return stayed;
}

/** Returns why a fold left a message in full. */
export function keptReason(input: KeptInput, { only }: Demand, message: Message): KeptReason {
  const { protects, minResultBytes } = input;
  const { index, role, parts } = message;
  if (role === 'system') return 'system';
  if (protects.message(index)) return 'newest';
  if (parts.some((_, part) => protects.part(index, part))) return 'pinned';
  if (parts.some((_, part) => protects.recalled(index, part))) return 'recalled';
  const results = parts.filter(({ type }) => type === 'tool-result');
  const isSmall = ({ span }: Part) => span.end - span.start < minResultBytes;
  if (results.length > 0 && results.every(isSmall)) return 'small';
  return only && !only.smaller.has(index) && !only.gone.has(index) ? 'in use' : 'not needed';
}
