/** What an engine has at hand: its parts, what it remembers of earlier requests, and what it makes of them for the next one. */
import { LRUCache } from 'lru-cache';
import type { ReadBlock, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { allOriginalIdsOf, originalsOf } from '../conversation/original.ts';
import { prefixLinks } from '../conversation/prefix-hash.ts';
import { type Draft, type PlanInput, draft } from './plan.ts';
import {
  hasWayBack,
  isKnownSound,
  keptMessages,
  newFault,
  newProblems,
  noteSound,
  protectionOf,
  toolToOffer,
} from './protect.ts';
import { type Repeats, createRepeats, sizeOfRepeats } from './references.ts';
import { type LastSent, type Send, createLastSent, createSender } from './send.ts';
import type { EngineOptions, EngineRequest } from './types.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { Fold } from '../store/fold-records.ts';
import type { FoldStore, FoundFold, RecordOptions, Recorded } from '../store/fold-store.ts';
import { type Calibration, createCalibration } from '../tokens/calibration.ts';
import { type TokenMemo, createConversationCounter, createTokenMemo } from '../tokens/count-conversation.ts';
import { type LearnedWindows, createLearnedWindows } from '../tokens/learned-windows.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';

export type EngineState = {
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
export function createEngineState(options: EngineOptions): EngineState {
  // By size, not by count: what one block remembers grows with its parts.
  const lastSent = createLastSent();
  const blocks = new LRUCache<string, ReadBlock>({
    maxSize: options.maxParts ?? 400_000,
    sizeCalculation: (outline) => 1 + outline.parts.length,
  });
  return {
    options,
    reading: { digest: options.digest, blocks, seen: options.seen },
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

export function planInputFor(
  { options, reading, counts, toolCosts }: EngineState,
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
export function clientLinks(
  engine: EngineState,
  request: EngineRequest,
  came: Conversation,
): readonly string[] {
  return prefixLinks(came, rootOf(engine, request, came), engine.options.digest);
}

/** Where to keep folds of `whole`, which was made of what came. */
export function foldMemory(
  engine: EngineState,
  request: EngineRequest,
  came: Conversation,
  whole: Conversation,
): FoldMemory {
  const { encryptedStore, foldStore, mode } = engine.options;
  const { tenant } = request;
  const links = clientLinks(engine, request, came);
  const isSame = whole === came;
  return {
    // What is only observed was never sent, so there is no original to keep.
    encryptedStore: mode === 'observe' ? keepsNothing : encryptedStore,
    foldStore,
    tenant,
    links,
    whole: isSame ? links : prefixLinks(whole, rootOf(engine, request, came), engine.options.digest),
    same: isSame ? came.messages.length : sameAtEnd(came, whole),
  };
}

const keepsNothing: FoldMemory['encryptedStore'] = {
  keep: () => Promise.resolve(undefined),
  renewOriginals: () => undefined,
};

/** Prefixes of different roots never meet. */
function rootOf(
  { options }: EngineState,
  { codec, tenant }: EngineRequest,
  conversation: Conversation,
): string {
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
  { repeats, options }: EngineState,
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

// Reasons why a summary is missing, for the receipts of folds that used an extract instead. By the prefix that the summary was to end with.

export interface SummaryNotes {
  /** Of the newest that was begun for a part of this chain; undefined where none was, or all is well. */
  find(tenant: string, links: readonly string[]): string | undefined;
  note(tenant: string, link: string, problem: string): void;
  /** All is well. */
  forget(tenant: string, link: string): void;
}

export function createSummaryNotes(): SummaryNotes {
  const problems = new LRUCache<string, string>({ max: 2_000 });
  return {
    find(tenant, links) {
      if (problems.size === 0) return undefined;
      for (let at = links.length - 1; at > 0; at--) {
        const problem = problems.get(keyOf(tenant, links[at]!));
        if (problem !== undefined) return problem;
      }
      return undefined;
    },
    note: (tenant, link, problem) => problems.set(keyOf(tenant, link), problem),
    forget: (tenant, link) => problems.delete(keyOf(tenant, link)),
  };
}

function keyOf(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

// Stored folds: finding the fold of a prefix, and storing new ones. The same prefix is sent as the same bytes for ever.

/** Where folds and originals are kept, for one conversation. */
export type FoldMemory = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'renewOriginals'>;
  readonly foldStore: Pick<FoldStore, 'record' | 'markSent' | 'renew'>;
  readonly tenant: string;
  /** The links of the prefix chain of the conversation as the client sent it: what a fold is found by. */
  readonly links: readonly string[];
  /** The same of the conversation that was folded, with what was recalled in private: what its edits name places in. */
  readonly whole: readonly string[];
  /** How many of the newest messages are the same in both. */
  readonly same: number;
};

/** The newest of the folds that was made of this very conversation, and can be made again. `whole`: the links of its prefix chain. */
export function foldFor(
  folds: readonly FoundFold[],
  conversation: Conversation,
  whole: readonly string[],
): FoundFold | undefined {
  const isOfIt = ({ over }: Fold) => over === undefined || whole[over.messages] === over.link;
  return folds.find((found) => isOfIt(found.fold) && isReplayable(conversation, found));
}

/** The place in the client's conversation that has the first `messages` of the folded one in front of it, if they are the same from there on. */
export function placeForClient(
  { links, whole, same }: Pick<FoldMemory, 'links' | 'whole' | 'same'>,
  messages: number,
): number {
  return Math.max(messages - (whole.length - links.length), links.length - 1 - same);
}

/** The conversation under the newest fold on its chain; without one, or when it would no longer be valid, under no edits. */
export async function replayFold(input: PlanInput, found: FoundFold | undefined): Promise<Draft> {
  if (!found || found.fold.edits.length === 0) return draft(input, []);
  const { edits } = found.fold;
  const replayed = await draft(input, edits);
  const { codec, conversation } = input;
  if (newProblems(codec.rules, conversation, replayed.sent).length > 0) return draft(input, []);
  // One that this process did not make itself is looked at as closely once.
  if (!isKnownSound(edits)) {
    if (newFault(codec.rules, conversation.body, replayed.body) !== undefined) return draft(input, []);
    noteSound(edits);
  }
  return replayed;
}

/** A fold before it is recorded. */
export type NewFold = Omit<Fold, 'length' | 'over' | 'id'>;

/**
 * The fold and all that is to be kept with it at once, all or none, so that no fold ever points at nothing. Where another instance has
 * sent the same request meanwhile, what it was sent with comes back. Rejects with `store-failed`.
 */
export async function rememberFold(
  memory: FoldMemory,
  conversation: Conversation,
  fold: NewFold,
  removed: readonly Edit[],
  yieldsTo: RecordOptions['yieldsTo'],
): Promise<Recorded> {
  const { edits } = fold;
  const kept = keepable(conversation, removed);
  const lastTouched = edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), 0);
  const { encryptedStore, foldStore, tenant, links, whole } = memory;
  const from = placeForClient(memory, lastTouched + 1);
  const messages = from + (whole.length - links.length);
  const made = { ...fold, over: { messages, link: whole[messages]! } };
  return foldStore.record(tenant, links, made, {
    from,
    ...(yieldsTo && { yieldsTo }),
    write: (record) => encryptedStore.keep(tenant, kept, record),
  });
}

/**
 * Keeps that this request goes out with what was found, so that all that goes on from it does, wherever it is served. Never rejects: at
 * worst what follows takes over a fold that was made elsewhere.
 */
export async function markSent(
  { encryptedStore, foldStore, tenant, links }: FoldMemory,
  found: FoundFold | undefined,
  sent: Pick<Fold, 'at' | 'limit'>,
): Promise<void> {
  try {
    await foldStore.markSent(tenant, links, found, {
      ...sent,
      write: (record) => encryptedStore.keep(tenant, [], record),
    });
  } catch {
    // This process knows it all the same.
  }
}

/**
 * Has everything that a request is sent with kept for as long again: the fold it goes on from with its originals, and those of `others`,
 * which no fold that was found stands for. Returns at once, and never fails.
 */
export function renewUsed(
  { encryptedStore, foldStore, tenant, links }: FoldMemory,
  found: FoundFold | undefined,
  others: readonly string[],
): void {
  if (found && !found.fold.foldingDisabled) foldStore.renew(tenant, links, found, allOriginalIdsOf);
  encryptedStore.renewOriginals(others);
}

/** The same as `rememberFold` where no fold is made. Rejects with `store-failed`. */
export async function keepOriginals(
  { encryptedStore, tenant }: Pick<FoldMemory, 'encryptedStore' | 'tenant'>,
  conversation: Conversation,
  removed: readonly Edit[],
): Promise<void> {
  const kept = keepable(conversation, removed);
  if (kept.length > 0) await encryptedStore.keep(tenant, kept);
}

function keepable(conversation: Conversation, removed: readonly Edit[]) {
  return [...originalsOf(conversation, removed)].map(([id, original]) => ({ id, original }));
}

/**
 * Records that the provider refused our edits in this conversation: for a day it is folded only to make it fit. `now`: milliseconds since
 * the epoch. Rejects with `store-failed`, but this process remembers it.
 */
export async function disableFolding(
  memory: Pick<FoldMemory, 'foldStore' | 'tenant' | 'links'>,
  now: number | undefined,
): Promise<void> {
  const { foldStore, tenant, links } = memory;
  const fold = { edits: [], foldingDisabled: true, foldingDisabledSince: now };
  await foldStore.record(tenant, links, fold, { rememberLocally: true });
}

/** Milliseconds. One refusal may have been the provider's mistake, so folding is tried again. */
const aloneForMs = 24 * 60 * 60 * 1_000;

/** The fold as it holds now: a refusal of our edits is forgotten after a day. `now`: milliseconds since the epoch. */
export function withoutOldRefusal(found: FoundFold, now: number | undefined): FoundFold {
  const { foldingDisabled, foldingDisabledSince } = found.fold;
  if (!foldingDisabled || now === undefined) return found;
  const isForgotten = foldingDisabledSince === undefined || now - foldingDisabledSince >= aloneForMs;
  return isForgotten
    ? { ...found, fold: { ...found.fold, foldingDisabled: false, foldingDisabledSince: undefined } }
    : found;
}

async function writesNothing(): Promise<undefined> {
  return undefined;
}

/** The same memory without its store: what is recorded in it is remembered by this process only. */
export function withoutStore(memory: FoldMemory): FoldMemory {
  return { ...memory, encryptedStore: { ...memory.encryptedStore, keep: writesNothing } };
}

/**
 * A fold found by its whole chain is replayed as it is. One found by a shorter prefix (the client went back, or rewrote its newest
 * message) must not reach what is newest here.
 */
function isReplayable(conversation: Conversation, { fold, matched }: FoundFold): boolean {
  if (matched >= fold.length) return true;
  const kept = keptMessages(conversation);
  return fold.edits.every((edit) => edit.kind === 'insert-message' || !kept.has(lastMessageOf(edit)));
}
