/**
 * What is made smaller at birth: every result of a tool, from the first request on in which it stands, so that nothing that was sent is
 * ever rewritten. A pure function of the conversation and of what is folded in it; nothing needs to be kept to do it again.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import type { Protection } from '../strategies/strategy.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import { type Conversation, inputOf, type Part } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Pair, pairCalls, type PartPlace, placeKey } from '../conversation/pairing.ts';
import { lastAssistant } from '../conversation/turns.ts';
import type { Fold } from '../memory/ledger.ts';
import { type Result, type ShrinkSettings, shrinkResult } from '../strategies/shrink-results.ts';
import { touched } from '../strategies/text-slots.ts';

export type Shrinking = {
  readonly settings: ShrinkSettings;
  /** Index of the first message whose results may be made smaller. */
  readonly from: number;
  /** Whether the provider checks that what was sent once stays, so that `from` must be remembered. */
  readonly isBound: boolean;
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
};

/**
 * How to make results smaller in this conversation, after what was remembered of it. One that its provider wants as it came is left
 * alone; one that began elsewhere and holds replies bound to their prefix is made smaller from here on.
 */
export function shrinkingOf(
  { codec, tenant, settings }: ShrinkRequest,
  conversation: Conversation,
  fold: Pick<Fold, 'alone' | 'shrinksFrom'> | undefined,
): Shrinking | undefined {
  if (!settings || fold?.alone) return undefined;
  const isBound = conversation.toolNames.length > 0 && codec.rules.bindsPrefix(conversation);
  const isSealed = isBound && conversation.messages.some(({ parts }) => parts.some(isReasoning));
  const unsent = (lastAssistant(conversation) ?? -1) + 1;
  return { settings, from: fold?.shrinksFrom ?? (isSealed ? unsent : 0), isBound, tenant };
}

function isReasoning({ type }: Part): boolean {
  return type === 'reasoning';
}

export type Shrink = Edit & { readonly kind: 'replace-text'; readonly saved: number };

/** Edits beside those of the fold; a place that the fold has touched is the fold's. */
export function shrinksOf(input: ShrinkInput, fold: readonly Edit[]): readonly Shrink[] {
  const { shrinking, conversation, protects, codec } = input;
  if (!shrinking) return [];
  const gone = touched(fold);
  const way = wayOf(input, shrinking);
  return pairCalls(conversation).pairs.flatMap((pair): readonly Shrink[] => {
    const { result: place } = pair;
    if (!place || place.message < shrinking.from || gone.messages.has(place.message)) return [];
    const shrinks = remembered(input, shrinking.settings, way, pair, place);
    if (shrinks.length === 0 || gone.parts.has(placeKey(place))) return [];
    if (protects.part(place.message, place.part) || protects.recalled(place.message, place.part)) return [];
    return shrinks.filter(
      (shrink) =>
        !gone.texts.has(`${placeKey(place)}.${shrink.at.text}`) && codec.rules.mayEdit(conversation, shrink),
    );
  });
}

/** Tokens that messages take less than they came with, by index. */
export function savedByMessage(shrinks: readonly Shrink[]): ReadonlyMap<number, number> {
  const tokens = new Map<number, number>();
  for (const { at, saved } of shrinks) tokens.set(at.message, (tokens.get(at.message) ?? 0) + saved);
  return tokens;
}

type Known = {
  readonly way: string;
  readonly message: number;
  /** Digest of the message with the call. */
  readonly asking: string;
  readonly shrinks: readonly Shrink[];
};

/** By result, which is read once for all bodies in which the same bytes stand; then by all else the edits hang on. */
const known = new WeakMap<Result, Known[]>();

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
