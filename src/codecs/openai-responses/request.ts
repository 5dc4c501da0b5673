/**
 * Reads an OpenAI Responses request body into the conversation view, each input item as one message, and writes such bodies: with edits, the
 * recall tool, continuations after a recall and hidden recalls, and new ones for summaries.
 * https://platform.openai.com/docs/api-reference/responses/create
 */
import type {
  Conversation,
  Message,
  Part,
  Span,
  HiddenRecall,
  RecallRound,
  KeptReply,
} from '../../conversation/conversation.ts';
import {
  type Splice,
  ScanError,
  scanArray,
  scanObject,
  skipSpace,
  applySplices,
  concatBytes,
  jsonBytes,
  listSplices,
} from '../../conversation/json-scan.ts';
import { canonicalDigest, memoized } from '../../conversation/messages.ts';
import { LeporelloError } from '../../errors.ts';
import {
  type JsonElement,
  retentionMs,
  jsonList,
  memberBytes,
  setMembers,
  stringIn,
  withMembers,
  elementsOf,
} from '../shared-json.ts';
import type { ReadBlock, ReadContext, ModelReply, Prompt, RecallAnswer, RecallTool } from '../codec.ts';
import {
  elementsAt,
  type BodyFields,
  type BlockReader,
  parseOtherFields,
  readFields,
  readMessages,
  readPreamble,
  startsWith,
  stringAt,
  lastMembers,
  uniqueMembers,
  unremembered,
} from '../read-body.ts';
import { Paused, inSteps, oneStep } from '../../conversation/steps.ts';
import { builtInName, parseItem } from './read-items.ts';
import { continuesElsewhere, itemText, recalledPart, screenshotSplices, standingOf } from './structure.ts';
import type { Edit } from '../../conversation/edit.ts';
import {
  type MessageWriter,
  appendMessages,
  appendTool,
  droppedMessages,
  mediaSplices,
  messageSplices,
  shift,
} from '../write-body.ts';
import { definitionsOf, spliced } from '../earlier-bodies.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { isReasoning, withoutStrayReasoning } from './response.ts';

const format = 'OpenAI Responses';

/** Fields that are read as blocks; all other fields are parsed whole. */
const blockFields: ReadonlySet<string> = new Set(['input', 'instructions', 'tools']);

export function read(body: Uint8Array, reading: ReadContext): Conversation {
  try {
    return readFields(format, body, 'input', reading, (fields) =>
      readRequest(body, fields, reading, parseItem),
    );
  } catch (error) {
    const fields = error instanceof Paused ? undefined : textFields(body);
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
  const { model, stream, max_output_tokens, prompt_cache_key } = others;
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
    ...standingOf(others),
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
  return {
    role: 'user',
    parts,
    canonical: oneStep(() => canonicalDigest('user text', [bytes], reading.digest)),
  };
}

function parseInstructions(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const span = { start: 0, end: bytes.length };
  const part: Part = startsWith(bytes, span, '"')
    ? { type: 'text', span, texts: [span] }
    : { type: 'opaque', span, kind: 'instructions' };
  return {
    role: 'system',
    parts: [part],
    canonical: oneStep(() => canonicalDigest('system', [bytes], reading.digest)),
  };
}

function parseTools(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  if (!startsWith(bytes, { start: 0, end: 1 }, '[')) throw new ScanError("'tools' is not an array");
  const parts = inSteps(elementsAt(bytes, { start: 0, end: bytes.length }), (span): Part => {
    const [name, ...more] = namesOf(bytes, span);
    return { type: 'tool-definition', span, name: more.length === 0 ? name : undefined };
  });
  return {
    role: 'system',
    parts,
    canonical: oneStep(() => canonicalDigest('tools', [bytes], reading.digest)),
  };
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
  return inSteps(elementsAt(bytes, list), (tool) => namesOf(bytes, tool)).flat();
}

/** Returns the names of a tool. Built-in tools whose calls the provider answers have none; a namespace has those of the tools in it. */
function namesOf(bytes: Uint8Array, tool: Span): readonly string[] {
  if (!startsWith(bytes, tool, '{')) return [];
  const { byKey } = lastMembers(scanObject(bytes, tool.start).members);
  const type = stringAt(bytes, byKey.get('type'));
  if (type === 'namespace') {
    const inner = byKey.get('tools')?.value;
    return inner ? namesIn(bytes, inner) : [];
  }
  const name = stringAt(bytes, byKey.get('name')) ?? builtInName(type);
  return name === undefined ? [] : [name];
}

const encoder = new TextEncoder();

export function write(
  conversation: Conversation,
  edits: readonly Edit[],
  extra: { readonly recallTool?: RecallTool } = {},
): Uint8Array {
  const { recallTool } = extra;
  const tool = recallTool && (() => toolSplice(conversation, definitionsOf(recallTool, toolDefinition)));
  const [input] = conversation.messages;
  if (!input || !startsWith(conversation.body, input.span, '"'))
    return spliced(format, conversation, edits, writer, tool);
  return applySplices(conversation.body, [
    ...textSplices(conversation, edits, input),
    ...(tool ? [tool()] : []),
  ]);
}

/** Appends the items of the reply as they were, and one output for each answer, to the sent body. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(asList(sent), 'input', roundItems(sent, { turn, answers }));
}

/**
 * Returns the items of the reply as they were, encrypted reasoning included, and one output for each answer. Leaves out reasoning
 * that led to nothing: no request may hold it. `body` is a request of the same conversation.
 */
function roundItems(body: Uint8Array, { turn, answers }: RecallRound): readonly Uint8Array[] {
  const items = elementsOf(turn).filter((item) => isUsableLater(body, item));
  return [...withoutStrayReasoning(items).map(({ bytes }) => bytes), ...answers.map(answerItem)];
}

function answerItem({ call, text, media = [] }: RecallAnswer): Uint8Array {
  const item = { type: 'function_call_output', call_id: call.id, output: text };
  if (media.length === 0) return jsonBytes(item);
  const output = jsonList([
    jsonBytes({ type: 'input_text', text }),
    ...media.map(({ json }) => recalledPart(json)),
  ]);
  return withMembers(jsonBytes(item), { output });
}

/**
 * False for reasoning that neither the provider keeps nor the item holds encrypted: it is gone. "Item with id 'rs_…' not found.
 * Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
 */
function isUsableLater(sent: Uint8Array, item: JsonElement): boolean {
  if (!isReasoning(item) || stringIn(item.value, 'encrypted_content') !== undefined) return true;
  const store = memberBytes(sent, 'store');
  return store?.[0] !== 'f'.charCodeAt(0);
}

/**
 * Returns the splices of edits of an input that is one text. It becomes a list with one message, unless it is only replaced: nothing can be
 * added to a text.
 */
function textSplices(conversation: Conversation, edits: readonly Edit[], input: Message): readonly Splice[] {
  const splices = messageSplices(conversation, edits, writer);
  if (edits.every((edit) => edit.kind === 'replace-text')) return splices;
  const added = edits.flatMap((edit) =>
    edit.kind === 'insert-message' ? [writer.insertedMessage(edit.role, edit.text)] : [],
  );
  const replaced = edits.find((edit) => edit.kind === 'replace-text');
  const text = replaced
    ? jsonBytes(replaced.stub)
    : conversation.body.subarray(input.span.start, input.span.end);
  const kept = droppedMessages(conversation, edits).size === 0 ? [userMessage(text)] : [];
  return [{ span: input.span, bytes: jsonList([...added, ...kept]) }];
}

function userMessage(text: Uint8Array): Uint8Array {
  return concatBytes([encoder.encode('{"role":"user","content":'), text, encoder.encode('}')]);
}

/** Turns an input that is one text into the list with one message of the user that it means. */
function asList(body: Uint8Array): Uint8Array {
  const input = scanObject(body, skipSpace(body, 0)).members.find((member) => member.key === 'input');
  if (!input || !startsWith(body, input.value, '"')) return body;
  const message = userMessage(body.subarray(input.value.start, input.value.end));
  return applySplices(body, [{ span: input.value, bytes: jsonList([message]) }]);
}

const inputText = (text: string) => jsonBytes({ type: 'input_text', text });

const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ type: 'message', role, content: text }),
  dropParts({ message, dropped }): readonly Splice[] {
    // Only the content list of a message has several parts; all other items are one part.
    const spans = message.parts.map((part) => shift(part.span, message.span.start));
    return listSplices(spans, message.span.end, (index) => dropped.has(index));
  },
  replaceMedia: (edits, conversation, dropped) =>
    screenshotSplices(edits, conversation, dropped) ?? mediaSplices(edits.media, inputText),
};

/** Adds the recall tool after the client's own tools. A request that brings all of them in items has no list, or an empty one. */
function toolSplice(conversation: Conversation, definition: Uint8Array): Splice {
  const { body, toolNames, preamble } = conversation;
  if (
    toolNames.length === 0 ||
    preamble.some(({ parts }) => parts.some(({ type }) => type === 'tool-definition'))
  )
    return appendTool(conversation, definition);
  const { members, span } = scanObject(body, skipSpace(body, 0));
  const tools = members.find((member) => member.key === 'tools');
  if (tools) return { span: tools.value, bytes: jsonList([definition]) };
  const added = concatBytes([encoder.encode('"tools":'), jsonList([definition])]);
  const spans = members.map((member) => member.span);
  const [splice] = listSplices(spans, span.end - 1, () => false, [{ before: members.length, bytes: added }]);
  return splice!;
}

/** The schema is not strict: a strict one must require every argument. */
function toolDefinition({ name, description, parameters }: RecallTool): Uint8Array {
  return jsonBytes({ type: 'function', name, description, parameters, strict: false });
}

/** An empty request in place of the conversation's: `roundItems` only looks whether the provider keeps the request. */
const kept = jsonBytes({});
const notKept = jsonBytes({ store: false });
const itemsWhereKept = memoized((round: RecallRound) => roundItems(kept, round));
const itemsWhereNotKept = memoized((round: RecallRound) => roundItems(notKept, round));
const isKept = memoized(({ body }: Conversation) => memberBytes(body, 'store')?.[0] !== 'f'.charCodeAt(0));

function itemsFor(conversation: Conversation, round: RecallRound): readonly Uint8Array[] {
  return isKept(conversation) ? itemsWhereKept(round) : itemsWhereNotKept(round);
}

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { input: turn }), unremembered),
    reasoningKeys(bytes) {
      const item: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return ['id', 'encrypted_content'].flatMap((key) => stringIn(item, key) ?? []);
    },
    round: itemsFor,
    withClientResults: (conversation, round) => ({ messages: itemsFor(conversation, round), splices: [] }),
    referred(conversation, message, part, hiddenRecall) {
      if (part.type !== 'opaque' || part.kind !== 'item_reference') return undefined;
      return saidBefore(hiddenRecall).get(itemText(conversation, message, 'id') ?? '');
    },
  },
  writer,
);

/** Items by id, each as a turn. When the provider keeps the history, a client may send references in place of what the model said. */
const saidBefore = memoized(({ rounds, closing }: HiddenRecall): ReadonlyMap<string, Uint8Array> => {
  const turns = [...rounds.map(({ turn }) => turn), ...(closing ? [closing] : [])];
  const items = turns.flatMap(elementsOf);
  return new Map(items.map(({ bytes, value }) => [stringIn(value, 'id') ?? '', jsonList([bytes])]));
});

/**
 * Makes a request continue a response that the provider keeps. Pending outputs come ahead of the client's own; an input that is
 * one text stays one without pending outputs. https://platform.openai.com/docs/guides/conversation-state
 */
export function continueReply(
  { body }: Pick<Conversation, 'body'>,
  { name, pendingAnswers }: KeptReply,
): Uint8Array {
  const named = setMembers(body, { previous_response_id: jsonBytes(name) });
  if (pendingAnswers.length === 0) return named;
  const listed = asList(named);
  const input = scanObject(listed, skipSpace(listed, 0)).members.find(({ key }) => key === 'input')!.value;
  const outputs = pendingAnswers.map((answer) => ({ before: 0, bytes: answerItem(answer) }));
  const { elements } = scanArray(listed, input.start);
  return applySplices(
    listed,
    listSplices(elements, input.end - 1, () => false, outputs),
  );
}

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    instructions: system,
    input: [{ role: 'user', content: text }],
    max_output_tokens: maxOutputTokens,
    // Nothing continues from this response.
    store: false,
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
