/** Writes edits, the recall tool, continuations, hidden recalls and prompts of our own into Anthropic Messages bodies. */
import type { Conversation, RecallRound } from '../../conversation/conversation.ts';
import { type Splice, jsonBytes, listSplices, scanArray, scanObject } from '../../conversation/json-scan.ts';
import { appendMessages, bodyWriter, shift, type MessageWriter } from '../write-body.ts';
import {
  type Codec,
  type ModelReply,
  type Prompt,
  type RecallAnswer,
  type RecallTool,
  memoized,
} from '../codec.ts';
import { jsonList, stringIn, withMembers, elementsOf } from '../event-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { read } from './read.ts';

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
  return answers.map(({ call, text }) =>
    jsonBytes({ type: 'tool_result', tool_use_id: call.id, content: text }),
  );
}

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
};

function toolDefinition(tool: RecallTool): Uint8Array {
  return jsonBytes({ name: tool.name, description: tool.description, input_schema: tool.parameters });
}

export const write: Codec['write'] = bodyWriter(writer, toolDefinition);

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
