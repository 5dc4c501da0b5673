/** What tells a request's conversation from others, and how much of what was sent before a fold leaves as it stands. Pure. */
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import type { Correction } from '../tokens/calibration.ts';
import { beginningOf } from './corrected.ts';
import type { Draft } from './plan.ts';
import type { Identity } from './prepared.ts';

/** `links` are those of the prefix chain of the conversation as the client sent it. */
export function identityOf(conversation: Conversation, links: readonly string[]): Identity {
  const { previousReplyId, sessionKey } = conversation;
  const beginning = beginningOf(conversation, links);
  return {
    links: previousReplyId === undefined ? links : [],
    // The first link stands for no message: all conversations of a tenant share it.
    beginning: beginning === links[0] ? undefined : beginning,
    session: sessionKey,
  };
}

/** Tokens ahead of the first message that a fold changed: system, tools and what stays as it was. Undefined when it changed none. */
export function tokensKept(
  before: Draft,
  after: Draft,
  counter: ConversationCounter,
  { correct }: Correction,
): number | undefined {
  if (after === before) return undefined;
  const { messages } = after.sent;
  const first = messages.findIndex(
    ({ canonical }, index) => canonical !== before.sent.messages[index]?.canonical,
  );
  const rewritten = first < 0 ? [] : messages.slice(first);
  return correct(
    rewritten.reduce((left, { index }) => left - counter.message(after.sent, index), after.tokens),
  );
}
