/** Finds the fold made on a conversation's prefix before, and keeps new ones: the same prefix is sent as the same bytes for ever. */
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { allOriginalIdsOf, originalsOf } from '../conversation/original.ts';
import type { Fold } from '../store/fold-records.ts';
import type { FoundFold, FoldStore, Recorded, RecordOptions } from '../store/fold-store.ts';
import type { EncryptedStore } from '../store/encrypted-store.ts';
import { isKnownSound, newFault, newProblems, noteSound } from './check.ts';
import { type Draft, draft, type PlanInput } from './plan.ts';
import { keptMessages } from './protection.ts';

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
export async function leaveAlone(
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
