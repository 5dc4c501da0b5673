/**
 * Reads the body that a program passes to the library: bytes, a text or an object. If the program does not name the wire format, it is found
 * by the shape of the body, and its codec is loaded. No error contains content. Pure except for loading codecs.
 */
import type { Codec } from '../codecs/codec.ts';
import type { Span } from '../conversation/conversation.ts';
import {
  firstElements,
  isRecord,
  jsonBytes,
  objectsOf,
  parseSpan,
  scanArray,
  scanObject,
} from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';

/** A request body as a program has it: the bytes, their text, or the object that an SDK takes. */
export type GivenBody = Uint8Array | string | object;

type NamedCodec = 'openaiChat' | 'openaiResponses' | 'anthropicMessages' | 'gemini';

const load: Readonly<Record<NamedCodec, () => Promise<Codec>>> = {
  openaiChat: async () => (await import('../codecs/openai-chat/index.ts')).openaiChat,
  openaiResponses: async () => (await import('../codecs/openai-responses/index.ts')).openaiResponses,
  anthropicMessages: async () => (await import('../codecs/anthropic-messages/index.ts')).anthropicMessages,
  gemini: async () => (await import('../codecs/gemini/index.ts')).gemini,
};

/** Returns the bytes of a body. They are those of the program where it has bytes. Throws `bad-config` for an object that is no JSON. */
export function bytesOfBody(body: GivenBody): Uint8Array {
  if (body instanceof Uint8Array) return body;
  if (typeof body === 'string') return new TextEncoder().encode(body);
  try {
    return jsonBytes(body);
  } catch (cause) {
    throw new LeporelloError('bad-config', 'request.body is an object that JSON.stringify refuses.', {
      cause,
    });
  }
}

/** Returns the codec for a body by its shape. Throws `bad-config` at once if no format has this shape. */
export function codecFor(body: Uint8Array): Promise<Codec> {
  const members = membersOf(body);
  const name = members && formatOf(body, members);
  if (name) return load[name]();
  if (!members)
    throw new LeporelloError(
      'bad-config',
      'request.body is not one JSON object. Pass the whole body of a request to a model.',
    );
  throw new LeporelloError(
    'bad-config',
    `request.body is an object with ${keysOf(members)}, so its wire format cannot be found. Pass codec, one of those that leporello/codecs/ exports: ${Object.keys(load).join(', ')}.`,
  );
}

type Members = ReadonlyMap<string, Span>;

/** Returns the top-level members of a body by key; undefined for anything but an object. */
function membersOf(body: Uint8Array): Members | undefined {
  try {
    return new Map(scanObject(body, 0).members.map(({ key, value }) => [key, value]));
  } catch {
    return undefined;
  }
}

/** Lists the first keys. Values are never shown. */
function keysOf(members: Members): string {
  const keys = [...members.keys()].map((key) => key.slice(0, 30).toWellFormed());
  if (keys.length === 0) return 'no members';
  const more = keys.length > 8 ? ` and ${keys.length - 8} more` : '';
  return `the members ${keys.slice(0, 8).join(', ')}${more}`;
}

/**
 * Two formats call their list `messages`. They are told apart by the tools, by members of the request, or by the first message that only one
 * of them allows. A request that both allow means the same in both, so it is read as the more common one.
 */
function formatOf(body: Uint8Array, members: Members): NamedCodec | undefined {
  if (members.has('contents')) return 'gemini';
  if (members.has('messages')) {
    if (['system', 'anthropic_version', 'stop_sequences'].some((key) => members.has(key)))
      return 'anthropicMessages';
    if (members.has('functions') || members.has('max_completion_tokens')) return 'openaiChat';
    return byTools(body, members.get('tools')) ?? byMessages(body, members.get('messages')!);
  }
  if (members.has('input') || members.has('previous_response_id')) return 'openaiResponses';
  return undefined;
}

function byTools(body: Uint8Array, tools: Span | undefined): NamedCodec | undefined {
  if (!tools || body[tools.start] !== '['.charCodeAt(0)) return undefined;
  const [first] = firstElements(body, tools.start, 1);
  const tool = first && parseSpan(body, first);
  if (!isRecord(tool)) return undefined;
  return 'function' in tool || 'custom' in tool ? 'openaiChat' : 'anthropicMessages';
}

function byMessages(body: Uint8Array, list: Span): NamedCodec | undefined {
  if (body[list.start] !== '['.charCodeAt(0)) return undefined;
  for (const span of scanArray(body, list.start).elements) {
    const message = parseSpan(body, span);
    const name = isRecord(message) ? byMessage(message) : undefined;
    if (name) return name;
  }
  return 'openaiChat';
}

function byMessage({ role, content, ...others }: Readonly<Record<string, unknown>>): NamedCodec | undefined {
  if (role === 'system' || role === 'developer' || role === 'tool' || role === 'function')
    return 'openaiChat';
  if ('tool_calls' in others || 'function_call' in others) return 'openaiChat';
  const kinds = objectsOf(content).map(({ type }) => String(type));
  if (kinds.some((kind) => chatKinds.has(kind))) return 'openaiChat';
  return kinds.some((kind) => kind !== 'text') ? 'anthropicMessages' : undefined;
}

/** Kinds of content that only Chat Completions has. */
const chatKinds: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'file', 'refusal']);
