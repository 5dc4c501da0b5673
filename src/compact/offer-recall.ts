/**
 * When the model is offered the recall tool. Tools stand ahead of all messages in every provider's cache, so one that comes late re-bills
 * the whole conversation, and one that is never called costs some tokens in each: docs/decisions/0004.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KnownOffer, Opening } from '../memory/recall-offers.ts';
import { recallToolFor } from '../recall/tool.ts';
import { beginningOf } from './corrected.ts';
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

/**
 * Whether what a fold takes away can be read again: by the recall tool, or by the program that keeps the folded history. `never` is the
 * user's own wish to fold without one. Everywhere else (a request without tools, one that asks for several replies) a fold would leave ids
 * that nobody can read, so only what would not fit otherwise is folded: docs/decisions/0028.
 */
export function hasWayBack(
  options: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  conversation: Conversation,
): boolean {
  const isWished = options.offerRecall === 'never' || options.isHistoryKept === true;
  return isWished || toolToOffer(options, conversation) !== undefined;
}

/** By what it is known whether a conversation is offered it; undefined where that is not asked. */
export function openingOf(
  options: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept' | 'mode'>,
  conversation: Conversation,
  links: readonly string[],
): Opening | undefined {
  const isLearned = (options.offerRecall ?? 'learned') === 'learned' && !options.isHistoryKept;
  // What is only observed is not kept, nor was it seen by who keeps.
  if (!isLearned || options.mode === 'observe' || !toolToOffer(options, conversation)) return undefined;
  const beginning = beginningOf(conversation, links);
  return beginning === undefined ? undefined : { toolNames: conversation.toolNames, beginning };
}

/**
 * Whether all of a conversation is offered it, with something to recall or without: one that begins, or of which nothing is known any more,
 * where others of its agent came to need it.
 */
export function isOfferedThroughout(
  { offerRecall, isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { rules }: Pick<Codec, 'rules'>,
  conversation: Conversation,
  offer: KnownOffer | undefined,
): boolean {
  if (isHistoryKept) return true;
  // Sealed replies are bound to the tools, too: one that comes later would make all of them invalid.
  if (offerRecall === 'always' || rules.bindsPrefix(conversation)) return true;
  return offer?.isOffered ?? offer?.isAgentFolded ?? false;
}
