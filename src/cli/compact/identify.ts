/** Identifies a record: its id, and the wire format of its body. */
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { Codec } from '../../codecs/codec.ts';
import { gemini } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { isRecord } from '../../conversation/json-scan.ts';
import type { Format } from '../flags.ts';

/** An identified record, or the reason why it cannot be used. */
export type IdentifiedRecord =
  | { readonly status: 'ok'; readonly id: string | undefined; readonly wire: WireFormat }
  | { readonly status: 'bad'; readonly reason: string };

/** A wire format, as files use it. */
export type WireFormat = {
  readonly codec: Codec;
  /** The field that holds the messages. */
  readonly list: string;
  /** True when this field may be a text, the user's message. */
  readonly mayBeText: boolean;
  /** Model whose tokenizer and window are used for bodies without a model. */
  readonly usualModel: string;
};

const wires: Readonly<Record<Exclude<Format, 'auto'>, WireFormat>> = {
  chat: { codec: openaiChat, list: 'messages', mayBeText: false, usualModel: 'gpt-4o' },
  responses: { codec: openaiResponses, list: 'input', mayBeText: true, usualModel: 'gpt-5' },
  anthropic: {
    codec: anthropicMessages,
    list: 'messages',
    mayBeText: false,
    usualModel: 'claude-sonnet-4-5',
  },
  gemini: { codec: gemini, list: 'contents', mayBeText: false, usualModel: 'gemini-2.5-pro' },
};

/** Identifies a record by its bytes. */
export function identify(bytes: Uint8Array, format: Format, maxBytes: number): IdentifiedRecord {
  if (bytes.length > maxBytes) {
    const reason = `it has ${bytes.length} bytes, more than limits.maxBodyBytes (${maxBytes})`;
    return { status: 'bad', reason };
  }
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return {
      status: 'bad',
      reason: error instanceof SyntaxError ? `not JSON: ${error.message}` : 'not UTF-8',
    };
  }
  if (!isRecord(value)) return { status: 'bad', reason: 'not a JSON object' };
  const found = format === 'auto' ? formatOf(value) : format;
  if (found === undefined)
    return { status: 'bad', reason: "it has no list 'messages', 'input' or 'contents'" };
  const wire = wires[found];
  if (!holdsMessages(value, wire)) return { status: 'bad', reason: `it has no list '${wire.list}'` };
  const { id } = value;
  return { status: 'ok', id: typeof id === 'string' && id !== '' ? id : undefined, wire };
}

/** Finds the format by the name of the list of messages, which only two formats share. */
function formatOf(body: Readonly<Record<string, unknown>>): Exclude<Format, 'auto'> | undefined {
  if (holdsMessages(body, wires.chat)) return isAnthropic(body) ? 'anthropic' : 'chat';
  if (holdsMessages(body, wires.gemini)) return 'gemini';
  return holdsMessages(body, wires.responses) ? 'responses' : undefined;
}

function holdsMessages(body: Readonly<Record<string, unknown>>, { list, mayBeText }: WireFormat): boolean {
  return Array.isArray(body[list]) || (mayBeText && typeof body[list] === 'string');
}

/** True for a body of Anthropic Messages: by fields that only one of the two formats has, then by the name of the model. */
function isAnthropic(body: Readonly<Record<string, unknown>>): boolean {
  const messages = recordsIn(body['messages']);
  if (messages.some(({ role, tool_calls }) => chatRoles.has(role) || tool_calls !== undefined)) return false;
  if (body['system'] !== undefined || body['anthropic_version'] !== undefined) return true;
  if (recordsIn(body['tools']).some((tool) => 'input_schema' in tool)) return true;
  if (messages.some(({ content }) => recordsIn(content).some(({ type }) => ownBlocks.has(type)))) return true;
  const { model } = body;
  return typeof model === 'string' && model.includes('claude') && messages[0]?.['role'] !== 'system';
}

/** Roles of Chat Completions. Not `system`, which the other format also allows in the middle of a conversation. */
const chatRoles: ReadonlySet<unknown> = new Set(['tool', 'developer', 'function']);

const ownBlocks: ReadonlySet<unknown> = new Set([
  'tool_use',
  'tool_result',
  'thinking',
  'redacted_thinking',
  'image',
  'document',
]);

function recordsIn(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
