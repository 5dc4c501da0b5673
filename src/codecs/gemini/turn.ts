/** Where the turn begins whose signatures the provider checks: "the most recent user message" that answers no call. */
import type { Conversation } from '../../conversation/conversation.ts';
import { remembered } from '../remembered.ts';

/** Index of that content; 0 where there is none. Asked for every edit. */
export const currentTurn: (conversation: Conversation) => number = remembered(({ messages }) => {
  const begins = messages.findLast(
    ({ role, parts }) => role === 'user' && !parts.some((part) => part.type === 'tool-result'),
  );
  return begins?.index ?? 0;
});
