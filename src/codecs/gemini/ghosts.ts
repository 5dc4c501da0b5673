/** Ghost turns in generateContent: the model's content as it was, and the answers in the user's content behind it. */
import type { Conversation } from '../../conversation/conversation.ts';
import type { GhostRound } from '../../conversation/ghost-turn.ts';
import { scanArray } from '../../conversation/json-scan.ts';
import { jsonBytes, listSplices, type Splice } from '../../conversation/splice.ts';
import { jsonList, withMembers } from '../event-json.ts';
import { ghostInserter } from '../insert-ghosts.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { namedMembers } from './names.ts';
import { readOn } from './read.ts';
import { callIn, partsOf } from './reply-parts.ts';
import { answerParts, roundContents, turnContent, writer } from './write.ts';

const read = readOn({ model: undefined, streaming: false });

export const insertGhosts = ghostInserter(
  {
    readTurn: (turn) =>
      read(withMembers(jsonBytes({}), { contents: jsonList([turnContent(turn)]) }), unremembered),
    // Thoughts are summaries in words; what is signed is signed on other parts.
    reasoningKeys: () => [],
    round: (_, round) => roundContents(round),
    besideResults(conversation, round, results) {
      const splices = resultSplices(conversation, round, results);
      return splices && { messages: [turnContent(round.turn)], splices };
    },
  },
  writer,
);

/** Among the client's responses, which stand in the order of the calls: "the same order and count". */
function resultSplices(
  { body, messages }: Conversation,
  round: GhostRound,
  results: number,
): readonly Splice[] | undefined {
  const message = messages[results];
  const list = message && namedMembers(body, message.span)?.get('parts')?.value;
  if (!message?.parts.some((part) => part.type === 'tool-result') || !list || !startsWith(body, list, '['))
    return undefined;
  const { elements, span } = scanArray(body, list.start);
  const responses = elements.flatMap((element, index) =>
    namedMembers(body, element)?.has('functionResponse') ? [index] : [],
  );
  const insertions = answerParts(round).map((bytes, index) => {
    const behind = callsBefore(round, index);
    return { before: responses[behind] ?? responses.at(-1)! + 1, bytes };
  });
  return listSplices(elements, span.end - 1, () => false, insertions);
}

/** How many calls of the client's stand before the private call of this answer. */
function callsBefore({ turn, answers }: GhostRound, answer: number): number {
  const recallTool = answers[answer]?.call.name;
  let recalls = 0;
  let others = 0;
  for (const { value } of partsOf(turn)) {
    const call = callIn(value);
    if (!call) continue;
    if (call.name !== recallTool) others++;
    else if (recalls++ === answer) break;
  }
  return others;
}
