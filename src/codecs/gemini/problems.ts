/**
 * Checks the invariants of generateContent that a compressor could break, each with the provider's words.
 * https://ai.google.dev/gemini-api/docs/function-calling, https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import { isRecord, parseSpan } from '../../conversation/json-scan.ts';
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { type Problem, memoized } from '../codec.ts';
import { stringOf, valueOf } from './names.ts';
import { isSigned, nameInId } from './read-part.ts';

/** Neighboring contents of one side are one turn: pairing holds between turns. */
type GeminiTurn = { readonly isModel: boolean; readonly said: ContentPart[] };
type ContentPart = { readonly message: Message; readonly part: Part };

export function problems(conversation: Conversation): readonly Problem[] {
  const { messages } = conversation;
  if (messages.length === 0)
    return [{ rule: 'messages-not-empty', message: 0, detail: 'there is no content' }];
  const found: Problem[] = [];
  if (messages[0]!.role === 'assistant')
    found.push(problem('first-is-user', messages[0]!, 'the first content is not from the user'));
  messages.forEach((message, index) => found.push(...shape(conversation, message, messages[index - 1])));
  const turns = turnsOf(messages);
  turns.forEach((turn, index) => {
    found.push(...(turn.isModel ? unanswered(turn, turns[index + 1]) : results(turn, turns[index - 1])));
    if (!turn.isModel) found.push(...misnamed(conversation, turn, turns[index - 1]));
  });
  return [...found, ...unsigned(conversation, turns)];
}

function shape({ body }: Conversation, message: Message, before: Message | undefined): readonly Problem[] {
  const found: Problem[] = [];
  if (message.parts.length === 0)
    found.push(problem('content-not-empty', message, 'the content has no parts'));
  message.parts.forEach((part, index) => {
    if (part.type === 'tool-result' && part.stays && !resultIn(body, message, part).isObject)
      found.push(problem('response-is-object', message, `the response in part ${index} is not an object`));
  });
  if (before && !mayFollow(before, message))
    found.push(problem('roles-alternate', message, 'the content before is from the same side'));
  return found;
}

/**
 * "Please ensure that multiturn requests alternate between user and model." Two kinds of neighbors are accepted all the same:
 * contents of the model (the official client makes one for each chunk of a stream), and the user's words right behind results.
 */
function mayFollow(before: Message, message: Message): boolean {
  if (message.role === 'assistant' || before.role === 'assistant') return true;
  const answers = message.parts.some((part) => part.type === 'tool-result');
  return before.role === 'tool' && message.role === 'user' && !answers;
}

function turnsOf(messages: readonly Message[]): readonly GeminiTurn[] {
  const turns: GeminiTurn[] = [];
  for (const message of messages) {
    const isModel = message.role === 'assistant';
    const said = message.parts.map((part) => ({ message, part }));
    const last = turns.at(-1);
    if (last?.isModel === isModel) last.said.push(...said);
    else turns.push({ isModel, said });
  }
  return turns;
}

/** "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn." */
function unanswered(turn: GeminiTurn, next: GeminiTurn | undefined): readonly Problem[] {
  const answers = countsOf(next, (part) => (part.type === 'tool-result' ? part.callId : undefined));
  return turn.said.flatMap(({ message, part }) => {
    if (part.type !== 'tool-call') return [];
    const left = answers.get(part.id) ?? 0;
    answers.set(part.id, left - 1);
    return left > 0
      ? []
      : [
          problem(
            'calls-answered-next',
            message,
            `function call ${part.id} has no response in the next turn`,
          ),
        ];
  });
}

/** "Please ensure that function response turn comes immediately after a function call turn." */
function results(turn: GeminiTurn, previous: GeminiTurn | undefined): readonly Problem[] {
  const asked = countsOf(previous, (part) => (part.type === 'tool-call' ? part.id : undefined));
  const open = new Map(asked);
  const found = turn.said.flatMap(({ message, part }) => {
    if (part.type !== 'tool-result') return [];
    const left = open.get(part.callId) ?? 0;
    open.set(part.callId, left - 1);
    if (left > 0) return [];
    return asked.has(part.callId)
      ? [problem('one-result-a-call', message, `function call ${part.callId} is answered too often`)]
      : [
          problem(
            'results-answer-calls',
            message,
            `response ${part.callId} answers no call of the turn before`,
          ),
        ];
  });
  return found.length > 0 ? found : disordered(turn, previous);
}

/** Without ids, only name and order say which response answers which call. */
function disordered(turn: GeminiTurn, previous: GeminiTurn | undefined): readonly Problem[] {
  const calls = (previous?.said ?? []).flatMap(({ part }) => (part.type === 'tool-call' ? [part.id] : []));
  if (calls.some((id) => nameInId(id) === undefined)) return [];
  const answers = turn.said.filter(({ part }) => part.type === 'tool-result');
  const wrong = answers.find(({ part }, at) => part.type === 'tool-result' && part.callId !== calls[at]);
  return wrong && answers.length === calls.length
    ? [
        problem(
          'results-in-order',
          wrong.message,
          'responses without ids stand in another order than their calls',
        ),
      ]
    : [];
}

/** "the name … Matches FunctionDeclaration.name and FunctionCall.name" */
function misnamed(
  { body }: Conversation,
  turn: GeminiTurn,
  previous: GeminiTurn | undefined,
): readonly Problem[] {
  const names = new Map(
    (previous?.said ?? []).flatMap(({ part }) => (part.type === 'tool-call' ? [[part.id, part.name]] : [])),
  );
  return turn.said.flatMap(({ message, part }) => {
    if (part.type !== 'tool-result' || nameInId(part.callId) !== undefined) return [];
    const { name } = resultIn(body, message, part);
    const called = names.get(part.callId);
    return name === undefined || called === undefined || name === called
      ? []
      : [
          problem(
            'results-name-calls',
            message,
            `response ${part.callId} names another function than its call`,
          ),
        ];
  });
}

type Result = { readonly name: string | undefined; readonly isObject: boolean };

/** Results by part: parts read once serve every later body, so a result is looked up once. */
const knownResults = new WeakMap<Part, Result>();

function resultIn(body: Uint8Array, message: Message, part: Part): Result {
  const known = knownResults.get(part);
  if (known) return known;
  const { start } = message.span;
  const value = parseSpan(body, { start: start + part.span.start, end: start + part.span.end });
  const result = valueOf(value, 'functionResponse');
  const response = valueOf(result, 'response') ?? undefined;
  const found = { name: stringOf(result, 'name'), isObject: response === undefined || isRecord(response) };
  knownResults.set(part, found);
  return found;
}

/** "Function call … is missing a thought_signature": on models that check, the first call of each step of the current turn has one. */
function unsigned(conversation: Conversation, turns: readonly GeminiTurn[]): readonly Problem[] {
  const start = currentTurn(conversation);
  if (!checksSignatures.test(conversation.model ?? '')) return [];
  return turns.flatMap((turn) => {
    const first = turn.said.find(({ part }) => part.type === 'tool-call');
    if (!first || first.message.index < start) return [];
    const bytes = conversation.body.subarray(first.message.span.start, first.message.span.end);
    return isSigned(bytes, first.part.span)
      ? []
      : [
          problem(
            'calls-signed',
            first.message,
            'the first function call of a step has no thought signature',
          ),
        ];
  });
}

const checksSignatures = /gemini-(?:[3-9]|\d\d)/;

function countsOf(
  turn: GeminiTurn | undefined,
  idOf: (part: Part) => string | undefined,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { part } of turn?.said ?? []) {
    const id = idOf(part);
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}

/**
 * Returns the index of the content that begins the current turn, whose signatures the provider checks ("the most recent user
 * message" that answers no call); 0 without one. Called for every edit.
 */
export const currentTurn: (conversation: Conversation) => number = memoized(({ messages }) => {
  const begins = messages.findLast(
    ({ role, parts }) => role === 'user' && !parts.some((part) => part.type === 'tool-result'),
  );
  return begins?.index ?? 0;
});
