/** Writes edits and the recall tool into an Anthropic Messages body, byte by byte. */
import { concatBytes, jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import type { Codec, ModelReply, RecallAnswer, RecallTool } from '../codec.ts';
import { appendMessages } from '../append.ts';
import { bodyWriter } from '../body-writer.ts';
import { jsonList, stringIn } from '../event-json.ts';
import { elementsOf } from './response.ts';
import { type MessageWriter, shift } from '../write-body.ts';

const encoder = new TextEncoder();

/**
 * The sent body, the model's turn as it was (signatures included), and one user message with the answers. Empty text blocks, which
 * the model may give but no request may hold, stay behind ("text content blocks must be non-empty").
 */
export function continueWith(
  sent: Uint8Array,
  reply: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  const results = answers.map(({ call, text }) => ({
    type: 'tool_result',
    tool_use_id: call.id,
    content: text,
  }));
  return appendMessages(sent, 'messages', [
    concatBytes([
      encoder.encode('{"role":"assistant","content":'),
      withoutEmptyTexts(reply.turn),
      encoder.encode('}'),
    ]),
    jsonBytes({ role: 'user', content: results }),
  ]);
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
