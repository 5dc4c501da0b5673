/** How each wire format spells what a replay adds to a recording: calls that nobody recorded. */
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { Codec } from '../../codecs/codec.ts';
import { gemini } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { concatBytes, jsonBytes } from '../../conversation/splice.ts';
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
  turnOf: ([message, ...others]) => (others.length === 0 ? message?.slice() : undefined),
};

const responses: ReplayFormat = {
  codec: openaiResponses,
  turn: (calls) =>
    jsonBytes(
      calls.map(({ id, name, argumentsJson }) => ({
        type: 'function_call',
        call_id: id,
        name,
        arguments: argumentsJson,
      })),
    ),
  turnOf: (items) =>
    concatBytes([
      jsonBytes('[').subarray(1, 2),
      ...items.flatMap((item, at) => (at > 0 ? [jsonBytes(',').subarray(1, 2), item] : [item])),
      jsonBytes(']').subarray(1, 2),
    ]),
};

const anthropic: ReplayFormat = {
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
  turnOf([message, ...others]) {
    if (message === undefined || others.length > 0) return undefined;
    const { content } = JSON.parse(new TextDecoder().decode(message)) as { readonly content: unknown };
    return jsonBytes(typeof content === 'string' ? [{ type: 'text', text: content }] : content);
  },
};

const geminiFormat: ReplayFormat = {
  codec: gemini,
  turn: (calls) =>
    jsonBytes({
      role: 'model',
      parts: calls.map(({ id, name, argumentsJson }) => ({
        functionCall: { id, name, args: JSON.parse(argumentsJson) as unknown },
      })),
    }),
  turnOf: (messages) => chat.turnOf(messages),
};

/** The replay format of a codec of ours. */
export function formatOf(codec: Codec): ReplayFormat {
  const format = [chat, responses, anthropic, geminiFormat].find((known) => known.codec === codec);
  if (!format) throw new RangeError(`${codec.name} cannot be replayed: add it to the formats.`);
  return format;
}
