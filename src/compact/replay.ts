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
export async function replayFold(input: PlanInput, memory: FoldMemory): Promise<Replayed> {
  const found = await memory.ledger.find(memory.tenant, memory.links);
  const alone = found?.fold.alone ?? false;
  if (!found || !isReplayable(input.conversation, found)) return { start: draft(input, []), alone };
  const replayed = draft(input, found.fold.edits);
  const broken = newProblems(input.codec.rules, input.conversation, replayed.sent);
  return { start: broken.length > 0 ? draft(input, []) : replayed, alone };
}

/** `alone`: the provider refused our edits in this conversation, so only what must be folded is. */
export type Replayed = { readonly start: Draft; readonly alone: boolean };

/** Before anything is sent: originals and fold at once, all or none, so that no fold ever points at nothing. Rejects with `store-failed`. */
export async function rememberFold(
  memory: FoldMemory,
  conversation: Conversation,
  before: readonly Edit[],
  { edits, alone }: Omit<Fold, 'length'>,
): Promise<void> {
  const known = new Set(before);
  const originals = originalsOf(
    conversation,
    edits.filter((edit) => !known.has(edit)),
  );
  const kept = [...originals].map(([id, original]) => ({ id, original }));
  const lastTouched = edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), 0);
  const { vault, ledger, tenant, links } = memory;
  await ledger.record(tenant, links, lastTouched + 1, { edits, alone }, (fold) =>
    vault.keep(tenant, kept, fold),
  );
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
