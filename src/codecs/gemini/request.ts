/**
 * Reads a Gemini generateContent request body into the conversation view, and writes such bodies: with edits, the recall tool and
 * continuations after a recall, and new ones for summaries. The URL names the model and whether the reply streams, so the caller passes
 * them in. https://ai.google.dev/api/generate-content
 */
import type { Conversation, Message, Part, Role, Span } from '../../conversation/conversation.ts';
import { bytesOf, canonicalDigest, significantBytes } from '../../conversation/messages.ts';
import {
  type Splice,
  ScanError,
  scanArray,
  applySplices,
  isRecord,
  jsonBytes,
  listSplices,
} from '../../conversation/json-scan.ts';
import type { Codec, ReadBlock, ReadContext, Prompt, RecallTool } from '../codec.ts';
import {
  elementsAt,
  type BodyFields,
  keptWithStep,
  objectAt,
  parseOtherFields,
  readFields,
  readMessages,
  readPreamble,
  startsWith,
  stringAt,
  toolNamesOf,
} from '../read-body.ts';
import { inSteps, oneStep } from '../../conversation/steps.ts';
import {
  byName,
  namedMembers,
  numberOf,
  spellings,
  stringOf,
  valueOf,
  nameInId,
  parsePart,
} from './read-part.ts';
import type { Edit } from '../../conversation/edit.ts';
import { LeporelloError } from '../../errors.ts';
import { type MessageEdits, type MessageWriter, messageSplices, shift } from '../write-body.ts';
import { definitionsOf } from '../earlier-bodies.ts';
import { joinNeighbours, originsAfter } from './join.ts';
import { replaceMedia } from './replace-media.ts';

/** The URL's path: `…/models/MODEL:generateContent` or `…:streamGenerateContent?alt=sse`. */
export type GeminiRoute = { readonly model: string | undefined; readonly streaming: boolean };

const systemNames = spellings('systemInstruction');

/** Fields that are read as blocks; all other fields are parsed whole. */
const blockFields: ReadonlySet<string> = new Set(['contents', 'tools', ...systemNames]);

/** A content without a role is the user's. `function` is the old role of results. */
const roles: Readonly<Record<string, Role>> = { user: 'user', model: 'assistant', function: 'user' };

const nothing: ReadonlySet<string> = new Set();

export function readOn(route: GeminiRoute): Codec['read'] {
  return (body, reading) =>
    readFields('generateContent', body, 'contents', reading, (fields) =>
      readConversation(fields, body, reading, route),
    );
}

function readConversation(
  fields: BodyFields,
  body: Uint8Array,
  reading: ReadContext,
  route: GeminiRoute,
): Conversation {
  const messages = pairByName(readMessages(fields, reading, parseContent));
  const tools = blocksOf(fields, ['tools'], reading, parseTools);
  const system = blocksOf(fields, systemNames, reading, parseSystem);
  const others = parseOtherFields(fields, blockFields);
  const config = valueOf(others, 'generationConfig');
  const offered = tools.flatMap((block) => toolNamesOf(block));
  return {
    body,
    model: route.model ?? stringOf(others, 'model'),
    streaming: route.streaming,
    replies: numberOf(config, 'candidateCount') ?? 1,
    maxOutputTokens: numberOf(config, 'maxOutputTokens'),
    wantsJson: wantsJson(others),
    forbidsRecall: forbidsRecall(others),
    toolNames: takesOurTool(others) ? offered : [],
    preamble: [...tools, ...system],
    messages,
  };
}

/** True when the client asks for structured output in a reply that may hold calls. */
function wantsJson(fields: Readonly<Record<string, unknown>>): boolean {
  const type = stringOf(valueOf(fields, 'generationConfig'), 'responseMimeType') ?? 'text/plain';
  return type !== 'text/plain' && stringOf(callingOf(fields), 'mode') !== 'NONE';
}

/** True when the reply may hold no calls, or only those that the client names. */
function forbidsRecall(fields: Readonly<Record<string, unknown>>): boolean {
  const calling = callingOf(fields);
  return stringOf(calling, 'mode') === 'NONE' || valueOf(calling, 'allowedFunctionNames') !== undefined;
}

function callingOf(fields: Readonly<Record<string, unknown>>): unknown {
  return valueOf(valueOf(fields, 'toolConfig'), 'functionCallingConfig');
}

/**
 * False with a cached content, which brings its own tools ("tools, system_instruction and tool_config must not be set"), and for
 * arguments that stream in pieces, which cannot be held back as one part.
 */
function takesOurTool(fields: Readonly<Record<string, unknown>>): boolean {
  return (
    stringOf(fields, 'cachedContent') === undefined &&
    valueOf(callingOf(fields), 'streamFunctionCallArguments') !== true
  );
}

function blocksOf(
  fields: BodyFields,
  names: readonly string[],
  reading: ReadContext,
  readBlock: (bytes: Uint8Array, reading: ReadContext) => ReadBlock,
) {
  return names.flatMap((name) => readPreamble(fields, name, reading, readBlock) ?? []);
}

function parseContent(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const members = oneStep(() => objectAt(bytes, 0));
  const canonical = (role: Role) =>
    oneStep(() => canonicalDigest(role, [significantBytes(bytes, members, nothing)], reading.digest));
  const { named, repeats } = byName(bytes, members);
  const roleMember = named.get('role');
  const said = roleMember ? stringAt(bytes, roleMember) : 'user';
  const spoken = said === '' ? 'user' : (said ?? 'unknown');
  const role = Object.hasOwn(roles, spoken) ? roles[spoken] : undefined;
  if (!role) throw new ScanError('a content has no known role');
  const read = inSteps(partSpans(bytes, named.get('parts')?.value), (span) => parsePart(bytes, span));
  const parts = repeats ? keptWithStep(read, { start: 0, end: bytes.length }) : read;
  const onlyResults =
    role === 'user' && parts.length > 0 && parts.every((part) => part.type === 'tool-result');
  return { role: onlyResults ? 'tool' : role, parts, canonical: canonical(onlyResults ? 'tool' : role) };
}

/** Parts are a list; a single part may be given without brackets. */
function partSpans(bytes: Uint8Array, parts: Span | undefined): readonly Span[] {
  if (!parts) return [];
  if (startsWith(bytes, parts, '{')) return [parts];
  if (!startsWith(bytes, parts, '[')) throw new ScanError('parts are neither a list nor a part');
  return elementsAt(bytes, parts);
}

function parseSystem(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const whole = { start: 0, end: bytes.length };
  const canonical = oneStep(() => canonicalDigest('system', [bytes], reading.digest));
  if (startsWith(bytes, whole, '"'))
    return { role: 'system', parts: [{ type: 'text', span: whole, texts: [whole] }], canonical };
  if (!startsWith(bytes, whole, '{'))
    throw new ScanError('the system instruction is neither a content nor a string');
  const named = namedMembers(bytes, whole);
  const parts = inSteps(partSpans(bytes, named?.get('parts')?.value), (span) => parsePart(bytes, span));
  return { role: 'system', parts, canonical };
}

function parseTools(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const whole = { start: 0, end: bytes.length };
  const isOne = startsWith(bytes, whole, '{');
  if (!isOne && !startsWith(bytes, whole, '[')) throw new ScanError("'tools' is not an array");
  const entries = isOne ? [whole] : scanArray(bytes, 0).elements;
  const parts = entries.flatMap((entry) => parseTool(bytes, entry));
  return {
    role: 'system',
    parts,
    canonical: oneStep(() => canonicalDigest('tools', [bytes], reading.digest)),
  };
}

/** An entry holds a list of functions, a tool of the provider, or both. */
function parseTool(bytes: Uint8Array, entry: Span): readonly Part[] {
  if (!startsWith(bytes, entry, '{')) throw new ScanError('a tool is not an object');
  const named = namedMembers(bytes, entry);
  if (!named) return [{ type: 'tool-definition', span: entry, name: undefined }];
  return [...named].flatMap(([name, { span, value }]): readonly Part[] => {
    if (name !== 'functionDeclarations' || !startsWith(bytes, value, '['))
      return [{ type: 'tool-definition', span, name: undefined }];
    return inSteps(elementsAt(bytes, value), (declared) => {
      const member = namedMembers(bytes, declared)?.get('name');
      return { type: 'tool-definition', span: declared, name: stringAt(bytes, member) };
    });
  });
}

type OpenCall = { readonly id: string; readonly name: string; answered: boolean };

/** Calls of one turn that wait for their results, in order, by id and by name. */
type OpenCalls = { readonly callsById: Map<string, Waiting>; readonly callsByName: Map<string, Waiting> };

/** Calls in order; the first `done` of them are answered. */
type Waiting = { readonly calls: OpenCall[]; done: number };

/**
 * Pairs results without an id with the calls they answer, by name and order, because ids are optional in this format. A call and
 * a result that both lack an id already share one made from their name; here a result without an id gets that of a call which has
 * one. Returns the messages themselves when nothing changes.
 */
function pairByName(messages: readonly Message[]): readonly Message[] {
  let open = noCalls();
  let speaker: Message['role'] | undefined;
  return messages.map((message) => {
    if (message.role === 'assistant' && speaker !== 'assistant') open = noCalls();
    speaker = message.role;
    for (const part of message.parts) if (part.type === 'tool-call') addCall(open, part);
    const parts = message.parts.map((part) => (part.type === 'tool-result' ? answering(part, open) : part));
    return parts.every((part, index) => part === message.parts[index]) ? message : { ...message, parts };
  });
}

function noCalls(): OpenCalls {
  return { callsById: new Map(), callsByName: new Map() };
}

function addCall(
  { callsById, callsByName }: OpenCalls,
  { id, name }: { readonly id: string; readonly name: string },
): void {
  const call = { id, name, answered: false };
  waitIn(callsById, id, call);
  waitIn(callsByName, name, call);
}

function waitIn(calls: Map<string, Waiting>, key: string, call: OpenCall): void {
  const waiting = calls.get(key);
  if (waiting) waiting.calls.push(call);
  else calls.set(key, { calls: [call], done: 0 });
}

function answering(
  part: Part & { readonly type: 'tool-result' },
  { callsById, callsByName }: OpenCalls,
): Part {
  const name = nameInId(part.callId);
  const call =
    firstWaiting(callsById.get(part.callId)) ??
    (name === undefined ? undefined : firstWaiting(callsByName.get(name)));
  if (!call) return part;
  call.answered = true;
  return call.id === part.callId ? part : { ...part, callId: call.id };
}

/** Returns the first call without a result. Skips each answered call once. */
function firstWaiting(waiting: Waiting | undefined): OpenCall | undefined {
  if (!waiting) return undefined;
  while (waiting.calls[waiting.done]?.answered === true) waiting.done++;
  return waiting.calls[waiting.done];
}

type Extra = { readonly recallTool?: RecallTool };

/** Writes the edits; contents of one side that the edits made neighbors are joined. */
export function write(conversation: Conversation, edits: readonly Edit[], extra: Extra = {}): Uint8Array {
  const body = writeApart(conversation, edits, extra);
  const moves = edits.some(({ kind }) => !kind.startsWith('replace'));
  if (!moves) return body;
  const origins = originsAfter(conversation, edits);
  return oneStep(() => joinNeighbours(body, origins));
}

/** Does the same without joining: an inserted message is a content of its own, and dropped ones leave neighbors. */
export function writeApart(
  conversation: Conversation,
  edits: readonly Edit[],
  extra: Extra = {},
): Uint8Array {
  const splices = [...messageSplices(conversation, edits, writer)];
  if (extra.recallTool) splices.push(toolSplice(conversation, extra.recallTool));
  return oneStep(() => applySplices(conversation.body, splices));
}

export const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ role, parts: [{ text }] }),
  dropParts({ message, dropped }: MessageEdits, body: Uint8Array): readonly Splice[] {
    // Only parts of a list can be dropped one by one: a part without brackets is alone.
    const close = namedMembers(body, message.span)?.get('parts')?.value.end ?? message.span.end;
    const spans = message.parts.map((part) => shift(part.span, message.span.start));
    return listSplices(spans, close - 1, (index) => dropped.has(index));
  },
  replaceMedia,
};

/**
 * Returns a splice that adds the recall tool, as a function declaration, to the last list of functions. The conversation must
 * offer at least one function.
 */
function toolSplice(conversation: Conversation, tool: RecallTool): Splice {
  for (const block of conversation.toolNames.length > 0 ? conversation.preamble : []) {
    const bytes = bytesOf(conversation.body, block, { start: 0, end: block.span.end - block.span.start });
    const functions = block.parts.filter(
      (part) => part.type === 'tool-definition' && part.name !== undefined,
    );
    const last = functions.at(-1);
    if (!last) continue;
    const list = listAround(bytes, last);
    const styles = functions.map((part) => namedMembers(bytes, part.span));
    const jsonSchema = styles.some((named) => named?.has('parametersJsonSchema'));
    const insertion = {
      before: list.elements.length,
      bytes: definitionsOf(tool, (one) => declaration(one, jsonSchema)),
    };
    const [splice] = listSplices(list.elements, list.span.end - 1, () => false, [insertion]);
    if (splice) return { ...splice, span: shift(splice.span, block.span.start) };
  }
  throw new LeporelloError('bad-edit', 'The recall tool cannot be added: the request offers no functions.');
}

/** Finds the list that holds a declaration. */
function listAround(bytes: Uint8Array, declared: Part) {
  const isOne = startsWith(bytes, { start: 0, end: 1 }, '{');
  const entries = isOne ? [{ start: 0, end: bytes.length }] : scanArray(bytes, 0).elements;
  const entry = entries.find(({ start, end }) => start < declared.span.start && declared.span.end <= end);
  const list = namedMembers(bytes, entry)?.get('functionDeclarations');
  if (!list)
    throw new LeporelloError('bad-edit', "A function declaration is in no 'functionDeclarations' list.");
  return scanArray(bytes, list.value.start);
}

/**
 * `parameters` is the provider's own Schema, which spells types in capitals and refuses unknown keywords; `parametersJsonSchema`
 * is plain JSON Schema, which older servers do not know. The client's own choice works with its server.
 */
function declaration({ name, description, parameters }: RecallTool, jsonSchema: boolean): Uint8Array {
  return jsonBytes(
    jsonSchema
      ? { name, description, parametersJsonSchema: parameters }
      : { name, description, parameters: asSchema(parameters) },
  );
}

const schemaKeys: ReadonlySet<string> = new Set([
  'type',
  'description',
  'properties',
  'required',
  'items',
  'enum',
  'format',
]);

function asSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const known = Object.entries(schema).filter(([key]) => schemaKeys.has(key));
  return Object.fromEntries(known.map(([key, value]) => [key, schemaValue(key, value)]));
}

function schemaValue(key: string, value: unknown): unknown {
  if (key === 'type' && typeof value === 'string') return value.toUpperCase();
  if (key === 'items' && isRecord(value)) return asSchema(value);
  if (key !== 'properties' || !isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, isRecord(inner) ? asSchema(inner) : inner]),
  );
}

export function promptBody({ system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    systemInstruction: { parts: [{ text: system }] },
    contents: [{ role: 'user', parts: [{ text }] }],
    generationConfig: { maxOutputTokens },
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
