/** The wire formats that can be replayed, with how they spell a call that nobody recorded. */
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { jsonBytes } from '../../conversation/splice.ts';
import type { ReplayFormat } from '../../replay/recording.ts';

export const chat: ReplayFormat = {
  codec: openaiChat,
  turn: (calls) =>
    jsonBytes({
      role: 'assistant',
      content: null,
      tool_calls: calls.map(({ id, name, argumentsJson }) => ({
        id,
        type: 'function',
        function: { name, arguments: argumentsJson },
      })),
    }),
  turnOf: (message) => message.slice(),
};

export const anthropic: ReplayFormat = {
  codec: anthropicMessages,
  turn: (calls) =>
    jsonBytes(
      calls.map(({ id, name, argumentsJson }) => ({
        type: 'tool_use',
        id,
        name,
        input: JSON.parse(argumentsJson) as unknown,
      })),
    ),
  turnOf(message) {
    const { content } = JSON.parse(new TextDecoder().decode(message)) as { readonly content: unknown };
    return jsonBytes(typeof content === 'string' ? [{ type: 'text', text: content }] : content);
  },
};
