/** Hidden recalls in Chat Completions: the assistant message as it was, a tool message for each answer, and what the client keeps of it. */
import { jsonList, withMembers } from '../event-json.ts';
import { jsonBytes } from '../../conversation/splice.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { unremembered } from '../read-body.ts';
import { remembered } from '../remembered.ts';
import { read } from './read.ts';
import { roundMessages, writer } from './write.ts';

const messagesOf = remembered(roundMessages);

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { messages: jsonList([turn]) }), unremembered),
    // Servers of this format say it in the open, and a client that keeps it joins that of all rounds in one text.
    reasoningKeys: () => [],
    round: (_, round) => messagesOf(round),
    besideResults: (_, round) => ({ messages: messagesOf(round), splices: [] }),
  },
  writer,
);
