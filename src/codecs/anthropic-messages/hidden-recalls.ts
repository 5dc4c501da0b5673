/** Hidden recalls in Anthropic Messages: the model's content as it was, and the answers in the user message behind it. */
import type { Conversation } from '../../conversation/conversation.ts';
import type { RecallRound } from '../../conversation/hidden-recall.ts';
import { scanArray, scanObject } from '../../conversation/json-scan.ts';
import { jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import { jsonList, stringIn, withMembers } from '../event-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { remembered } from '../remembered.ts';
import { read } from './read.ts';
import { answerBlocks, roundMessages, turnMessage, writer } from './write.ts';

const messagesOf = remembered(roundMessages);

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
    besideResults(conversation, round, results) {
      const splice = resultsSplice(conversation, round, results);
      return splice && { messages: [turnMessage(round.turn)], splices: [splice] };
    },
  },
  writer,
);

/** In front of the client's results: "all parallel results together", and before other content. */
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
