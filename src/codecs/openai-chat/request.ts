/**
 * Reads an OpenAI Chat Completions request body into the conversation view, and writes such bodies: with edits, the recall tool, continuations
 * after a recall and hidden recalls, and new ones for summaries. https://platform.openai.com/docs/api-reference/chat
 */
import { openNotes } from '../../caches.ts';
import type { Conversation, Media, Part, Role, Span, Stays } from '../../conversation/conversation.ts';
import {
  type Member,
  type Splice,
  ScanError,
  isRecord,
  scanArray,
  scanObject,
  jsonBytes,
  listSplices,
} from '../../conversation/json-scan.ts';
import { canonicalDigest, memoized } from '../../conversation/messages.ts';
import {
  type LastMembers,
  elementsAt,
  isNull,
  keptWithStep,
  lastMembers,
  objectAt,
  memberPieces,
  parseOtherFields,
  readFields,
  readMessages,
  readPreamble,
  startsWith,
  stringAt,
  textMember,
  toolNamesOf,
  unremembered,
} from '../read-body.ts';
import {
  blocksMarkedForMs,
  longestMark,
  longestOf,
  markMs,
  markedForMs,
  retentionMs,
  writesLong,
  jsonList,
  stringIn,
  withMembers,
} from '../shared-json.ts';
import { inSteps, oneStep } from '../../conversation/steps.ts';
import type { ReadBlock, ReadContext, Codec, Prompt, RecallTool } from '../codec.ts';
import { type MessageEdits, type MessageWriter, mediaSplices, shift } from '../write-body.ts';
import { bodyWriter } from '../earlier-bodies.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { functionId, roundMessages } from './response.ts';

/** Fields that are read as blocks; all other fields are parsed whole. */
const blockFields: ReadonlySet<string> = new Set(['messages', 'tools', 'functions']);

/** Compatible servers take Anthropic's cache marks here; clients move them from turn to turn. */
const moving: ReadonlySet<string> = new Set(['cache_control']);

const roles: Readonly<Record<string, Role>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  // The legacy function form.
  function: 'tool',
};

const format = 'Chat Completions';

export function read(body: Uint8Array, reading: ReadContext): Conversation {
  return readFields(format, body, 'messages', reading, (fields) => {
    const messages = readMessages(fields, reading, parseMessage);
    const tools = readPreamble(fields, 'tools', reading, parseTools);
    const functions = readPreamble(fields, 'functions', reading, parseFunctions);
    const others = parseOtherFields(fields, blockFields);
    const { model, stream, n, max_tokens, max_completion_tokens, prompt_cache_key, cache_control } = others;
    const wanted = stringIn(others['response_format'], 'type') ?? 'text';
    const mayCall = others['tool_choice'] !== 'none';
    const limit = max_completion_tokens ?? max_tokens;
    const marks = longestOf([markMs(cache_control), tools?.markedForMs, longestMark(messages)]);
    return {
      body,
      model: typeof model === 'string' ? model : undefined,
      streaming: stream === true,
      replies: typeof n === 'number' ? n : 1,
      maxOutputTokens: typeof limit === 'number' ? limit : undefined,
      toolNames: [...toolNamesOf(tools), ...toolNamesOf(functions)],
      preamble: [tools, functions].filter((block) => block !== undefined),
      messages,
      wantsJson: mayCall && wanted !== 'text',
      forbidsRecall: !mayCall || isRecord(others['tool_choice']),
      // https://developers.openai.com/api/docs/guides/prompt-caching
      keptMs: longestOf([marks, retentionMs(others)]),
      writesLong: writesLong(marks),
      sessionKey: typeof prompt_cache_key === 'string' ? prompt_cache_key : undefined,
    };
  });
}

function parseMessage(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const members = oneStep(() => objectAt(bytes, 0));
  const canonical = (role: Role) =>
    oneStep(() => canonicalDigest(role, memberPieces(bytes, members, moving), reading.digest));
  const { byKey, repeats } = lastMembers(members);
  const said = stringAt(bytes, byKey.get('role')) ?? '';
  const role = Object.hasOwn(roles, said) ? roles[said] : undefined;
  if (!role) throw new ScanError('a message has no known role');
  const parsed = isResult(said) ? [parseResult(bytes, byKey, said)] : parseParts(bytes, byKey);
  const parts = repeats ? keptWithStep(parsed, { start: 0, end: bytes.length }) : parsed;
  return { role, parts, canonical: canonical(role), markedForMs: markedForMs(bytes, members) };
}

/** Servers use one name or the other; clients that do not know which send it back as both. */
const reasoningMembers = ['reasoning_content', 'reasoning'] as const;

/** Returns the parts of a message: its reasoning, content, refusal and calls. */
function parseParts(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>): readonly Part[] {
  const content = byKey.get('content')?.value;
  const calls = byKey.get('tool_calls')?.value;
  return [
    ...reasoningMembers.flatMap((key): readonly Part[] => {
      const text = textMember(bytes, byKey.get(key));
      return text ? [{ type: 'reasoning', span: text, texts: [text], signed: false }] : [];
    }),
    ...(content ? parseContent(bytes, content) : []),
    ...(calls && startsWith(bytes, calls, '[')
      ? inSteps(elementsAt(bytes, calls), (span) => parseCall(bytes, span))
      : []),
    ...parseFunctionCall(bytes, byKey.get('function_call')?.value),
    ...carried.flatMap((kind): readonly Part[] => {
      const value = byKey.get(kind)?.value;
      return value && !isNull(bytes, value) ? [{ type: 'opaque', span: value, kind }] : [];
    }),
  ];
}

/** Members with content that is never edited. */
const carried = ['refusal', 'audio'] as const;

function isResult(said: string): boolean {
  return said === 'tool' || said === 'function';
}

/**
 * Reads the one call of a message in the legacy function form. It has no id: its result names the function and comes right after
 * it.
 */
function parseFunctionCall(bytes: Uint8Array, called: Span | undefined): readonly Part[] {
  if (!called || isNull(bytes, called)) return [];
  const members = membersAt(bytes, called);
  const name = stringAt(bytes, members.byKey.get('name'));
  if (name === undefined || !members.byKey.get('arguments'))
    return [{ type: 'opaque', span: called, kind: 'function_call', stays: 'step' }];
  return [parseCalled(bytes, called, members, functionId(name))];
}

function parseContent(bytes: Uint8Array, content: Span): readonly Part[] {
  // Many clients spell "no content" as an empty string.
  if (startsWith(bytes, content, '"')) {
    return content.end - content.start === 2 ? [] : [{ type: 'text', span: content, texts: [content] }];
  }
  if (isNull(bytes, content)) return [];
  if (!startsWith(bytes, content, '['))
    throw new ScanError('content is neither a string nor an array nor null');
  return inSteps(elementsAt(bytes, content), (span): Part => {
    const { kind, text, media, stays } = parseItem(bytes, span);
    const kept = stays && { stays };
    if (text) return { type: 'text', span, texts: [text], ...kept };
    return media ? { type: 'media', span, media, ...kept } : { type: 'opaque', span, kind, ...kept };
  });
}

type ContentItem = {
  readonly kind: string;
  readonly text: Span | undefined;
  readonly media: Media | undefined;
  readonly stays: Stays | undefined;
};

/** Reads one element of a content array. Some servers pass on references to tools as Anthropic spells them. */
function parseItem(bytes: Uint8Array, span: Span): ContentItem {
  if (!startsWith(bytes, span, '{')) throw new ScanError('a content part is not an object');
  const { byKey, repeats } = lastMembers(objectAt(bytes, span.start));
  const kind = stringAt(bytes, byKey.get('type')) ?? 'unknown';
  const stays = repeats ? 'step' : kind === 'tool_reference' ? 'pair' : undefined;
  if (kind === 'text') return { kind, text: textMember(bytes, byKey.get('text')), media: undefined, stays };
  const holder = Object.hasOwn(mediaHolders, kind) ? mediaHolders[kind] : undefined;
  if (holder === undefined) return { kind, text: undefined, media: undefined, stays };
  const value = byKey.get(holder.member)?.value;
  const members = value && startsWith(bytes, value, '{') ? scanObject(bytes, value.start).members : [];
  const data = members.find((member) => member.key === holder.data)?.value;
  return { kind, text: undefined, media: { kind: holder.kind, span, data }, stays };
}

const mediaHolders: Readonly<
  Record<string, { member: string; data: string; kind: Media['kind'] } | undefined>
> = {
  image_url: { member: 'image_url', data: 'url', kind: 'image' },
  input_audio: { member: 'input_audio', data: 'data', kind: 'audio' },
  file: { member: 'file', data: 'file_data', kind: 'document' },
};

function parseCall(bytes: Uint8Array, span: Span): Part {
  const { byKey, repeats } = membersAt(bytes, span);
  const id = stringAt(bytes, byKey.get('id'));
  if (id === undefined) throw new ScanError('a tool call has no id');
  // A custom tool call has free text as `input` where a function call has JSON as `arguments`.
  const inner = membersAt(bytes, byKey.get('function')?.value ?? byKey.get('custom')?.value);
  const call = parseCalled(bytes, span, inner, id);
  return repeats ? { ...call, stays: 'step' } : call;
}

function parseCalled(bytes: Uint8Array, span: Span, { byKey, repeats }: LastMembers, id: string): Part {
  const name = stringAt(bytes, byKey.get('name'));
  const input = byKey.get('arguments')?.value ?? byKey.get('input')?.value;
  if (name === undefined || !input) throw new ScanError('a tool call lacks name or arguments');
  return { type: 'tool-call', span, id, name, input, ...(repeats && { stays: 'step' as const }) };
}

/** Returns the members of the object at a place; none when there is no object. */
function membersAt(bytes: Uint8Array, span: Span | undefined): LastMembers {
  return lastMembers(span && startsWith(bytes, span, '{') ? objectAt(bytes, span.start) : []);
}

/** Reads a tool message as one result. The whole message is the part, so dropping the part drops the message. */
function parseResult(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>, said: string): Part {
  const named = stringAt(bytes, byKey.get(said === 'function' ? 'name' : 'tool_call_id'));
  if (named === undefined) throw new ScanError('a result names neither a call nor a function');
  const callId = said === 'function' ? functionId(named) : named;
  const content = byKey.get('content')?.value;
  const result = {
    type: 'tool-result',
    span: { start: 0, end: bytes.length },
    callId,
    isError: undefined,
  } as const;
  if (!content) return { ...result, texts: [], media: [] };
  if (startsWith(bytes, content, '"')) return { ...result, texts: [content], media: [] };
  if (!startsWith(bytes, content, '[')) return { ...result, texts: [], media: [] };
  const items = inSteps(elementsAt(bytes, content), (span) => ({
    span,
    ...parseItem(bytes, span),
  }));
  const stays = items.find((item) => item.stays === 'step')?.stays ?? items.find((item) => item.stays)?.stays;
  return {
    ...result,
    ...(stays && { stays }),
    texts: items.flatMap((item) => item.text ?? []),
    media: items.flatMap((item) =>
      item.text ? [] : [item.media ?? { kind: 'other', span: item.span, data: undefined }],
    ),
  };
}

function parseTools(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  if (!startsWith(bytes, { start: 0, end: 1 }, '[')) throw new ScanError("'tools' is not an array");
  const parts = inSteps(elementsAt(bytes, { start: 0, end: bytes.length }), (span): Part => {
    const { byKey } = membersAt(bytes, span);
    const inner = membersAt(bytes, byKey.get('function')?.value ?? byKey.get('custom')?.value);
    return { type: 'tool-definition', span, name: stringAt(bytes, inner.byKey.get('name')) };
  });
  return {
    role: 'system',
    parts,
    canonical: oneStep(() => canonicalDigest('tools', [bytes], reading.digest)),
    markedForMs: blocksMarkedForMs(bytes, { start: 0, end: bytes.length }),
  };
}

/** Reads the definitions of the legacy function form: they have a list of their own, without a wrapper. */
function parseFunctions(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  if (!startsWith(bytes, { start: 0, end: 1 }, '[')) throw new ScanError("'functions' is not an array");
  const parts = inSteps(elementsAt(bytes, { start: 0, end: bytes.length }), (span): Part => {
    const { byKey } = membersAt(bytes, span);
    return { type: 'tool-definition', span, name: stringAt(bytes, byKey.get('name')) };
  });
  return {
    role: 'system',
    parts,
    canonical: oneStep(() => canonicalDigest('functions', [bytes], reading.digest)),
  };
}

const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ role, content: text }),
  dropParts,
  replaceMedia: ({ media }) => mediaSplices(media, (text) => jsonBytes({ type: 'text', text })),
};

/**
 * Removes calls from `tool_calls`, and that list itself when none is left (an empty list is refused); removes texts from a
 * content array.
 */
function dropParts({ message, dropped }: MessageEdits, body: Uint8Array): readonly Splice[] {
  const bytes = body.subarray(message.span.start, message.span.end);
  const { members, span } = scanObject(bytes, 0);
  const starts = new Set([...dropped].map((index) => message.parts[index]?.span.start));
  const isDropped = (element: { readonly start: number }) => starts.has(element.start);
  const emptied = new Set<number>();
  const inner: Splice[] = [];
  members.forEach((member, index) => {
    if (isDropped(member.value)) emptied.add(index);
    if (
      (member.key !== 'tool_calls' && member.key !== 'content') ||
      bytes[member.value.start] !== '['.charCodeAt(0)
    )
      return;
    const { elements } = scanArray(bytes, member.value.start);
    if (elements.length > 0 && elements.every(isDropped)) emptied.add(index);
    else inner.push(...listSplices(elements, member.value.end - 1, (at) => isDropped(elements[at]!)));
  });
  const spans = members.map((member) => member.span);
  const outer = listSplices(spans, span.end - 1, (index) => emptied.has(index));
  return [...outer, ...inner].map((splice) => ({ ...splice, span: shift(splice.span, message.span.start) }));
}

function toolDefinition(tool: RecallTool): Uint8Array {
  return jsonBytes({
    type: 'function',
    function: { name: tool.name, description: tool.description, parameters: tool.parameters },
  });
}

const writeWithTools = bodyWriter(format, writer, toolDefinition);

/** In the legacy function form a definition has no wrapper. */
const writeWithFunctions = bodyWriter(format, writer, (tool) =>
  jsonBytes({ name: tool.name, description: tool.description, parameters: tool.parameters }),
);

export const write: Codec['write'] = (conversation, edits, extra = {}) =>
  extra.recallTool && hasFunctions(conversation)
    ? writeWithFunctions(conversation, edits, extra)
    : writeWithTools(conversation, edits, extra);

/** True when the first list of definitions is one of the legacy function form: these have a name of their own. Remembered, because turns share the list. */
function hasFunctions({ body, preamble }: Conversation): boolean {
  const block = preamble.find(({ parts }) => parts.length > 0);
  if (!block) return false;
  let known = functionLists.get(block.parts);
  if (known === undefined) {
    const { members } = scanObject(body, block.span.start + block.parts[0]!.span.start);
    known = members.some(({ key }) => key === 'name');
    functionLists.set(block.parts, known);
  }
  return known;
}

const functionLists = openNotes<readonly Part[], boolean>('block');

const messagesOf = memoized(roundMessages);

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { messages: jsonList([turn]) }), unremembered),
    // Servers of this format send reasoning unsigned, and a client that keeps it joins that of all rounds into one text.
    reasoningKeys: () => [],
    round: (_, round) => messagesOf(round),
    withClientResults({ messages }, round, results) {
      const [turn, ...answers] = messagesOf(round);
      const shown = answers.slice(round.answers.length);
      let before = results;
      while (messages[before]?.role === 'tool') before++;
      return {
        messages: [turn!, ...answers.slice(0, round.answers.length)],
        splices: [],
        after: shown.map((bytes) => ({ before, bytes })),
      };
    },
  },
  writer,
);

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: text },
    ],
    // Reasoning models refuse `max_tokens`.
    max_completion_tokens: maxOutputTokens,
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
