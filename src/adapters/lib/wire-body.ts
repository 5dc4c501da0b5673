/**
 * Writes the messages of a framework as a request body that the engine folds, and reads the folded body back. The body has the form of
 * Anthropic Messages, because there each message of a framework can be one message, and each of its parts one block. A member `at` of each
 * message and block says where it came from. So a message that was not folded comes back as the very same object, and a changed one as a copy.
 * Pure.
 */
import { anthropicMessages } from '../../codecs/anthropic-messages/index.ts';
import type { Codec, RecallTool } from '../../codecs/codec.ts';
import { gemini } from '../../codecs/gemini/index.ts';
import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import {
  type JsonRecord,
  isRecord,
  objectsOf,
  scanArray,
  scanObject,
  wordAt,
} from '../../conversation/json-scan.ts';

const formats: readonly Codec[] = [anthropicMessages, openaiChat, openaiResponses, gemini];

const { cacheMarks: _, ...withoutMarks } = anthropicMessages;

/**
 * The wire format that the engine sees. The provider behind a framework's model may be any, so its refusals are read in the words of all. Cache
 * marks are left to the framework.
 */
export const frameworkCodec: Codec = {
  ...withoutMarks,
  overflowIn: (status, body) => {
    for (const format of formats) {
      const overflow = format.overflowIn(status, body);
      if (overflow) return overflow;
    }
    return undefined;
  },
  refusesReasoning: (status, body) => formats.some((format) => format.refusesReasoning(status, body)),
};

/** Says how a framework writes messages. One object serves all requests. */
export type MessageForm<Message> = {
  /**
   * Writes a message, with one block for each part. A part that no fold may edit has a `type` that the wire format does not know; a part that the
   * model does not read is `undefined`.
   */
  write(message: Message): WrittenMessage;
  /** Returns the messages for one message of the folded body. */
  read(folded: FoldedMessage<Message>): readonly Message[];
  /**
   * Orders all messages as the framework wants them, and leaves out those that it refuses, if any changed. `putBack`: those that the program does not
   * have. Default: they stay as they were read.
   */
  order?(messages: Message[], putBack: ReadonlySet<Message>): Message[];
};

export type WrittenMessage = {
  readonly role: WireRole;
  readonly content: readonly (JsonRecord | undefined)[];
};

type WireRole = 'system' | 'user' | 'assistant';

/** A message of the folded body that differs from what was written. */
export type FoldedMessage<Message> = {
  readonly role: WireRole;
  /** The framework's message; undefined for one that the fold inserted, or that belongs to a hidden recall. */
  readonly source: Message | undefined;
  readonly blocks: readonly FoldedBlock[];
  /** Returns the name of the tool that a result belongs to, by the id of its call. */
  toolOf(callId: string): string;
};

export type FoldedBlock = {
  readonly block: JsonRecord;
  /** The index of the block in the written message; undefined for a new block. */
  readonly at: number | undefined;
  readonly isChanged: boolean;
};

/** A request in terms of a framework. */
export type FrameworkRequest<Message> = {
  readonly model: string | undefined;
  readonly messages: readonly Message[];
  /** Definitions in the wire format: `{ name, description, input_schema }`. Each counts as it is spelled. */
  readonly tools: readonly JsonRecord[];
  /** Instructions that the framework keeps outside of its messages. */
  readonly system?: string | undefined;
  readonly maxOutputTokens?: number | undefined;
};

/** The messages to send, and the tools to offer besides the program's own: for recalls, and for notes. Empty if none is offered. */
export type FoldedRequest<Message> = {
  readonly messages: readonly Message[];
  readonly addedTools: readonly RecallTool[];
};

export type WireRequest<Message> = {
  readonly body: Uint8Array;
  /** Reads a body that the engine made of `body`. */
  read(folded: Uint8Array): FoldedRequest<Message>;
};

const decoder = new TextDecoder();

/**
 * Writes a request as a body. Content that cannot be written makes an empty body, which the engine leaves alone. Folded content that cannot be
 * read is given up: the messages go out as they are.
 */
export function wireRequest<Message>(
  request: FrameworkRequest<Message>,
  form: MessageForm<Message>,
): WireRequest<Message> {
  const asIs = { messages: request.messages, addedTools: [] };
  try {
    const wire = written(request, form);
    return {
      body: wire.body,
      read(folded) {
        try {
          return wire.read(folded);
        } catch {
          return asIs;
        }
      },
    };
  } catch {
    return { body: new Uint8Array(), read: () => asIs };
  }
}

function written<Message>(
  request: FrameworkRequest<Message>,
  form: MessageForm<Message>,
): WireRequest<Message> {
  const { messages, model, tools, system, maxOutputTokens } = request;
  const all = messages.map((message) => form.write(message));
  const first = all.findIndex(({ role }) => role !== 'system');
  // System messages at the beginning are instructions, which no fold changes.
  const leading = first < 0 ? all.length : first;
  const instructions = [
    ...(system === undefined || system === '' ? [] : [{ type: 'text', text: system }]),
    ...all.slice(0, leading).flatMap(({ content }) => content.flatMap((block) => block ?? [])),
  ];
  const spelled = all.map(({ role, content }, at) => JSON.stringify({ role, at, content: marked(content) }));
  const head = JSON.stringify({
    model,
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    ...(instructions.length > 0 && { system: instructions }),
    ...(tools.length > 0 && { tools }),
  });
  const list = `"messages":[${spelled.slice(leading).join(',')}]`;
  const body = new TextEncoder().encode(head === '{}' ? `{${list}}` : `${head.slice(0, -1)},${list}}`);

  function read(folded: Uint8Array): FoldedRequest<Message> {
    const { members } = scanObject(folded, 0);
    const placeOf = (key: string) => members.find((member) => member.key === key)?.value;
    const offered = placeOf('tools');
    const definitions = offered ? scanArray(folded, offered.start).elements : [];
    const textAt = (span: { readonly start: number; readonly end: number }) =>
      decoder.decode(folded.subarray(span.start, span.end));
    const addedTools = definitions.slice(tools.length).map((span) => addedToolIn(JSON.parse(textAt(span))));
    const toolNames = new Map<string, string>();
    const toolOf = (callId: string) => toolNames.get(callId) ?? 'tool';
    const result: Message[] = messages.slice(0, leading);
    const putBack = new Set<Message>();
    let next = leading;
    for (const span of scanArray(folded, placeOf('messages')!.start).elements) {
      const text = textAt(span);
      const parsed = text === spelled[next] ? undefined : (JSON.parse(text) as JsonRecord);
      const from = parsed ? parsed['at'] : next;
      const at = typeof from === 'number' ? from : undefined;
      // Unchanged messages after dropped ones are the same objects, too.
      const message = at !== undefined && text === spelled[at] ? undefined : parsed;
      const blocks = message ? blocksIn(message, at === undefined ? undefined : all[at]) : [];
      const content = message ? blocks.map(({ block }) => block) : all[at!]!.content;
      for (const block of content) {
        const id = block?.['type'] === 'tool_use' ? wordAt(block, 'id') : undefined;
        if (block && id !== undefined) toolNames.set(id, wordAt(block, 'name') ?? 'tool');
      }
      const source = at === undefined ? undefined : messages[at];
      const own = message
        ? form.read({ role: message['role'] as WireRole, source, blocks, toolOf })
        : [source!];
      result.push(...own);
      if (source === undefined) for (const one of own) putBack.add(one);
      if (at !== undefined) next = at + 1;
    }
    const isSame = result.length === messages.length && result.every((one, index) => one === messages[index]);
    const ordered = isSame ? messages : (form.order?.(result, putBack) ?? result);
    return { messages: ordered, addedTools };
  }

  return { body, read };
}

/** The types of blocks of which only some members are counted. In others, a mark would count, too. */
const markedTypes: readonly unknown[] = ['text', 'image', 'document', 'tool_use', 'tool_result'];

function marked(content: WrittenMessage['content']): readonly JsonRecord[] {
  return content.flatMap((block, at) => (block ? [withMark(block, at)] : []));
}

function withMark(block: JsonRecord, at: number): JsonRecord {
  if (!markedTypes.includes(block['type'])) return block;
  const items = block['type'] === 'tool_result' ? block['content'] : undefined;
  return {
    ...block,
    at,
    ...(Array.isArray(items) && { content: objectsOf(items).map((item, of) => ({ ...item, at: of })) }),
  };
}

/**
 * Returns the blocks of a message. A mark counts only within a message that was written here: a recall may quote blocks of others. A block without a
 * mark is found by its content, which no fold changes.
 */
function blocksIn(message: JsonRecord, from: WrittenMessage | undefined): readonly FoldedBlock[] {
  const { content } = message;
  if (typeof content === 'string')
    return [{ block: { type: 'text', text: content }, at: undefined, isChanged: true }];
  const known = (from?.content ?? []).map((block, at) => block && JSON.stringify(withMark(block, at)));
  let next = 0;
  return objectsOf(content).map((block) => {
    const text = JSON.stringify(block);
    const at = markedTypes.includes(block['type']) ? block['at'] : known.indexOf(text, next);
    if (typeof at !== 'number' || known[at] === undefined) return { block, at: undefined, isChanged: true };
    next = at + 1;
    return { block, at, isChanged: known[at] !== text };
  });
}

/**
 * Returns a function that leaves out of a list the items that an earlier put-back list has, by key. Replies of several rounds have what the provider ran in
 * all of them, and so has each round that is put back, while providers refuse an item twice.
 */
export function withoutRepeats<Item>(
  keyOf: (item: Item) => string | undefined,
): (items: readonly Item[], isPutBack: boolean) => readonly Item[] {
  const seen = new Set<string | undefined>();
  return (items, isPutBack) => {
    if (isPutBack) for (const item of items) seen.add(keyOf(item));
    const left = isPutBack ? items : items.filter((item) => !seen.has(keyOf(item) ?? ''));
    return left.length === items.length ? items : left;
  };
}

function addedToolIn(definition: JsonRecord): RecallTool {
  return {
    name: wordAt(definition, 'name') ?? '',
    description: wordAt(definition, 'description') ?? '',
    parameters: definition['input_schema'] as RecallTool['parameters'],
  };
}

/** Writes a definition of a tool for the engine, which counts it and reads its name. Each framework has the schema in a member of another name. */
export function definitionOf(tool: JsonRecord): JsonRecord {
  const own = isRecord(tool['function']) ? tool['function'] : tool;
  const { name, description, input_schema, inputSchema, parameters } = own;
  const schema = input_schema ?? inputSchema ?? parameters;
  return schema === undefined ? { ...own } : { name, description, input_schema: schema };
}

/** A request of a framework, for a codec over values. Other members are kept as they are. */
export type MessagesRequest = {
  /** The name of the model, for its window and its tokens. */
  readonly model?: string | undefined;
  readonly messages: readonly object[];
  /** Definitions of tools. Without any, nothing is folded that the model could not read again. */
  readonly tools?: readonly object[] | undefined;
  /** Instructions that the framework keeps outside of its messages. */
  readonly system?: string | undefined;
  readonly maxOutputTokens?: number | undefined;
};

/** A codec over values: requests are objects, and what no fold changes stays the same object. */
export type ValuesCodec<Request extends object> = {
  /** Writes a request for `prepare` and `compact`. Never throws: a request that cannot be written is not folded. */
  write<Own extends Request>(request: Own): WrittenValues<Own>;
};

/** A request to fold: pass `codec` and `body` to `prepare`, and the body that it returns to `read`. */
export type WrittenValues<Request> = {
  readonly codec: Codec;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Returns the request with the messages to send. Messages that were not folded are the same objects. */
  read(folded: Uint8Array): Request;
};

/** Returns the codec over values for the messages of a framework. */
export function valuesCodec<Message extends object>(
  form: MessageForm<Message>,
  definition: (tool: JsonRecord) => JsonRecord = definitionOf,
): ValuesCodec<MessagesRequest> {
  return {
    write(request) {
      const { model, tools = [], system, maxOutputTokens } = request;
      const messages = request.messages as readonly Message[];
      const definitions = objectsOf(tools).map(definition);
      const wire = wireRequest({ model, messages, tools: definitions, system, maxOutputTokens }, form);
      return {
        codec: frameworkCodec,
        body: wire.body as Uint8Array<ArrayBuffer>,
        read: (folded) =>
          folded === wire.body ? request : { ...request, messages: wire.read(folded).messages },
      };
    },
  };
}
