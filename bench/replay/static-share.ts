/** Computes the tokens of tools and system text that are a given share of the mean request. */
import { type ConversationRecord, conversationBody } from '../../src/cli/replay/conversation-body.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { conversationCounter } from '../../src/tokens/count-conversation.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';

/** Returns the length of a prefix, in tokens, that is `share` of the mean request if every request of these conversations begins with it. */
export function prefixForShare(
  records: readonly ConversationRecord[],
  share: number,
  tokens: TokenCounter,
): number {
  const reading = { digest: sha256, blocks: new Map() };
  const counter = conversationCounter(tokens);
  let requests = 0;
  let sent = 0;
  for (const record of records) {
    const conversation = chat.codec.read(conversationBody(record, 0, tokens), reading);
    let history = 0;
    for (const { role, index } of conversation.messages) {
      const isReply = role === 'assistant' && conversation.messages[index - 1]?.role !== 'assistant';
      if (isReply && index > 0) {
        requests += 1;
        sent += history;
      }
      history += counter.message(conversation, index);
    }
  }
  return Math.round((sent / requests) * (share / (1 - share)));
}
