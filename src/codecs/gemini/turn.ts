/** Where the turn begins whose signatures the provider checks: "the most recent user message" that answers no call. */
import type { Conversation } from '../../conversation/conversation.ts';

/** Index of that content; 0 where there is none. */
export function currentTurn({ messages }: Conversation): number {
  const begins = messages.findLast(
    ({ role, parts }) => role === 'user' && !parts.some((part) => part.type === 'tool-result'),
  );
  return begins?.index ?? 0;
}
