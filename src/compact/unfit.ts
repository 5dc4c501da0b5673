/** Says what makes a request too large when no legal fold can bring it under the window. Names places, never content. */
import type { Conversation } from '../conversation/conversation.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';

/** For example: "41,200 tokens stay, 32,000 fit: message 0 (system) 30,100, tools 9,000." */
export function whatIsLarge(
  sent: Conversation,
  counter: ConversationCounter,
  total: number,
  atMost: number,
): string {
  const blocks = sent.preamble.map((block) => ({
    what: block.parts[0]?.type === 'tool-definition' ? 'tools' : 'system',
    tokens: counter.block(sent, block),
  }));
  const messages = sent.messages.map((message) => ({
    what: `message ${message.index} (${message.role})`,
    tokens: counter.message(sent, message.index),
  }));
  const largest = [...blocks, ...messages].toSorted((a, b) => b.tokens - a.tokens).slice(0, 3);
  const named = largest.map(({ what, tokens }) => `${what} ${tokens}`).join(', ');
  return `${total} tokens stay, ${atMost} fit: ${named}.`;
}
