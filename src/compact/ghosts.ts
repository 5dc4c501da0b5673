/**
 * The conversation as the model knows it: with what it recalled in private put back where it stood in the client's copies of its
 * replies. Everything after this step (folds, counts, recalls) sees that conversation.
 */
import type { Codec, PlacedGhost, Reading } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Ghosts } from '../memory/ghosts.ts';
import type { Ledger } from '../memory/ledger.ts';
import { newProblems } from './check.ts';

export type GhostRequest = {
  readonly codec: Codec;
  readonly reading: Reading;
  readonly ghosts: Ghosts;
  readonly ledger: Ledger;
  readonly tenant: string;
  /** The prefix chain of the conversation as the client sent it. */
  readonly links: readonly string[];
};

/**
 * The conversation itself where nothing was recalled, and where it is left alone because its provider refused our edits. Ghosts that
 * would make it invalid are left out. Rejects with `store-failed`.
 */
export async function withGhosts(request: GhostRequest, conversation: Conversation): Promise<Conversation> {
  const ghosts = await ghostsOf(request, conversation);
  if (ghosts.length === 0) return conversation;
  const found = await request.ledger.find(request.tenant, request.links);
  if (found?.fold.alone) return conversation;
  return inserted(request, conversation, ghosts) ?? validOnes(request, conversation, ghosts);
}

async function ghostsOf(
  { ghosts, tenant, links }: GhostRequest,
  { messages }: Conversation,
): Promise<readonly PlacedGhost[]> {
  const starts = messages.filter(
    ({ role, index }) => role === 'assistant' && index > 0 && messages[index - 1]?.role !== 'assistant',
  );
  const replies = starts.map(({ index }) => ({ before: links[index]!, through: links[index + 1]! }));
  const found = await ghosts.find(tenant, replies);
  return starts
    .map(({ index }, order) => ({ at: index, turns: found[order] ?? [] }))
    .filter(({ turns }) => turns.length > 0);
}

/** Undefined when the result breaks a rule that the client's own conversation keeps. */
function inserted(
  { codec, reading }: GhostRequest,
  conversation: Conversation,
  ghosts: readonly PlacedGhost[],
): Conversation | undefined {
  const body = codec.insertGhosts(conversation, ghosts);
  if (body === conversation.body) return conversation;
  const whole = codec.read(body, reading);
  return newProblems(codec.rules, conversation, whole).length > 0 ? undefined : whole;
}

function validOnes(
  request: GhostRequest,
  conversation: Conversation,
  ghosts: readonly PlacedGhost[],
): Conversation {
  const valid = ghosts.filter((ghost) => inserted(request, conversation, [ghost]) !== undefined);
  return inserted(request, conversation, valid) ?? conversation;
}
