/**
 * A request that goes on from a reply its provider keeps, as the provider takes it: the client knows the reply by one name, but what the
 * model recalled in private may stand under another, or wait for its answers.
 */
import type { Codec, Reading } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReplies } from '../memory/kept-replies.ts';

export type KeptRequest = {
  readonly codec: Codec;
  readonly reading: Reading;
  readonly keptReplies: KeptReplies;
  readonly tenant: string;
};

/** The conversation itself where nothing was recalled in private. Rejects with `store-failed`. */
export async function withKeptReply(
  { codec, reading, keptReplies, tenant }: KeptRequest,
  conversation: Conversation,
): Promise<Conversation> {
  const knownAs = conversation.goesOnFrom;
  if (knownAs === undefined || !codec.goOnFrom) return conversation;
  const kept = await keptReplies.find(tenant, knownAs);
  return kept ? codec.read(codec.goOnFrom(conversation, kept), reading) : conversation;
}
