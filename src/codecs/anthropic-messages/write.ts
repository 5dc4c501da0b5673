/** Writes edits and the recall tool into an Anthropic Messages body, byte by byte. */
import type { RecallRound } from '../../conversation/hidden-recall.ts';
import { jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import type { Codec, ModelReply, RecallAnswer, RecallTool } from '../codec.ts';
import { appendMessages } from '../append.ts';
import { bodyWriter } from '../body-writer.ts';
import { jsonList, stringIn, withMembers } from '../event-json.ts';
import { elementsOf } from './response.ts';
import { type MessageWriter, shift } from '../write-body.ts';

/** The sent body, the model's turn as it was (signatures included), and one user message with the answers. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(sent, 'messages', roundMessages({ turn, answers }));
}

export function roundMessages({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const content = jsonList(answerBlocks(answers));
  return [turnMessage(turn), withMembers(jsonBytes({ role: 'user' }), { content })];
}

/**
 * The model's content as a message. Empty text blocks, which the model may give but no request may hold, stay behind ("text content
 * blocks must be non-empty").
 */
export function turnMessage(turn: Uint8Array): Uint8Array {
  return withMembers(jsonBytes({ role: 'assistant' }), { content: withoutEmptyTexts(turn) });
}

export function answerBlocks(answers: readonly RecallAnswer[]): readonly Uint8Array[] {
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

export const writer: MessageWriter = {
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
