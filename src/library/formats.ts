/**
 * Lists the wire formats for everything that has to choose one: how a body of each is recognized, what its parts are called, and how its codec is
 * loaded. Pure except for loading codecs.
 */
import type { Span } from '../conversation/conversation.ts';
import {
  firstElements,
  isRecord,
  objectsOf,
  parseSpan,
  scanArray,
  scanObject,
} from '../conversation/json-scan.ts';
import type { Codec } from '../codecs/codec.ts';

/** A wire format. */
export type WireFormat = {
  /** The name of its codec, as programs import it. */
  readonly exported: string;
  /** The member of a body that holds the messages. */
  readonly list: string;
  /** True when this member may be a text, the user's message. */
  readonly mayBeText: boolean;
  /** The model whose tokenizer and window are used for a body without a model. */
  readonly usualModel: string;
  readonly load: () => Promise<Codec>;
};

/** The wire formats by the name that people write, as in `--format chat`. */
export const wireFormats = {
  chat: {
    exported: 'openaiChat',
    list: 'messages',
    mayBeText: false,
    usualModel: 'gpt-4o',
    load: async () => (await import('../codecs/openai-chat/index.ts')).openaiChat,
  },
  responses: {
    exported: 'openaiResponses',
    list: 'input',
    mayBeText: true,
    usualModel: 'gpt-5',
    load: async () => (await import('../codecs/openai-responses/index.ts')).openaiResponses,
  },
  anthropic: {
    exported: 'anthropicMessages',
    list: 'messages',
    mayBeText: false,
    usualModel: 'claude-sonnet-4-5',
    load: async () => (await import('../codecs/anthropic-messages/index.ts')).anthropicMessages,
  },
  gemini: {
    exported: 'gemini',
    list: 'contents',
    mayBeText: false,
    usualModel: 'gemini-2.5-pro',
    load: async () => (await import('../codecs/gemini/index.ts')).gemini,
  },
} as const satisfies Readonly<Record<string, WireFormat>>;

export type FormatName = keyof typeof wireFormats;

/** The top-level members of a body by key. */
export type BodyMembers = ReadonlyMap<string, Span>;

/** Returns the top-level members of a body; undefined for anything but an object. */
export function membersOf(body: Uint8Array): BodyMembers | undefined {
  try {
    return new Map(scanObject(body, 0).members.map(({ key, value }) => [key, value]));
  } catch {
    return undefined;
  }
}

/**
 * Returns the wire format of a body by its shape; undefined if no format has it. Two formats call their list `messages`. They are told apart by the
 * tools, by members of the request, or by the first message that only one of them allows. A request that both allow means the same in both, so it is read
 * as the more common one.
 */
export function formatOf(body: Uint8Array, members: BodyMembers): FormatName | undefined {
  if (members.has('contents')) return 'gemini';
  if (members.has('messages')) {
    if (['system', 'anthropic_version', 'stop_sequences'].some((key) => members.has(key))) return 'anthropic';
    if (members.has('functions') || members.has('max_completion_tokens')) return 'chat';
    return byTools(body, members.get('tools')) ?? byMessages(body, members.get('messages')!);
  }
  if (members.has('input') || members.has('previous_response_id')) return 'responses';
  return undefined;
}

function byTools(body: Uint8Array, tools: Span | undefined): FormatName | undefined {
  if (!tools || body[tools.start] !== '['.charCodeAt(0)) return undefined;
  const [first] = firstElements(body, tools.start, 1);
  const tool = first && parseSpan(body, first);
  if (!isRecord(tool)) return undefined;
  return 'function' in tool || 'custom' in tool ? 'chat' : 'anthropic';
}

function byMessages(body: Uint8Array, list: Span): FormatName | undefined {
  if (body[list.start] !== '['.charCodeAt(0)) return undefined;
  for (const span of scanArray(body, list.start).elements) {
    const message = parseSpan(body, span);
    const name = isRecord(message) ? byMessage(message) : undefined;
    if (name) return name;
  }
  return 'chat';
}

function byMessage({ role, content, ...others }: Readonly<Record<string, unknown>>): FormatName | undefined {
  if (role === 'system' || role === 'developer' || role === 'tool' || role === 'function') return 'chat';
  if ('tool_calls' in others || 'function_call' in others) return 'chat';
  const kinds = objectsOf(content).map(({ type }) => String(type));
  if (kinds.some((kind) => chatKinds.has(kind))) return 'chat';
  return kinds.some((kind) => kind !== 'text') ? 'anthropic' : undefined;
}

/** Kinds of content that only Chat Completions has. */
const chatKinds: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'file', 'refusal']);
