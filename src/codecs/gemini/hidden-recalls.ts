/** Writes hidden recalls in generateContent: the model's content as it was, and the answers in the user's content after it. */
import type { Conversation, Part, RecallRound } from '../../conversation/conversation.ts';
import { type Splice, jsonBytes, listSplices, scanArray } from '../../conversation/json-scan.ts';
import { jsonList, memberBytes, withMembers } from '../shared-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { memoized } from '../../conversation/messages.ts';
import { namedMembers, spellings, nameInId } from './read-part.ts';
import { readOn, answerParts, roundContents, turnContent, writer } from './request.ts';
import { callIn, partsOf } from './response.ts';

const read = readOn({ model: undefined, streaming: false });

const contentsOf = memoized(roundContents);

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) =>
      read(withMembers(jsonBytes({}), { contents: jsonList([turnContent(turn)]) }), unremembered),
    // Thoughts are summaries in words; signatures are on other parts.
    reasoningKeys: () => [],
    round: (_, round) => contentsOf(round),
    withClientResults(conversation, round, results) {
      const splices = resultSplices(conversation, round, results);
      const turn = withIds(round, idsOfCalls(conversation, results));
      return splices && { messages: [turnContent(turn)], splices };
    },
  },
  writer,
);

/** Returns the ids of the calls in the client's copy that ends ahead of message `results`; undefined for a call without one. */
function idsOfCalls({ messages }: Conversation, results: number): readonly (string | undefined)[] {
  let start = results;
  while (messages[start - 1]?.role === 'assistant') start--;
  const calls = messages.slice(start, results).flatMap(({ parts }) => parts.filter(isCall));
  return calls.map(({ id }) => (nameInId(id) === undefined ? id : undefined));
}

function isCall(part: Part): part is Part & { readonly type: 'tool-call' } {
  return part.type === 'tool-call';
}

/**
 * Adds the client's ids to calls that the provider sent without one: some clients make up ids, and their responses name
 * these. The client's calls are in the order of the ids.
 */
function withIds({ turn, answers }: RecallRound, ids: readonly (string | undefined)[]): Uint8Array {
  const recallTool = answers[0]?.call.name;
  const parts = partsOf(turn);
  let next = 0;
  const named = parts.map(({ bytes, value }) => {
    const call = callIn(value);
    if (!call || call.name === recallTool) return bytes;
    const id = ids[next++];
    return call.id !== undefined || id === undefined ? bytes : withId(bytes, id);
  });
  const isSame = named.every((bytes, index) => bytes === parts[index]?.bytes);
  return isSame ? turn : withMembers(turn, { parts: jsonList(named) });
}

function withId(part: Uint8Array, id: string): Uint8Array {
  const key = spellings('functionCall').find((name) => memberBytes(part, name) !== undefined)!;
  return withMembers(part, { [key]: withMembers(memberBytes(part, key)!, { id: jsonBytes(id) }) });
}

/** Inserts the answers among the client's responses, which are in the order of the calls: "the same order and count". */
function resultSplices(
  { body, messages }: Conversation,
  round: RecallRound,
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
    const earlier = callsBefore(round, index);
    return { before: responses[earlier] ?? responses.at(-1)! + 1, bytes };
  });
  return listSplices(elements, span.end - 1, () => false, insertions);
}

/** Counts the client's calls before the private call of this answer. */
function callsBefore({ turn, answers }: RecallRound, answer: number): number {
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
