/**
 * Reads lines of a file as conversations to replay. A Chat Completions line without a model is a recorded conversation of a data set, and
 * gets a prefix; every other line is the body of a request as it was sent.
 */
import { prefixLinks } from '../../conversation/messages.ts';
import { sha256 } from '../../store/encrypted-store.ts';
import type { ReplayFormat, RecordingSource } from '../../replay/recording.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';
import type { Format } from '../flags.ts';
import { identify } from '../compact/identify.ts';
import { conversationBody, type ConversationRecord } from './conversation-body.ts';
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { FormatName } from '../../library/formats.ts';
import { gemini } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { concatBytes, jsonBytes } from '../../conversation/json-scan.ts';

export type SourceOptions = {
  readonly format: Format;
  /** Maximum bytes of a line. */
  readonly maxBytes: number;
  /** Tokens of the prefix of a recorded conversation. */
  readonly prefix: number;
  readonly counter: TokenCounter;
};

export type ReadSource =
  | { readonly status: 'ok'; readonly source: RecordingSource }
  | { readonly status: 'bad'; readonly reason: string };

/**
 * Reads a line. `place` is the id of a line without one, and `file` the source of a line without one. Throws `not-this-format` for a recorded
 * conversation that cannot be read.
 */
export function readSource(
  bytes: Uint8Array,
  { place, file }: { readonly place: string; readonly file: string },
  { format, maxBytes, prefix, counter }: SourceOptions,
): ReadSource {
  const known = identify(bytes, format, maxBytes);
  if (known.status === 'bad') return known;
  const id = known.id ?? place;
  const line: Partial<ConversationRecord> & { readonly model?: unknown } = known.body;
  if (known.format !== 'chat' || line.model !== undefined)
    return { status: 'ok', source: { id, source: file, format: replayFormats[known.format], body: bytes } };
  const { messages = [], tools, source } = line;
  const body = conversationBody({ messages, ...(Array.isArray(tools) ? { tools } : {}) }, prefix, counter);
  return {
    status: 'ok',
    source: { id, source: typeof source === 'string' ? source : file, format: chat, body },
  };
}

/** Returns the requests that no other request continues: of a log with all requests of a conversation, only the last. */
export function wholeConversations(sources: readonly RecordingSource[]): readonly RecordingSource[] {
  const chains = sources.map(chainOf);
  const begun = new Set(chains.flatMap((links) => links.slice(0, -1)));
  const seen = new Set<string>();
  return sources.filter((_, at) => {
    const whole = chains[at]!.at(-1)!;
    const isNew = !begun.has(whole) && !seen.has(whole);
    seen.add(whole);
    return isNew;
  });
}

/** Returns the prefix hashes of a source. A body that cannot be read has only its own hash; the replay reports it. */
function chainOf({ body, source, format: { codec } }: RecordingSource): readonly string[] {
  try {
    const conversation = codec.read(body, { digest: sha256, blocks: new Map() });
    return prefixLinks(conversation, `${codec.name} ${source}`, sha256);
  } catch {
    return [sha256(body)];
  }
}

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

/** The wire formats that can be replayed. */
export const replayFormats: Readonly<Record<FormatName, ReplayFormat>> = {
  chat,
  responses,
  anthropic,
  gemini: geminiFormat,
};
