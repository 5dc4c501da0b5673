/** Writes edits, the recall tool, continuations, hidden recalls and prompts of our own into Chat Completions bodies. */
import type { Conversation, RecallRound } from '../../conversation/conversation.ts';
import { type Splice, jsonBytes, listSplices, scanArray, scanObject } from '../../conversation/json-scan.ts';
import { appendMessages, bodyWriter, shift, type MessageEdits, type MessageWriter } from '../write-body.ts';
import {
  type Codec,
  type ModelReply,
  type Prompt,
  type RecallAnswer,
  type RecallTool,
  memoized,
} from '../codec.ts';
import { jsonList, withMembers } from '../event-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { unremembered } from '../read-body.ts';
import { isFunctionId, read } from './read.ts';

/** Appends the assistant message as it was, and one tool message for each answer, to the sent body. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(sent, 'messages', roundMessages({ turn, answers }));
}

/** Returns the assistant message as it was, and one tool message for each answer. */
function roundMessages({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const results = answers.map(({ call, text }) =>
    isFunctionId(call.id)
      ? { role: 'function', name: call.name, content: text }
      : { role: 'tool', tool_call_id: call.id, content: text },
  );
  return [turn, ...results.map(jsonBytes)];
}

const writer: MessageWriter = {
  insertedMessage: (role, text) => jsonBytes({ role, content: text }),
  dropParts,
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

const writeWithTools = bodyWriter(writer, toolDefinition);

/** In the legacy function form a definition has no wrapper. */
const writeWithFunctions = bodyWriter(writer, (tool) =>
  jsonBytes({ name: tool.name, description: tool.description, parameters: tool.parameters }),
);

export const write: Codec['write'] = (conversation, edits, extra = {}) =>
  extra.recallTool && hasFunctions(conversation)
    ? writeWithFunctions(conversation, edits, extra)
    : writeWithTools(conversation, edits, extra);

/** True when the first list of definitions is one of the legacy function form: these have a name of their own. */
function hasFunctions({ body, preamble }: Conversation): boolean {
  const block = preamble.find(({ parts }) => parts.length > 0);
  const [first] = block?.parts ?? [];
  if (!block || !first) return false;
  return scanObject(body, block.span.start + first.span.start).members.some(({ key }) => key === 'name');
}

const messagesOf = memoized(roundMessages);

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { messages: jsonList([turn]) }), unremembered),
    // Servers of this format send reasoning unsigned, and a client that keeps it joins that of all rounds into one text.
    reasoningKeys: () => [],
    round: (_, round) => messagesOf(round),
    withClientResults: (_, round) => ({ messages: messagesOf(round), splices: [] }),
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
