/** What an engine has at hand: its parts, what it remembers of earlier requests, and what it makes of them for the next one. */
import { LRUCache } from 'lru-cache';
import type { Outline, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { prefixLinks } from '../conversation/prefix.ts';
import { type Calibration, createCalibration } from '../tokens/calibration.ts';
import { createConversationCounter, createTokenMemo, type TokenMemo } from '../tokens/count-conversation.ts';
import { createLearnedWindows, type LearnedWindows } from '../tokens/learned-windows.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import { createLastSent, type LastSent } from './last-sent.ts';
import { type LookUp, lookUp } from './look-up.ts';
import { hasWayBack, toolToOffer } from './offer-recall.ts';
import type { EngineOptions } from './options.ts';
import type { PlanInput } from './plan.ts';
import { protectionOf } from './protection.ts';
import { createRepeats, type Repeats, sizeOfRepeats } from './repeats.ts';
import type { FoldMemory } from './replay.ts';
import type { EngineRequest } from './request.ts';
import { createSender, type Send } from './sender.ts';
import { createSummaryNotes, type SummaryNotes } from './summary-notes.ts';

export type Workshop = {
  readonly options: EngineOptions;
  readonly reading: ReadContext;
  readonly counts: TokenMemo;
  /** By how conversations begin. */
  readonly repeats: LRUCache<string, Repeats>;
  readonly toolCosts: Map<string, number>;
  readonly calibration: Calibration;
  readonly windows: LearnedWindows;
  readonly lastSent: LastSent;
  readonly summaryNotes: SummaryNotes;
  readonly send: Send;
  /** Shrinks of which the store has the originals. */
  readonly kept: WeakSet<Edit>;
};

/** What it remembers of blocks is bounded by `maxParts`. */
export function openWorkshop(options: EngineOptions): Workshop {
  // By size, not by count: what one block remembers grows with its parts.
  const lastSent = createLastSent();
  const outlines = new LRUCache<string, Outline>({
    maxSize: options.maxParts ?? 400_000,
    sizeCalculation: (outline) => 1 + outline.parts.length,
  });
  return {
    options,
    reading: { digest: options.digest, outlines, seen: options.seen },
    counts: createTokenMemo(),
    repeats: new LRUCache<string, Repeats>({ maxSize: 400_000, sizeCalculation: sizeOfRepeats }),
    toolCosts: new Map(),
    calibration: options.calibration ?? createCalibration(),
    windows: createLearnedWindows(options.clock),
    lastSent,
    summaryNotes: createSummaryNotes(),
    send: createSender(options, lastSent),
    kept: new WeakSet(),
  };
}

/** What the store knows of this request, asked for by now. `links`: those of the conversation as the client sent it. */
export function lookUpIn(
  { options }: Workshop,
  { codec, tenant, leftMs }: EngineRequest,
  conversation: Conversation,
  links: readonly string[],
): LookUp {
  const offersRecall = toolToOffer(options, conversation) !== undefined;
  const goesOn = codec.continueReply !== undefined;
  return lookUp({ options, tenant, links, goesOn, offersRecall, ...(leftMs && { leftMs }) }, conversation);
}

export function planInput(
  { options, reading, counts, toolCosts }: Workshop,
  { codec, tenant, leftMs }: EngineRequest,
  conversation: Conversation,
  counter: TokenCounter,
): Omit<PlanInput, 'shrinking' | 'isOffered'> {
  const recallTool = toolToOffer(options, conversation);
  const { isHistoryKept = false } = options;
  return {
    codec,
    reading,
    conversation,
    counter: createConversationCounter({ counter, memo: counts }),
    protects: protectionOf(conversation, {
      pins: options.pins ?? { tools: [], texts: [] },
      recallTool: recallTool?.name,
      isHistoryKept,
    }),
    isHistoryKept,
    idOf: (original) => options.encryptedStore.idOf(tenant, original),
    recallTool,
    compressionBytesThreshold: options.compressionBytesThreshold ?? 1_000,
    toolCosts,
    isTooLate: () => leftMs !== undefined && leftMs() <= 0,
    compressions: new Map(),
  };
}

/** The links of the prefix chain of the conversation as the client sent it, or of no more than its first messages. */
export function linksAsCame(
  workshop: Workshop,
  request: EngineRequest,
  came: Conversation,
): readonly string[] {
  return prefixLinks(came, rootOf(workshop, request, came), workshop.options.digest);
}

/** Where to keep folds of `whole`, which was made of what came. */
export function foldMemory(
  workshop: Workshop,
  request: EngineRequest,
  came: Conversation,
  whole: Conversation,
): FoldMemory {
  const { encryptedStore, foldStore, mode } = workshop.options;
  const { tenant } = request;
  const links = linksAsCame(workshop, request, came);
  const isSame = whole === came;
  return {
    // What is only observed was never sent, so there is no original to keep.
    encryptedStore: mode === 'observe' ? keepsNothing : encryptedStore,
    foldStore,
    tenant,
    links,
    whole: isSame ? links : prefixLinks(whole, rootOf(workshop, request, came), workshop.options.digest),
    same: isSame ? came.messages.length : sameAtEnd(came, whole),
  };
}

const keepsNothing: FoldMemory['encryptedStore'] = {
  keep: () => Promise.resolve(undefined),
  renewOriginals: () => undefined,
};

/** Prefixes of different roots never meet. */
function rootOf({ options }: Workshop, { codec, tenant }: EngineRequest, conversation: Conversation): string {
  const { previousReplyId } = conversation;
  const words = [
    // A request without tools may repeat a conversation that has some: what was folded there cannot be read here.
    ...(hasWayBack(options, conversation) ? [] : ['without recall']),
    // What is only observed was never sent: nobody who folds may find it.
    ...(options.mode === 'observe' ? ['observed'] : []),
    tenant,
    codec.name,
    // Without its history a conversation begins like many others.
    ...(previousReplyId === undefined ? [] : ['goes on from', previousReplyId]),
  ];
  return words.join(' ');
}

function sameAtEnd({ messages: one }: Conversation, { messages: other }: Conversation): number {
  let same = 0;
  while (same < one.length && one.at(-1 - same)?.canonical === other.at(-1 - same)?.canonical) same++;
  return same;
}

/** What was referred to when this conversation was laid out last; undefined where nothing is to be. */
export function repeatsIn(
  { repeats, options }: Workshop,
  { codec, tenant }: EngineRequest,
  conversation: Conversation,
): Repeats | undefined {
  if (!options.shrinks || options.shrinks.repeats === false) return undefined;
  const key = [tenant, codec.name, ...beginningOf(conversation)].join(' ');
  const known = repeats.get(key) ?? createRepeats();
  // It has grown since it was put there: its size is reckoned anew.
  repeats.delete(key);
  repeats.set(key, known);
  return known;
}

function beginningOf({ messages }: Conversation): readonly string[] {
  return messages.slice(0, 2).map((message) => message.canonical);
}
