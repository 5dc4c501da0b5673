/** Finds the fold made on a conversation's prefix before, and keeps new ones: the same prefix is sent as the same bytes for ever. */
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { originalsOf } from '../conversation/original.ts';
import type { Fold, FoundFold, Ledger } from '../memory/ledger.ts';
import type { Vault } from '../memory/vault.ts';
import { newProblems } from './check.ts';
import { type Draft, draft, type PlanInput } from './plan.ts';
import { keptMessages } from './protection.ts';

/** Where folds and originals are kept, for one conversation. */
export type FoldMemory = {
  readonly vault: Pick<Vault, 'keep'>;
  readonly ledger: Ledger;
  readonly tenant: string;
  /** The links of the conversation's prefix chain. */
  readonly links: readonly string[];
};

/** The conversation under the newest fold on its chain; without one, or when it would no longer be valid, under no edits. */
export function replayFold(input: PlanInput, found: FoundFold | undefined): Draft {
  if (!found || found.fold.edits.length === 0 || !isReplayable(input.conversation, found))
    return draft(input, []);
  const replayed = draft(input, found.fold.edits);
  const broken = newProblems(input.codec.rules, input.conversation, replayed.sent);
  return broken.length > 0 ? draft(input, []) : replayed;
}

/**
 * Before anything is sent: the fold and the originals of `removed` at once, all or none, so that no fold ever points at nothing. Rejects
 * with `store-failed`.
 */
export async function rememberFold(
  memory: FoldMemory,
  conversation: Conversation,
  fold: Omit<Fold, 'length'>,
  removed: readonly Edit[],
): Promise<void> {
  const { edits } = fold;
  const kept = keepable(conversation, removed);
  const lastTouched = edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), 0);
  const { vault, ledger, tenant, links } = memory;
  await ledger.record(tenant, links, lastTouched + 1, fold, (record) => vault.keep(tenant, kept, record));
}

/** Keeps originals that no fold points at. Rejects with `store-failed`. */
export async function keepOriginals(
  { vault, tenant }: FoldMemory,
  conversation: Conversation,
  removed: readonly Edit[],
): Promise<void> {
  const kept = keepable(conversation, removed);
  if (kept.length > 0) await vault.keep(tenant, kept);
}

function keepable(conversation: Conversation, removed: readonly Edit[]) {
  return [...originalsOf(conversation, removed)].map(([id, original]) => ({ id, original }));
}

/** From here on the conversation is folded only to make it fit: its provider refused our edits. Rejects with `store-failed`. */
export async function leaveAlone({ ledger, tenant, links }: FoldMemory): Promise<void> {
  await ledger.record(tenant, links, links.length - 1, { edits: [], alone: true });
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
