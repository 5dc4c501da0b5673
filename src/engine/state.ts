/** Holds the state of an engine: its parts, the caches that it keeps between requests, and access to stored folds. */
import { openFixed, type Cache, createCaches } from '../caches.ts';
import type { ReadBlock, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, allOriginalIdsOf, lastMessageOf, originalsInSteps } from '../conversation/edit.ts';
import { prefixLinks } from '../conversation/messages.ts';
import { openSlices, runInSlices, type Slices } from '../conversation/steps.ts';
import { calibrationKeys } from './demand.ts';
import { type Draft, type PlanInput, draft } from './plan.ts';
import {
  hasWayBack,
  isKnownSound,
  keptMessages,
  newFault,
  newProblems,
  noteSound,
  pinsOf,
  protectionOf,
  toolToOffer,
} from './protect.ts';
import { type ReferenceMemo, bytesHeld, createReferenceMemo } from './references.ts';
import { type BodyFinisher, createBodyFinisher, createLastSent, knownTrial } from './finish.ts';
import type { EngineOptions, EngineRequest, Learned } from './types.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import type { Fold, FoldStore, FoundFold, Recorded, Winner } from '../store/folds.ts';
import {
  type LearnedParts,
  type WindowKey,
  createCalibration,
  createLearnedWindows,
} from '../tokens/calibration.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';

export type EngineState = {
  readonly options: EngineOptions;
  readonly reading: ReadContext;
  /** By the beginning of the conversation. */
  readonly referenceMemos: Cache<string, ReferenceMemo>;
  readonly toolCosts: Cache<string, number>;
  readonly learned: Learned;
  readonly summaryNotes: SummaryNotes;
  readonly finish: BodyFinisher;
  /** Shrinks whose originals are stored. */
  readonly storedShrinks: WeakSet<Edit>;
};

/** Creates a memory in which nothing is learned yet. */
export function createLearned({ caches, clock, calibration }: LearnedParts): Learned {
  const windows = createLearnedWindows(clock);
  return { calibration: createCalibration(calibration), windows, lastSent: createLastSent(caches) };
}

/** Creates the state of an engine. */
export function createEngineState(options: EngineOptions): EngineState {
  const { caches = createCaches(), learned = createLearned({ ...options, caches }) } = options;
  const blocks = caches<ReadBlock>('read blocks', bytesOfBlock);
  return {
    options,
    reading: { digest: options.digest, blocks, seen: options.seen },
    referenceMemos: caches<ReferenceMemo>('line references', bytesHeld),
    toolCosts: openFixed('tool costs'),
    learned,
    summaryNotes: createSummaryNotes(),
    finish: createBodyFinisher(options, learned.lastSent),
    storedShrinks: new WeakSet(),
  };
}

/** Returns the key of a context window that was learned: tenant, upstream and model. */
export function windowKey(
  { tenant, upstream }: EngineRequest,
  { model }: Pick<Conversation, 'model'>,
): WindowKey {
  return { tenant, upstream, model };
}

/** Takes over what another thread has learned of the conversation and its model. */
export async function loadLearned(
  { learned }: EngineState,
  request: EngineRequest,
  conversation: Conversation,
  links: readonly string[],
): Promise<void> {
  const tokens = calibrationKeys(request.tenant, conversation, links);
  await learned.load?.({ tokens, window: windowKey(request, conversation), links });
}

/** Estimates the bytes of a block, which include the hashes of its lines. */
function bytesOfBlock({ parts }: ReadBlock): number {
  return parts.reduce((sum, { span }) => sum + 500 + (span.end - span.start) / 25, 0);
}

/** Returns the input of a plan that does not depend on stored folds. */
export function planInputFor(
  { options, reading, toolCosts }: EngineState,
  { codec, tenant, leftMs, controls }: EngineRequest,
  conversation: Conversation,
  counter: TokenCounter,
  window: number | undefined,
): Omit<PlanInput, 'shrinking' | 'isOffered'> {
  const recallTool = toolToOffer(options, conversation);
  const { isHistoryKept = false } = options;
  return {
    codec,
    reading,
    conversation,
    counter: conversationCounter(counter),
    protects: protectionOf(conversation, {
      pins: pinsOf(options.pins, controls),
      recallTool: recallTool?.name,
      notesTool: recallTool?.notes?.name,
      isHistoryKept,
      window,
    }),
    isHistoryKept,
    idOf: (original) => options.encryptedStore.idOf(tenant, original),
    recallTool,
    minResultBytes: options.minResultBytes ?? 1_000,
    keepNewestMedia: options.keepNewestMedia,
    toolCosts,
    isTooLate: () => leftMs !== undefined && leftMs() <= 0,
    compressions: new Map(),
    written: options.texts && (({ key }) => options.texts?.known.get(`${tenant}/${key}`)),
  };
}

/** Returns the prefix hashes of a conversation as the client sent it, or of its first messages. */
export function clientLinksOf(
  engine: EngineState,
  request: EngineRequest,
  clientConversation: Conversation,
): readonly string[] {
  const root = rootOf(engine, request, clientConversation);
  return prefixLinks(clientConversation, root, engine.options.digest);
}

/** Returns where the folds of `fullConversation` are kept, which was made of the client's conversation. */
export function foldMemory(
  engine: EngineState,
  request: EngineRequest,
  clientConversation: Conversation,
  fullConversation: Conversation,
  clientLinks: readonly string[] = clientLinksOf(engine, request, clientConversation),
): FoldMemory {
  const { encryptedStore, foldStore, mode } = engine.options;
  const { tenant } = request;
  const isSame = fullConversation === clientConversation;
  const root = () => rootOf(engine, request, clientConversation);
  return {
    // In observe mode no fold is sent, so there is no original to keep.
    encryptedStore: mode === 'observe' ? keepsNothing : encryptedStore,
    foldStore,
    tenant,
    clientLinks,
    fullLinks: isSame ? clientLinks : prefixLinks(fullConversation, root(), engine.options.digest),
    commonAtEnd: isSame
      ? clientConversation.messages.length
      : messagesCommonAtEnd(clientConversation, fullConversation),
  };
}

const keepsNothing: FoldMemory['encryptedStore'] = {
  keep: () => Promise.resolve(undefined),
  renewOriginals: () => undefined,
};

/** Returns the text that starts every prefix hash: conversations with different roots never share a fold. */
function rootOf(
  { options }: EngineState,
  { codec, tenant }: EngineRequest,
  conversation: Conversation,
): string {
  const { previousReplyId } = conversation;
  const words = [
    // A request without tools may repeat a conversation that has some, but could not read what was folded there.
    ...(hasWayBack(options, conversation) ? [] : ['without recall']),
    // In observe mode no fold is sent, so no other instance may find one.
    ...(options.mode === 'observe' ? ['observed'] : []),
    tenant,
    codec.name,
    // Without its history, a conversation begins like many others.
    ...(previousReplyId === undefined ? [] : ['goes on from', previousReplyId]),
  ];
  return words.join(' ');
}

function messagesCommonAtEnd({ messages: one }: Conversation, { messages: other }: Conversation): number {
  let common = 0;
  while (common < one.length && one.at(-1 - common)?.canonical === other.at(-1 - common)?.canonical) common++;
  return common;
}

/** Returns the references of this conversation's last request; undefined when results are not deduplicated. */
export function referenceMemoFor(
  { referenceMemos, options }: EngineState,
  { codec, tenant }: EngineRequest,
  conversation: Conversation,
): ReferenceMemo | undefined {
  if (!options.shrinks || options.shrinks.repeats === false) return undefined;
  const beginning = conversation.messages.slice(0, 2).map(({ canonical }) => canonical);
  const key = [tenant, codec.name, ...beginning].join(' ');
  const memo = referenceMemos.get(key) ?? createReferenceMemo();
  // The size of an entry is counted when it is set.
  memo.resized = () => referenceMemos.set(key, memo);
  return memo;
}

// Reasons for missing summaries, for the receipts of folds that used an extract instead. Each is kept under the prefix that the summary would
// have covered.

export interface SummaryNotes {
  /** Returns the note on the newest summary that was begun for a prefix; undefined when there was none, or when it succeeded. */
  find(tenant: string, links: readonly string[]): string | undefined;
  note(tenant: string, link: string, problem: string): void;
  /** Removes the note when the summary was written. */
  forget(tenant: string, link: string): void;
}

function createSummaryNotes(): SummaryNotes {
  const problems = openFixed<string, string>('summary notes');
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

// Stored folds: finds the fold of a prefix, and stores new ones. The same prefix is sent as the same bytes in every later request.

/** The place where the folds and originals of one conversation are kept. */
export type FoldMemory = {
  readonly encryptedStore: Pick<EncryptedStore, 'keep' | 'renewOriginals'>;
  readonly foldStore: Pick<FoldStore, 'findHere' | 'record' | 'recordedMeanwhile' | 'markSent' | 'renew'>;
  readonly tenant: string;
  /** The prefix hashes of the conversation as the client sent it. Folds are found by these. */
  readonly clientLinks: readonly string[];
  /** The prefix hashes of the full conversation, with hidden recalls. The edits of a fold refer to its messages. */
  readonly fullLinks: readonly string[];
  /** How many of the newest messages are the same in both. */
  readonly commonAtEnd: number;
};

/** Returns the newest fold that was made of this very conversation and can be replayed. */
export function foldFor(
  folds: readonly FoundFold[],
  conversation: Conversation,
  fullLinks: readonly string[],
): FoundFold | undefined {
  const isOfIt = ({ over }: Fold) => over === undefined || fullLinks[over.messages] === over.link;
  return folds.find((found) => isOfIt(found.fold) && isReplayable(conversation, found));
}

/**
 * Converts a number of first messages of the full conversation to the number of the client's messages in front of the same place. Both
 * conversations must be the same from there on; otherwise the first place from which they are is returned.
 */
export function placeForClient(
  { clientLinks, fullLinks, commonAtEnd }: Pick<FoldMemory, 'clientLinks' | 'fullLinks' | 'commonAtEnd'>,
  messages: number,
): number {
  return Math.max(messages - (fullLinks.length - clientLinks.length), clientLinks.length - 1 - commonAtEnd);
}

/** Applies the fold that was found. Without one, or when the result would not be valid, it applies no edits. */
export async function replayFold(input: PlanInput, found: FoundFold | undefined): Promise<Draft> {
  if (!found || found.fold.edits.length === 0) return draft(input, []);
  const { edits } = found.fold;
  const replayed = await draft(input, edits);
  const { codec, conversation } = input;
  if (newProblems(codec.rules, conversation, replayed.sent).length > 0) return draft(input, []);
  // A fold from another process is checked as closely as a new one, once.
  if (!isKnownSound(edits)) {
    if (newFault(codec.rules, conversation.body, replayed.body) !== undefined) return draft(input, []);
    noteSound(edits);
  }
  return replayed;
}

/** A fold before it is recorded. */
export type NewFold = Omit<Fold, 'length' | 'over' | 'id'>;

/**
 * Stores a fold and its originals in one step, so that no fold ever refers to a missing original. Returns the other fold when another
 * instance has sent the same request meanwhile. It is found under the prefixes that contain all `planned` edits: those of the fold, or those that a
 * control group goes without. Rejects with `store-failed`.
 */
export async function rememberFold(
  memory: FoldMemory,
  conversation: Conversation,
  fold: NewFold,
  removed: readonly Edit[],
  { wins, planned = fold.edits }: { wins: Winner; planned?: readonly Edit[] | undefined },
): Promise<Recorded> {
  const slices = openSlices();
  const originals = await originalsToKeep(conversation, removed, slices);
  await slices.pause();
  const lastEdited = planned.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), 0);
  const { encryptedStore, foldStore, tenant, clientLinks, fullLinks } = memory;
  const from = placeForClient(memory, lastEdited + 1);
  const messages = from + (fullLinks.length - clientLinks.length);
  const complete = { ...fold, over: { messages, link: fullLinks[messages]! } };
  return foldStore.record(tenant, clientLinks, complete, {
    from,
    wins,
    write: (record) => encryptedStore.keep(tenant, originals, record),
  });
}

/**
 * Records that this request is sent with the fold that was found, so that every instance sends its continuations the same way. Never
 * rejects: at worst, a later request uses a fold that another instance made.
 */
export async function markSent(
  { encryptedStore, foldStore, tenant, clientLinks }: FoldMemory,
  found: FoundFold | undefined,
  sent: Pick<Fold, 'at' | 'limit'>,
): Promise<void> {
  try {
    await foldStore.markSent(tenant, clientLinks, found, {
      ...sent,
      write: (record) => encryptedStore.keep(tenant, [], record),
    });
  } catch {
    // This process has recorded it all the same.
  }
}

/**
 * Renews the retention of everything that a request is sent with: the fold that was found with its originals, and the originals
 * `others`, which that fold does not cover. Returns at once, and never fails.
 */
export function renewUsed(
  { encryptedStore, foldStore, tenant, clientLinks }: FoldMemory,
  found: FoundFold | undefined,
  others: readonly string[],
): void {
  if (found && !found.fold.foldingDisabled) foldStore.renew(tenant, clientLinks, found, allOriginalIdsOf);
  encryptedStore.renewOriginals(others);
}

/** Stores the originals of edits when there is no new fold. Rejects with `store-failed`. */
export async function keepOriginals(
  { encryptedStore, tenant }: Pick<FoldMemory, 'encryptedStore' | 'tenant'>,
  conversation: Conversation,
  removed: readonly Edit[],
): Promise<void> {
  const originals = await originalsToKeep(conversation, removed, openSlices());
  if (originals.length > 0) await encryptedStore.keep(tenant, originals);
}

async function originalsToKeep(conversation: Conversation, removed: readonly Edit[], slices: Slices) {
  const originals = await runInSlices(originalsInSteps(conversation, removed), slices);
  return Array.from(originals, ([id, original]) => ({ id, original }));
}

/**
 * Records that the provider refused our edits in this conversation. For a day it is folded only if it would not fit otherwise. `now`:
 * milliseconds since the epoch. Rejects with `store-failed`, but this process remembers the refusal.
 */
export async function disableFolding(
  memory: Pick<FoldMemory, 'foldStore' | 'tenant' | 'clientLinks'>,
  now: number | undefined,
): Promise<void> {
  const { foldStore, tenant, clientLinks } = memory;
  const trial = knownTrial(undefined, foldStore.findHere(tenant, clientLinks));
  const fold = { edits: [], foldingDisabled: true, foldingDisabledSince: now, trial };
  await foldStore.record(tenant, clientLinks, fold, { wins: 'this fold, even unstored' });
}

/** Returns the same memory without its store: only this process remembers what is recorded in it. */
export function withoutStore(memory: FoldMemory): FoldMemory {
  return { ...memory, encryptedStore: { ...memory.encryptedStore, keep: keepsNothing.keep } };
}

/**
 * True when the fold may be replayed. A fold that was found by its full prefix always may. One that was found by a shorter prefix (the
 * client went back, or rewrote its newest message) must not edit protected messages.
 */
function isReplayable(conversation: Conversation, { fold, matched }: FoundFold): boolean {
  if (matched >= fold.length) return true;
  const protectedMessages = keptMessages(conversation);
  return fold.edits.every(
    (edit) => edit.kind === 'insert-message' || !protectedMessages.has(lastMessageOf(edit)),
  );
}
