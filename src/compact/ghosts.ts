/**
 * The conversation as the model knows it: with what it recalled in private put back where it stood in the client's copies of its
 * replies. Everything after this step (folds, counts, recalls) sees that conversation.
 */
import type { Codec, PlacedGhost, Reading } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Ghosts, Reply } from '../memory/ghosts.ts';
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
  // Asked at once: for most conversations there are no ghosts, and this is the fold that is looked up next.
  const [ghosts, found] = await Promise.all([
    ghostsOf(request, conversation),
    request.ledger.find(request.tenant, request.links),
  ]);
  if (ghosts.length === 0 || found?.fold.alone) return conversation;
  const whole = inserted(request, conversation, ghosts);
  return whole ?? inserted(request, conversation, validOnes(request, conversation, ghosts)) ?? conversation;
}

async function ghostsOf(
  { ghosts, tenant, links }: GhostRequest,
  { messages }: Conversation,
): Promise<readonly PlacedGhost[]> {
  const found = await ghosts.find(tenant, copiesIn(messages, links));
  return found.map(({ reply, turns }) => ({ at: reply.at, turns })).toReversed();
}

type Copy = Reply & { readonly at: number };

/** Where the client's copies of replies stand, the newest first: neighbouring messages of the model, behind some of another side. */
function* copiesIn(messages: Conversation['messages'], links: readonly string[]): Generator<Copy> {
  const isReply = (index: number) => messages[index]?.role === 'assistant';
  for (let end = messages.length; end > 1; end--) {
    if (!isReply(end - 1)) continue;
    let at = end - 1;
    while (at > 0 && isReply(at - 1)) at--;
    if (at > 0) yield { at, before: links[at]!, through: links[end]! };
    end = at;
  }
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

/** Of ghosts that cannot all be put back those that can, looked for by halves: most often all but one can. */
function validOnes(
  request: GhostRequest,
  conversation: Conversation,
  ghosts: readonly PlacedGhost[],
): readonly PlacedGhost[] {
  if (ghosts.length <= 1) return [];
  const middle = Math.floor(ghosts.length / 2);
  return [ghosts.slice(0, middle), ghosts.slice(middle)].flatMap((half) =>
    inserted(request, conversation, half) ? half : validOnes(request, conversation, half),
  );
}
