/**
 * How long a conversation has been silent: whether its provider may have dropped it from its cache. What this process sent last is
 * remembered (last-sent.ts), and the fold store holds for a day when any did. Another gateway may have sent something that is not kept yet: but
 * each request leaves a reply in the history, so more than one reply behind what is known means that nobody here knows.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { FoundFolds as Recorded } from '../store/fold-store.ts';
import type { Found } from './last-sent.ts';

export type Traces = {
  /** As the client sent it. */
  readonly conversation: Conversation;
  readonly last: Found | undefined;
  readonly sent: Recorded['lastSent'];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** Milliseconds; undefined where nobody knows. */
export function idleMs({ conversation, last, sent, now }: Traces): number | undefined {
  // Where the provider keeps the history, a request begins like those of other conversations.
  if (conversation.previousReplyId !== undefined) return undefined;
  const times = [
    last && repliesFrom(conversation, last.matched) <= 1 ? last.request.at : undefined,
    sent && repliesFrom(conversation, sent.matched) <= 1 ? sent.at : undefined,
  ].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(0, now - Math.max(...times));
}

/** Of what the model's prompts are kept for, and what the client asks for. */
export function longest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** Some formats make several messages of one reply. */
function repliesFrom({ messages }: Conversation, from: number): number {
  const isReply = (at: number) => messages[at]?.role === 'assistant';
  return messages.slice(from).filter(({ index }) => isReply(index) && (index === from || !isReply(index - 1)))
    .length;
}
