/**
 * When the model is offered the recall tool. Tools stand ahead of all messages in every provider's cache, so one that comes late re-bills
 * the whole conversation, and one that is never called costs some tokens in each: docs/decisions/0004.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { FoundFold } from '../memory/ledger.ts';
import { recallToolFor } from '../recall/tool.ts';
import type { KnownBefore } from './look-up.ts';
import type { EngineOptions } from './options.ts';

/** What can be offered. Side calls without tools (titles, routing) are not the conversation; for several replies recalls could not be answered apart. */
export function toolToOffer(
  { offerRecall, isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { toolNames, replies }: Conversation,
): RecallTool | undefined {
  if (offerRecall === 'never' || toolNames.length === 0 || replies !== 1) return undefined;
  if (!isHistoryKept) return recallToolFor(toolNames);
  const own = recallToolFor([]);
  return toolNames.includes(own.name) ? own : undefined;
}

export type Offering = {
  readonly codec: Codec;
  readonly conversation: Conversation;
  /** With what the model recalled in private. */
  readonly asSent: Conversation;
  readonly known: KnownBefore;
  readonly found: FoundFold | undefined;
};

/**
 * Whether it is offered before this request has anything to recall: as it was in the request before; one that begins, or of which
 * nothing is known any more, is offered it where other conversations of its agent came to need it.
 */
export function isOffered(
  { offerRecall, isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { codec, conversation, asSent, known, found }: Offering,
): boolean {
  if (isHistoryKept || offerRecall === 'always' || asSent !== conversation) return true;
  // Sealed replies are bound to the tools, too: one that comes later would make all of them invalid.
  if (codec.rules.bindsPrefix(conversation)) return true;
  return known.ledger.sent?.offers ?? found?.fold.offers ?? known.isAgentFolded;
}
