/** Writes edits, the recall tool, continuations and prompts of our own into generateContent bodies. */
import {
  type Splice,
  applySplices,
  isRecord,
  jsonBytes,
  listSplices,
  scanArray,
} from '../../conversation/json-scan.ts';
import { type Conversation, type Part, type RecallRound, bytesOf } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { LeporelloError } from '../../errors.ts';
import {
  appendMessages,
  droppedMessages,
  messageSplices,
  shift,
  type MessageEdits,
  type MessageWriter,
} from '../write-body.ts';
import type { ModelReply, Prompt, RecallAnswer, RecallTool } from '../codec.ts';
import { jsonList, stringIn, withMembers } from '../event-json.ts';
import { startsWith } from '../read-body.ts';
import { joinNeighbours, type ContentOrigin } from './join.ts';
import { namedMembers } from './names.ts';
import { callIn, partsOf } from './response.ts';

type Extra = { readonly recallTool?: RecallTool };

/** Writes the edits; contents of one side that the edits made neighbors are joined. */
export function write(conversation: Conversation, edits: readonly Edit[], extra: Extra = {}): Uint8Array {
  const body = writeApart(conversation, edits, extra);
  const moves = edits.some(({ kind }) => kind !== 'replace-text' && kind !== 'replace-input');
  return moves ? joinNeighbours(body, originsAfter(conversation, edits)) : body;
}

/** Does the same without joining: an inserted message is a content of its own, and dropped ones leave neighbors. */
export function writeApart(
  conversation: Conversation,
  edits: readonly Edit[],
  extra: Extra = {},
): Uint8Array {
  const splices = [...messageSplices(conversation, edits, writer)];
  if (extra.recallTool) splices.push(toolSplice(conversation, extra.recallTool));
  return applySplices(conversation.body, splices);
}

/** Appends the model's content as it was (signatures included), and one content of the user's with the answers, to the sent body. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(sent, 'contents', roundContents({ turn, answers }));
}

export function roundContents(round: RecallRound): readonly Uint8Array[] {
  const parts = jsonList(answerParts(round));
  return [turnContent(round.turn), withMembers(jsonBytes({ role: 'user' }), { parts })];
}

export function turnContent(turn: Uint8Array): Uint8Array {
  const hasRole = stringIn(JSON.parse(new TextDecoder().decode(turn)), 'role') !== undefined;
  return hasRole ? turn : withMembers(turn, { role: jsonBytes('model') });
}

/** Returns one response for each answer. Ids that we made are in no call and are not written. */
export function answerParts({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const given = new Set(partsOf(turn).flatMap(({ value }) => callIn(value)?.id ?? []));
  return answers.map(({ call, text }) => {
    const id = given.has(call.id) ? { id: call.id } : {};
    return jsonBytes({ functionResponse: { ...id, name: call.name, response: { output: text } } });
  });
}

export const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ role, parts: [{ text }] }),
  dropParts({ message, dropped }: MessageEdits, body: Uint8Array): readonly Splice[] {
    // Only parts of a list can be dropped one by one: a part without brackets is alone.
    const close = namedMembers(body, message.span)?.get('parts')?.value.end ?? message.span.end;
    const spans = message.parts.map((part) => shift(part.span, message.span.start));
    return listSplices(spans, close - 1, (index) => dropped.has(index));
  },
};

/** Returns the origin of each content of the written body, in order. */
function originsAfter(conversation: Conversation, edits: readonly Edit[]): readonly ContentOrigin[] {
  const gone = droppedMessages(conversation, edits);
  const inserted = new Map<number, number>();
  for (const edit of edits)
    if (edit.kind === 'insert-message') inserted.set(edit.before, (inserted.get(edit.before) ?? 0) + 1);
  return conversation.messages.flatMap(({ index }): readonly ContentOrigin[] => [
    ...Array<ContentOrigin>(inserted.get(index) ?? 0).fill('inserted'),
    ...(gone.has(index) ? [] : [index]),
  ]);
}

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
    const insertion = { before: list.elements.length, bytes: declaration(tool, jsonSchema) };
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
