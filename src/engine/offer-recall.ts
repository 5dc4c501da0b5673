/**
 * When the model is offered the recall tool. Tools stand ahead of all messages in every provider's cache, so one that comes late re-bills
 * the whole conversation, and one that is never called costs some tokens in each: docs/decisions/0004.
 */
import type { Codec, RecallTool } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { recallToolFor } from '../recall/tool.ts';
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

/**
 * Whether the tool is offered from the first request of a conversation on. With `with-fold` it is offered as soon as something can be
 * recalled, except to models that bind their replies to the tools: a tool that comes later would make these replies invalid.
 */
export function isOfferedAlways(
  { offerRecall = 'always', isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { rules }: Pick<Codec, 'rules'>,
  conversation: Conversation,
): boolean {
  return isHistoryKept === true || offerRecall === 'always' || rules.bindsPrefix(conversation);
}
