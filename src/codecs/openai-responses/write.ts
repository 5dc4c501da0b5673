/** Writes edits, the recall tool, continuations, hidden recalls and prompts of our own into OpenAI Responses bodies. */
import type { Conversation, HiddenRecall, RecallRound, KeptReply } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import {
  type Splice,
  applySplices,
  concatBytes,
  jsonBytes,
  listSplices,
  scanArray,
  scanObject,
  skipSpace,
} from '../../conversation/json-scan.ts';
import {
  appendMessages,
  appendTool,
  droppedMessages,
  messageSplices,
  shift,
  type MessageWriter,
} from '../write-body.ts';
import { type ModelReply, type Prompt, type RecallAnswer, type RecallTool, memoized } from '../codec.ts';
import {
  jsonList,
  memberBytes,
  setMembers,
  stringIn,
  withMembers,
  elementsOf,
  type JsonElement,
} from '../event-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { isReasoning, withoutStrayReasoning } from './output.ts';
import { read } from './read.ts';
import { itemText } from './structure.ts';

const encoder = new TextEncoder();

export function write(
  conversation: Conversation,
  edits: readonly Edit[],
  extra: { readonly recallTool?: RecallTool } = {},
): Uint8Array {
  const splices = [...inputSplices(conversation, edits)];
  if (extra.recallTool) splices.push(toolSplice(conversation, toolDefinition(extra.recallTool)));
  return applySplices(conversation.body, splices);
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

function answerItem({ call, text }: RecallAnswer): Uint8Array {
  return jsonBytes({ type: 'function_call_output', call_id: call.id, output: text });
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
 * Returns the splices of the edits. An input that is one text becomes a list with one message, unless it is only replaced:
 * nothing can be added to a text.
 */
function inputSplices(conversation: Conversation, edits: readonly Edit[]): readonly Splice[] {
  const splices = messageSplices(conversation, edits, writer);
  const [input] = conversation.messages;
  const isText = input && startsWith(conversation.body, input.span, '"');
  if (!isText || edits.every((edit) => edit.kind === 'replace-text')) return splices;
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

const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ type: 'message', role, content: text }),
  dropParts({ message, dropped }): readonly Splice[] {
    // Only the content list of a message has several parts; all other items are one part.
    const spans = message.parts.map((part) => shift(part.span, message.span.start));
    return listSplices(spans, message.span.end, (index) => dropped.has(index));
  },
};

/** Adds the recall tool behind the client's own tools. A request that brings all of them in items has no list, or an empty one. */
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

/** A small body in place of the conversation's: a round only asks whether the provider keeps the request. */
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
