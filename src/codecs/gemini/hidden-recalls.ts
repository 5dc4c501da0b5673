/**
 * Writes recalls in generateContent, for continuations and as hidden recalls: the model's content as it was, and the answers in the user's content
 * after it.
 */
import type { Conversation, Part, RecallRound, RecalledMedia } from '../../conversation/conversation.ts';
import type { ModelReply, RecallAnswer } from '../codec.ts';
import { type Splice, jsonBytes, listSplices, scanArray } from '../../conversation/json-scan.ts';
import { jsonList, memberBytes, stringIn, withMembers } from '../shared-json.ts';
import { appendMessages } from '../write-body.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { startsWith, unremembered } from '../read-body.ts';
import { memoized } from '../../conversation/messages.ts';
import { namedMembers, spellings, nameInId } from './read-part.ts';
import { readOn, writer } from './request.ts';
import { callIn, partsOf } from './response.ts';
import { privateToolsOf } from '../../conversation/turns.ts';

const read = readOn({ model: undefined, streaming: false });

/** Appends the model's content as it was (signatures included), and one content of the user's with the answers, to the sent body. */
export function continueWith(
  sent: Uint8Array,
  { turn }: ModelReply,
  answers: readonly RecallAnswer[],
): Uint8Array {
  return appendMessages(sent, 'contents', roundContents({ turn, answers }));
}

function roundContents(round: RecallRound): readonly Uint8Array[] {
  const parts = jsonList([...answerParts(round), ...mediaParts(round)]);
  return [turnContent(round.turn), withMembers(jsonBytes({ role: 'user' }), { parts })];
}

function turnContent(turn: Uint8Array): Uint8Array {
  const hasRole = stringIn(JSON.parse(new TextDecoder().decode(turn)), 'role') !== undefined;
  return hasRole ? turn : withMembers(turn, { role: jsonBytes('model') });
}

/** Returns one response for each answer. Ids that we made are in no call and are not written. */
function answerParts({ turn, answers }: RecallRound): readonly Uint8Array[] {
  const given = new Set(partsOf(turn).flatMap(({ value }) => callIn(value)?.id ?? []));
  return answers.map(({ call, text, media = [] }) => {
    const id = given.has(call.id) ? { id: call.id } : {};
    const response = jsonBytes({ ...id, name: call.name, response: { output: text } });
    const inside = media.filter(({ inResult }) => inResult).map(mediaPart);
    const functionResponse =
      inside.length > 0 ? withMembers(response, { parts: jsonList(inside) }) : response;
    return withMembers(jsonBytes({}), { functionResponse });
  });
}

/** Returns the media that follow all responses: older models take none in a response, so what was a part of the user's stays one. */
function mediaParts({ answers }: RecallRound): readonly Uint8Array[] {
  return answers.flatMap(({ media = [] }) => media.filter(({ inResult }) => !inResult).map(mediaPart));
}

/** Returns the media as a part: results also hold media as MCP spells them. */
function mediaPart({ json }: RecalledMedia): Uint8Array {
  const bytes = new TextEncoder().encode(json);
  const [data, mimeType] = [memberBytes(bytes, 'data'), memberBytes(bytes, 'mimeType')];
  if (!data || !mimeType) return bytes;
  return withMembers(jsonBytes({}), { inlineData: withMembers(jsonBytes({}), { mimeType, data }) });
}

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
  const privateTools = privateToolsOf(answers.map(({ call }) => call.name));
  const parts = partsOf(turn);
  let next = 0;
  const named = parts.map(({ bytes, value }) => {
    const call = callIn(value);
    if (!call || privateTools.has(call.name)) return bytes;
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
  const media = mediaParts(round).map((bytes) => ({ before: elements.length, bytes }));
  return listSplices(elements, span.end - 1, () => false, [...insertions, ...media]);
}

/** Counts the client's calls before the private call of this answer. */
function callsBefore({ turn, answers }: RecallRound, answer: number): number {
  const privateTools = privateToolsOf(answers.map(({ call }) => call.name));
  let recalls = 0;
  let others = 0;
  for (const { value } of partsOf(turn)) {
    const call = callIn(value);
    if (!call) continue;
    if (!privateTools.has(call.name)) others++;
    else if (recalls++ === answer) break;
  }
  return others;
}
