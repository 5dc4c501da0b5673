/** Says what makes a request too large when no legal fold can bring it under the window. Names places, never content. */
import type { Correction } from '../tokens/calibration.ts';
import type { ConversationCounter } from '../tokens/count-conversation.ts';
import type { Draft } from './plan.ts';

/** For example: "41,200 tokens stay, 32,000 fit: message 0 (system) 30,100, tools 9,000." Undefined for what fits. */
export function whatIsLarge(
  { sent, tokens }: Draft,
  counter: ConversationCounter,
  atMost: number | undefined,
  { correct }: Correction,
): string | undefined {
  const needed = correct(tokens);
  if (atMost === undefined || needed <= atMost) return undefined;
  // Of what a count leaves out nobody knows where it stands: each part is told with its share of it.
  const share = (counted: number): number => Math.round((counted * needed) / tokens);
  const blocks = sent.preamble.map((block) => ({
    what: block.parts[0]?.type === 'tool-definition' ? 'tools' : 'system',
    size: counter.block(sent, block),
  }));
  const messages = sent.messages.map((message) => ({
    what: `message ${message.index} (${message.role})`,
    size: counter.message(sent, message.index),
  }));
  const largest = [...blocks, ...messages].toSorted((a, b) => b.size - a.size).slice(0, 3);
  const named = largest.map(({ what, size }) => `${what} ${share(size)}`).join(', ');
  return `${needed} tokens stay, ${atMost} fit: ${named}.`;
}
