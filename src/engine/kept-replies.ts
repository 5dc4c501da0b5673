/**
 * A request that goes on from a reply its provider keeps, as the provider takes it: the client knows the reply by one name, but what the
 * model recalled in private may stand under another, or wait for its answers.
 */
import type { Codec, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/hidden-recall.ts';

/** The conversation itself where nothing was recalled in private. */
export function withKeptReply(
  codec: Codec,
  reading: ReadContext,
  conversation: Conversation,
  kept: KeptReply | undefined,
): Conversation {
  return kept && codec.continueReply
    ? codec.read(codec.continueReply(conversation, kept), reading)
    : conversation;
}
