/** Makes the input of a fold plan for tests. Four characters count as one token, so that expected counts are easy to compute. */
import { openFixed } from '../../src/caches.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Conversation } from '../../src/conversation/conversation.ts';
import type { PlanInput } from '../../src/engine/plan.ts';
import { protectionOf } from '../../src/engine/protect.ts';
import type { Pins } from '../../src/engine/types.ts';
import { conversationCounter } from '../../src/tokens/count-conversation.ts';
import type { TokenCounter } from '../../src/tokens/token-counter.ts';
import { freshReading } from './chat-conversation.ts';

const noPins: Pins = { tools: [], texts: [] };

/** `onCount` is called for each text that is counted. */
export function planInputFor(
  conversation: Conversation,
  {
    pins = noPins,
    onCount = () => {},
    ...change
  }: Partial<PlanInput> & { pins?: Pins; onCount?: () => void } = {},
): PlanInput {
  const counter: TokenCounter = {
    name: 'by hand',
    exact: true,
    overhead: { message: 0, tool: 0, request: 0 },
    count: (text) => {
      onCount();
      return Math.ceil(text.length / 4);
    },
    image: () => 0,
  };
  return {
    codec: openaiChat,
    reading: freshReading(),
    conversation,
    counter: conversationCounter(counter),
    protects: protectionOf(conversation, { pins, recallTool: 'read_memory' }),
    idOf: () => 'mem_1',
    recallTool: undefined,
    shrinking: undefined,
    minResultBytes: 1_000,
    isHistoryKept: false,
    isOffered: true,
    toolCosts: openFixed('tool costs'),
    compressions: new Map(),
    isTooLate: () => false,
    ...change,
  };
}
