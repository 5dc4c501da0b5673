/** Reads an OpenAI Responses request body into the conversation view: each input item is one message. https://platform.openai.com/docs/api-reference/responses/create */
import type { Conversation, Part, Span } from '../../conversation/conversation.ts';
import { ScanError, scanArray, scanObject, skipSpace } from '../../conversation/json-scan.ts';
import { canonicalDigest } from '../../conversation/incremental.ts';
import { LeporelloError } from '../../errors.ts';
import { retentionMs } from '../client-marks.ts';
import type { ReadBlock, ReadContext } from '../codec.ts';
import {
  type BodyFields,
  type BlockReader,
  parseOtherFields,
  readFields,
  readMessages,
  ReadingPaused,
  readPreamble,
  startsWith,
  stringAt,
  lastMembers,
  uniqueMembers,
} from '../read-body.ts';
import { parseItem } from './read-items.ts';

const format = 'OpenAI Responses';

/** Fields that are read as blocks; all other fields are parsed whole. */
const blockFields: ReadonlySet<string> = new Set(['input', 'instructions', 'tools']);

export function read(body: Uint8Array, reading: ReadContext): Conversation {
  try {
    return readFields(format, body, 'input', reading, (fields) =>
      readRequest(body, fields, reading, parseItem),
    );
  } catch (error) {
    const fields = error instanceof ReadingPaused ? undefined : textFields(body);
    if (!fields) throw error;
    return readFields(format, fields.rest, 'input', reading, () =>
      readRequest(body, fields, reading, parseText),
    );
  }
}

function readRequest(
  body: Uint8Array,
  fields: BodyFields,
  reading: ReadContext,
  readBlock: BlockReader,
): Conversation {
  const messages = readMessages(fields, reading, readBlock);
  const instructions = readPreamble(fields, 'instructions', reading, parseInstructions);
  const tools = readPreamble(fields, 'tools', reading, parseTools);
  const others = parseOtherFields(fields, blockFields);
  const { model, stream, max_output_tokens, previous_response_id, prompt_cache_key } = others;
  const additional = messages.flatMap(({ span, parts }) =>
    parts.some((part) => part.type === 'opaque' && declaring.has(part.kind)) ? namesInside(body, span) : [],
  );
  const own = tools ? namesIn(body, tools.span) : [];
  return {
    body,
    model: typeof model === 'string' ? model : undefined,
    streaming: stream === true,
    replies: 1,
    maxOutputTokens: typeof max_output_tokens === 'number' ? max_output_tokens : undefined,
    toolNames: takesNoTool(others) ? [] : [...additional, ...own],
    preamble: [tools, instructions].filter((block) => block !== undefined),
    messages,
    previousReplyId: typeof previous_response_id === 'string' ? previous_response_id : undefined,
    // https://developers.openai.com/api/docs/guides/prompt-caching
    keptMs: retentionMs(others),
    sessionKey: typeof prompt_cache_key === 'string' ? prompt_cache_key : undefined,
  };
}

/**
 * True when a recall tool could not be used: for a request that continues a response or conversation at the provider, whose
 * history we never change and whose tools were fixed before; and in the background, where the client polls for a response we do
 * not see.
 */
function takesNoTool(fields: Readonly<Record<string, unknown>>): boolean {
  return continuesElsewhere(fields) || fields['background'] === true;
}

/** True for a request whose history the provider keeps. */
export function continuesElsewhere(fields: Readonly<Record<string, unknown>>): boolean {
  return isGiven(fields['previous_response_id']) || isGiven(fields['conversation']);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/**
 * Returns the fields of a body whose input is one text, which means one message of the user. `rest` is a valid body to read in
 * its place.
 */
function textFields(body: Uint8Array): (BodyFields & { readonly rest: Uint8Array }) | undefined {
  try {
    const { members, span } = scanObject(body, skipSpace(body, 0));
    const byKey = uniqueMembers(members);
    const input = byKey?.get('input')?.value;
    if (!byKey || !input || !startsWith(body, input, '"') || skipSpace(body, span.end) !== body.length)
      return undefined;
    const get = (key: string) => byKey.get(key)?.value;
    return { format, body, members, messages: [input], get, rest: emptyInput };
  } catch (error) {
    if (error instanceof ScanError || error instanceof LeporelloError) return undefined;
    throw error;
  }
}

const emptyInput = new TextEncoder().encode('{"input":[]}');

function parseText(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const span = { start: 0, end: bytes.length };
  const parts: readonly Part[] = [{ type: 'text', span, texts: [span] }];
  return { role: 'user', parts, canonical: canonicalDigest('user text', [bytes], reading.digest) };
}

function parseInstructions(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const span = { start: 0, end: bytes.length };
  const part: Part = startsWith(bytes, span, '"')
    ? { type: 'text', span, texts: [span] }
    : { type: 'opaque', span, kind: 'instructions' };
  return { role: 'system', parts: [part], canonical: canonicalDigest('system', [bytes], reading.digest) };
}

function parseTools(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  if (!startsWith(bytes, { start: 0, end: 1 }, '[')) throw new ScanError("'tools' is not an array");
  const parts = scanArray(bytes, 0).elements.map((span): Part => {
    const [name, ...more] = namesOf(bytes, span);
    return { type: 'tool-definition', span, name: more.length === 0 ? name : undefined };
  });
  return { role: 'system', parts, canonical: canonicalDigest('tools', [bytes], reading.digest) };
}

/** Items that offer tools of their own. */
const declaring: ReadonlySet<string> = new Set(['additional_tools', 'tool_search_output']);

function namesInside(body: Uint8Array, item: Span): readonly string[] {
  const tools = lastMembers(scanObject(body, item.start).members).byKey.get('tools')?.value;
  return tools ? namesIn(body, tools) : [];
}

/** Returns the names that a model may call, from a list of tools. */
function namesIn(bytes: Uint8Array, list: Span): readonly string[] {
  if (!startsWith(bytes, list, '[')) return [];
  return scanArray(bytes, list.start).elements.flatMap((tool) => namesOf(bytes, tool));
}

/** Returns the names of a tool. Built-in tools have none; a namespace has those of the tools in it. */
function namesOf(bytes: Uint8Array, tool: Span): readonly string[] {
  if (!startsWith(bytes, tool, '{')) return [];
  const { byKey } = lastMembers(scanObject(bytes, tool.start).members);
  if (stringAt(bytes, byKey.get('type')) === 'namespace') {
    const inner = byKey.get('tools')?.value;
    return inner ? namesIn(bytes, inner) : [];
  }
  const name = stringAt(bytes, byKey.get('name'));
  return name === undefined ? [] : [name];
}
