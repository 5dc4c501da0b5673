/**
 * Reads an Anthropic Messages request body into the conversation view, and writes such bodies: with edits, the recall tool, continuations
 * after a recall and hidden recalls, and new ones for summaries. https://docs.anthropic.com/en/api/messages
 */
import type {
  Conversation,
  Media,
  Part,
  Role,
  Span,
  Stays,
  RecallRound,
  RecalledMedia,
} from '../../conversation/conversation.ts';
import {
  type Member,
  type Splice,
  ScanError,
  scanArray,
  scanObject,
  jsonBytes,
  listSplices,
} from '../../conversation/json-scan.ts';
import { canonicalDigest, memoized } from '../../conversation/messages.ts';
import {
  type LastMembers,
  contentPieces,
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
  markedForMs,
  markMs,
  writesLong,
  jsonList,
  memberBytes,
  recordAt,
  setMembers,
  stringIn,
  withMembers,
  elementsOf,
} from '../shared-json.ts';
import type {
  ReadBlock,
  ReadContext,
  Codec,
  ModelReply,
  Prompt,
  RecallAnswer,
  RecallTool,
} from '../codec.ts';
import { inSteps, oneStep } from '../../conversation/steps.ts';
import { loadsTools } from '../../conversation/edit.ts';
import { type MessageWriter, appendMessages, mediaSplices, shift } from '../write-body.ts';
import { bodyWriter } from '../earlier-bodies.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';

/** Clients move cache marks from turn to turn; the model does not see them. */
const moving: ReadonlySet<string> = new Set(['cache_control']);

/** Fields that are read as blocks; all other fields are parsed whole. */
const blockFields: ReadonlySet<string> = new Set(['messages', 'system', 'tools']);

const format = 'Anthropic Messages';

export function read(body: Uint8Array, reading: ReadContext): Conversation {
  return readFields(format, body, 'messages', reading, (fields) => {
    const messages = readMessages(fields, reading, parseMessage);
    const system = readPreamble(fields, 'system', reading, parseSystem);
    const tools = readPreamble(fields, 'tools', reading, parseTools);
    const others = parseOtherFields(fields, blockFields);
    const { model, stream, max_tokens, cache_control, output_config } = others;
    const formats = [others['output_format'], recordAt(output_config, 'format')];
    const choice = stringIn(others['tool_choice'], 'type');
    const mayCall = choice !== 'none';
    const preamble = [tools, system].filter((block) => block !== undefined);
    const keptMs = longestOf([markMs(cache_control), longestMark(preamble), longestMark(messages)]);
    return {
      body,
      model: typeof model === 'string' ? model : undefined,
      streaming: stream === true,
      replies: 1,
      maxOutputTokens: typeof max_tokens === 'number' ? max_tokens : undefined,
      toolNames: toolNamesOf(tools),
      preamble,
      messages,
      // https://platform.claude.com/docs/en/build-with-claude/structured-outputs
      wantsJson: mayCall && formats.some((wanted) => stringIn(wanted, 'type') !== undefined),
      forbidsRecall: !mayCall || choice === 'tool',
      marked: keptMs !== undefined,
      keptMs,
      writesLong: writesLong(keptMs),
    };
  });
}

function parseMessage(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const members = oneStep(() => objectAt(bytes, 0));
  const canonical = (role: Role) =>
    oneStep(() => canonicalDigest(role, memberPieces(bytes, members, moving), reading.digest));
  const { byKey, repeats } = lastMembers(members);
  const content = byKey.get('content')?.value;
  const speaker = stringAt(bytes, byKey.get('role'));
  if (speaker !== 'user' && speaker !== 'assistant' && speaker !== 'system')
    throw new ScanError('a message has no known role');
  if (!content) throw new ScanError('a message has no content');
  const said = parseContent(bytes, content);
  const parts = repeats ? keptWithStep(said, { start: 0, end: bytes.length }) : said;
  const role: Role =
    speaker === 'user' && parts.length > 0 && parts.every((part) => part.type === 'tool-result')
      ? 'tool'
      : speaker;
  return { role, parts, canonical: canonical(role), markedForMs: markedForMs(bytes, members) };
}

/** Content is a string or an array of blocks; a string means the same as one text block. */
function parseContent(bytes: Uint8Array, content: Span): readonly Part[] {
  if (startsWith(bytes, content, '"')) return [{ type: 'text', span: content, texts: [content] }];
  if (!startsWith(bytes, content, '[')) throw new ScanError('content is neither a string nor an array');
  return inSteps(elementsAt(bytes, content), (span): Part => {
    const { byKey, repeats } = blockMembers(bytes, span);
    const part = parseBlock(bytes, span, byKey);
    return repeats ? { ...part, stays: 'step' } : part;
  });
}

function blockMembers(bytes: Uint8Array, span: Span): LastMembers {
  if (!startsWith(bytes, span, '{')) throw new ScanError('a content block is not an object');
  return lastMembers(objectAt(bytes, span.start));
}

function parseBlock(bytes: Uint8Array, span: Span, byKey: ReadonlyMap<string, Member>): Part {
  const kind = stringAt(bytes, byKey.get('type')) ?? 'unknown';
  switch (kind) {
    case 'text': {
      // Citations quote positions of exactly this text, so a text with citations stays unchanged.
      const text = textMember(bytes, byKey.get('text'));
      if (!text || holdsAny(bytes, byKey.get('citations'))) return { type: 'opaque', span, kind };
      return { type: 'text', span, texts: [text] };
    }
    case 'tool_use': {
      const id = stringAt(bytes, byKey.get('id'));
      const name = stringAt(bytes, byKey.get('name'));
      const input = byKey.get('input')?.value;
      if (id === undefined || name === undefined || !input)
        throw new ScanError('a tool_use block lacks id, name or input');
      return { type: 'tool-call', span, id, name, input };
    }
    case 'tool_result':
      return parseResult(bytes, span, byKey);
    case 'thinking':
    case 'redacted_thinking': {
      const text = textMember(bytes, byKey.get('thinking'));
      const sealed = textMember(bytes, byKey.get('signature') ?? byKey.get('data'));
      return { type: 'reasoning', span, texts: text ? [text] : [], signed: true, sealed };
    }
    case 'image':
    case 'document':
      return { type: 'media', span, media: parseMedia(bytes, span, kind, byKey) };
    // The model gets the tools that a search found from this block only.
    case 'tool_search_tool_result':
    case 'tool_reference':
      return { type: 'opaque', span, kind, stays: 'pair' };
    case 'server_tool_use':
      return loadsTools(stringAt(bytes, byKey.get('name')) ?? '')
        ? { type: 'opaque', span, kind, stays: 'pair' }
        : { type: 'opaque', span, kind };
    default: {
      const { data } = parseMedia(bytes, span, kind, byKey);
      return { type: 'opaque', span, kind, ...(data && { data }) };
    }
  }
}

/** True for a member that is neither null nor an empty list. */
function holdsAny(bytes: Uint8Array, member: Member | undefined): boolean {
  if (!member || isNull(bytes, member.value)) return false;
  return !startsWith(bytes, member.value, '[') || scanArray(bytes, member.value.start).elements.length > 0;
}

function parseResult(bytes: Uint8Array, span: Span, byKey: ReadonlyMap<string, Member>): Part {
  const callId = stringAt(bytes, byKey.get('tool_use_id'));
  if (callId === undefined) throw new ScanError('a tool_result block has no tool_use_id');
  const content = byKey.get('content')?.value;
  const errorFlag = byKey.get('is_error')?.value;
  const isError = errorFlag && bytes[errorFlag.start] === 't'.charCodeAt(0);
  const result = { type: 'tool-result', span, callId, isError: isError ?? false } as const;
  if (!content || isNull(bytes, content)) return { ...result, texts: [], media: [] };
  if (startsWith(bytes, content, '"')) return { ...result, texts: [content], media: [] };
  if (!startsWith(bytes, content, '['))
    throw new ScanError('a tool_result holds neither a string nor an array');
  const texts: Span[] = [];
  const media: Media[] = [];
  let stays: Stays | undefined;
  const items = inSteps(elementsAt(bytes, content), (item) => parseResultItem(bytes, item));
  for (const item of items) {
    if (item.stays === 'step' || stays === undefined) stays = item.stays ?? stays;
    if (item.text) texts.push(item.text);
    else media.push(item.media);
  }
  return { ...result, texts, media, ...(stays && { stays }) };
}

function parseResultItem(bytes: Uint8Array, span: Span) {
  const { byKey, repeats } = blockMembers(bytes, span);
  const kind = stringAt(bytes, byKey.get('type')) ?? 'unknown';
  const text = textMember(bytes, byKey.get('text'));
  const stays: Stays | undefined = repeats ? 'step' : kind === 'tool_reference' ? 'pair' : undefined;
  return kind === 'text' && text ? { text, stays } : { media: parseMedia(bytes, span, kind, byKey), stays };
}

function parseMedia(bytes: Uint8Array, span: Span, kind: string, byKey: ReadonlyMap<string, Member>): Media {
  const source = byKey.get('source')?.value;
  const members = source && startsWith(bytes, source, '{') ? scanObject(bytes, source.start).members : [];
  const data = members.find((member) => member.key === 'data' || member.key === 'url')?.value;
  const citations = byKey.get('citations')?.value;
  // Replies cite documents by their number.
  const isFixed = kind === 'document' && citations && !isNull(bytes, citations);
  const media = { kind: kind === 'image' || kind === 'document' ? kind : 'other', span, data } as const;
  return isFixed ? { ...media, isFixed } : media;
}

function parseSystem(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const content = { start: 0, end: bytes.length };
  const parts = parseContent(bytes, content);
  const pieces = contentPieces(bytes, content, moving);
  const canonical = oneStep(() => canonicalDigest('system', pieces, reading.digest));
  return { role: 'system', parts, canonical, markedForMs: blocksMarkedForMs(bytes, content) };
}

/** The first byte of `true`. */
const letterT = 't'.charCodeAt(0);

function parseTools(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  if (!startsWith(bytes, { start: 0, end: 1 }, '[')) throw new ScanError("'tools' is not an array");
  const parts = inSteps(elementsAt(bytes, { start: 0, end: bytes.length }), (span): Part => {
    const { byKey } = blockMembers(bytes, span);
    const deferred = byKey.get('defer_loading')?.value;
    return {
      type: 'tool-definition',
      span,
      name: stringAt(bytes, byKey.get('name')),
      ...(deferred && bytes[deferred.start] === letterT ? { isDeferred: true } : {}),
    };
  });
  const canonical = oneStep(() => canonicalDigest('tools', [bytes], reading.digest));
  return {
    role: 'system',
    parts,
    canonical,
    markedForMs: blocksMarkedForMs(bytes, { start: 0, end: bytes.length }),
  };
}

/** Appends the model's turn as it was (signatures included), and one user message with the answers, to the sent body. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(sent, 'messages', roundMessages({ turn, answers }));
}

function roundMessages({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const content = jsonList(answerBlocks(answers));
  return [turnMessage(turn), withMembers(jsonBytes({ role: 'user' }), { content })];
}

/**
 * Returns the model's content as a message, without empty text blocks: the model may send them, but no request may hold them
 * ("text content blocks must be non-empty").
 */
function turnMessage(turn: Uint8Array): Uint8Array {
  return withMembers(jsonBytes({ role: 'assistant' }), { content: withoutEmptyTexts(turn) });
}

function answerBlocks(answers: readonly RecallAnswer[]): readonly Uint8Array[] {
  return answers.map(({ call, text, media = [] }) => {
    const result = { type: 'tool_result', tool_use_id: call.id, content: text };
    if (media.length === 0) return jsonBytes(result);
    const content = jsonList([jsonBytes({ type: 'text', text }), ...media.map(recalledBlock)]);
    return withMembers(jsonBytes(result), { content });
  });
}

/** A request may hold few cache marks, and the mark of the folded block was for another place. */
function recalledBlock({ json }: RecalledMedia): Uint8Array {
  return setMembers(encoder.encode(json), { cache_control: undefined });
}

const encoder = new TextEncoder();

function withoutEmptyTexts(turn: Uint8Array): Uint8Array {
  const blocks = elementsOf(turn);
  const kept = blocks.filter(
    ({ value }) => !(stringIn(value, 'type') === 'text' && stringIn(value, 'text') === ''),
  );
  return kept.length === blocks.length ? turn : jsonList(kept.map(({ bytes }) => bytes));
}

const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ role, content: text }),
  dropParts({ message, dropped }): readonly Splice[] {
    // The parts of a message are the elements of its content array; a string content is one part and never gets here.
    const spans = message.parts.map((part) => shift(part.span, message.span.start));
    return listSplices(spans, message.span.end, (index) => dropped.has(index));
  },
  replaceMedia: ({ media }, { body }) =>
    mediaSplices(media, (text, span) => {
      const mark = memberBytes(body.subarray(span.start, span.end), 'cache_control');
      const block = jsonBytes({ type: 'text', text });
      return mark ? withMembers(block, { cache_control: mark }) : block;
    }),
};

function toolDefinition(tool: RecallTool): Uint8Array {
  return jsonBytes({ name: tool.name, description: tool.description, input_schema: tool.parameters });
}

export const write: Codec['write'] = bodyWriter(format, writer, toolDefinition);

const messagesOf = memoized(roundMessages);

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) =>
      read(withMembers(jsonBytes({}), { messages: jsonList([turnMessage(turn)]) }), unremembered),
    reasoningKeys(bytes) {
      const block: unknown = JSON.parse(new TextDecoder().decode(bytes));
      const key = stringIn(block, 'signature') ?? stringIn(block, 'data');
      return key === undefined ? [] : [key];
    },
    round: (_, round) => messagesOf(round),
    withClientResults(conversation, round, results) {
      const splice = resultsSplice(conversation, round, results);
      return splice && { messages: [turnMessage(round.turn)], splices: [splice] };
    },
  },
  writer,
);

/** Inserts the answers ahead of the client's results ("all parallel results together"), and ahead of other content. */
function resultsSplice(
  { body, messages }: Conversation,
  { answers }: RecallRound,
  results: number,
): Splice | undefined {
  const message = messages[results];
  if (!message?.parts.some((part) => part.type === 'tool-result')) return undefined;
  const content = scanObject(body, message.span.start).members.find(({ key }) => key === 'content')?.value;
  if (!content || !startsWith(body, content, '[')) return undefined;
  const { elements, span } = scanArray(body, content.start);
  const insertions = answerBlocks(answers).map((bytes) => ({ before: 0, bytes }));
  return listSplices(elements, span.end - 1, () => false, insertions)[0];
}

export function promptBody({ model, system, text, maxOutputTokens }: Prompt): Uint8Array {
  const body = {
    model,
    max_tokens: maxOutputTokens,
    system,
    messages: [{ role: 'user', content: text }],
  };
  return new TextEncoder().encode(JSON.stringify(body));
}
