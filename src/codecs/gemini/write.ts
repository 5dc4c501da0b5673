/** Writes edits and the recall tool into a generateContent body, byte by byte. */
import type { Conversation } from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import type { RecallRound } from '../../conversation/hidden-recall.ts';
import { applySplices, jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import { appendMessages } from '../append.ts';
import type { ModelReply, RecallAnswer, RecallTool } from '../codec.ts';
import { jsonList, stringIn, withMembers } from '../event-json.ts';
import {
  droppedMessages,
  type MessageEdits,
  type MessageWriter,
  messageSplices,
  shift,
} from '../write-body.ts';
import { joinNeighbours, type Origin } from './join.ts';
import { callIn, partsOf } from './reply-parts.ts';
import { namedMembers } from './names.ts';
import { toolSplice } from './recall-tool.ts';

type Extra = { readonly recallTool?: RecallTool };

/** The body with the edits; contents of one side that the edits made neighbours are one content. */
export function write(conversation: Conversation, edits: readonly Edit[], extra: Extra = {}): Uint8Array {
  const body = writeApart(conversation, edits, extra);
  const moves = edits.some(({ kind }) => kind !== 'replace-text' && kind !== 'replace-input');
  return moves ? joinNeighbours(body, originsAfter(conversation, edits)) : body;
}

/** The same with every content for itself: what was inserted is a content of its own, and dropped ones leave neighbours. */
export function writeApart(
  conversation: Conversation,
  edits: readonly Edit[],
  extra: Extra = {},
): Uint8Array {
  const splices = [...messageSplices(conversation, edits, writer)];
  if (extra.recallTool) splices.push(toolSplice(conversation, extra.recallTool));
  return applySplices(conversation.body, splices);
}

/** The sent body, the model's content as it was (signatures included), and one content of the user's with the answers. */
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

/** One response for each answer. Ids that we made stand in no call and go into no body. */
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

/** Where each content of the written body comes from, in its order. */
function originsAfter(conversation: Conversation, edits: readonly Edit[]): readonly Origin[] {
  const gone = droppedMessages(conversation, edits);
  const inserted = new Map<number, number>();
  for (const edit of edits)
    if (edit.kind === 'insert-message') inserted.set(edit.before, (inserted.get(edit.before) ?? 0) + 1);
  return conversation.messages.flatMap(({ index }): readonly Origin[] => [
    ...Array<Origin>(inserted.get(index) ?? 0).fill('inserted'),
    ...(gone.has(index) ? [] : [index]),
  ]);
}
