/**
 * Says which edits of a generateContent body are allowed. No part is bound to its prefix: a signature belongs to its own part.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import type { FormatRules, Problem } from '../codec.ts';
import { memoized } from '../../conversation/messages.ts';
import { valueOf, isSigned, stringOf, nameInId } from './read-part.ts';
import { inSteps, oneStep, parsedBody } from '../../conversation/steps.ts';
import { type Edit, exceptKept, lastMessageOf } from '../../conversation/edit.ts';
import { openNotes } from '../../caches.ts';
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { type JsonRecord, isRecord, parseSpan, objectsOf } from '../../conversation/json-scan.ts';

export const rules: FormatRules = {
  problems,
  faults,
  mayEdit: exceptKept(mayEdit),
  bindsPrefix: () => false,
  complete: (_conversation, edits) => ({ status: 'ok', edits }),
};

/**
 * Unsigned texts, calls and results may change. A signed part stays unchanged, and in the current turn, whose signatures are
 * checked, it also keeps its place. A whole step may be removed, calls and responses together. With `cachedContent` the contents
 * follow the cache, so they may change.
 */
function mayEdit(conversation: Conversation, edit: Edit): boolean {
  const at = lastMessageOf(edit);
  const message = conversation.messages[at];
  if (!message) return false;
  switch (edit.kind) {
    case 'insert-message':
      // "function response turn comes immediately after a function call turn"
      return !message.parts.some((part) => part.type === 'tool-result');
    case 'drop-message':
      return true;
    case 'drop-part':
      return mayDrop(conversation, message, message.parts[edit.part]);
    case 'replace-text': {
      const part = message.parts[edit.at.part];
      if (part?.type !== 'text' && part?.type !== 'tool-result') return false;
      return edit.at.text in part.texts && !isSignedIn(conversation, message, part);
    }
    case 'replace-media':
      return !isSignedIn(conversation, message, message.parts[edit.part]!);
    case 'replace-input': {
      const part = message.parts[edit.part];
      return (
        part?.type === 'tool-call' &&
        part.input.end > part.input.start &&
        !isSignedIn(conversation, message, part)
      );
    }
  }
}

function mayDrop(conversation: Conversation, message: Message, part: Part | undefined): boolean {
  if (!part || part.type === 'opaque' || part.type === 'media') return false;
  const isFinished = message.index < currentTurn(conversation);
  if (part.type === 'reasoning') return isFinished;
  return isFinished || !isSignedIn(conversation, message, part);
}

function isSignedIn({ body }: Conversation, message: Message, part: Part): boolean {
  return isSigned(body.subarray(message.span.start, message.span.end), part.span);
}

// Faults: the rules that a body breaks, found with `JSON.parse` alone, so that they do not depend on our own reader.
// https://ai.google.dev/api/generate-content

type ParsedContent = { readonly isModel: boolean; readonly parts: readonly JsonRecord[] };

function faults(body: Uint8Array): readonly string[] {
  const parsed = parsedBody(body);
  if (!parsed) return ['body-is-json'];
  const contents = oneStep(() => objectsOf(parsed['contents']).map(contentOf));
  if (contents.length === 0) return ['messages-not-empty'];
  const { found, turns } = oneStep(() => parsedTurnsOf(contents));
  const unpaired = inSteps(turns, (turn, index) => pairing(turn, turns[index + 1], index === 0));
  return oneStep(() => [...found, ...unpaired.flat()]);
}

function parsedTurnsOf(contents: readonly ParsedContent[]) {
  const found: string[] = [];
  if (contents[0]!.isModel) found.push('first-is-user');
  const turns: { isModel: boolean; parts: JsonRecord[] }[] = [];
  for (const [index, { isModel, parts }] of contents.entries()) {
    if (parts.length === 0) found.push('content-not-empty');
    if (!isModel && contents[index - 1]?.isModel === false) found.push('roles-alternate');
    const last = turns.at(-1);
    if (last?.isModel === isModel) for (const part of parts) last.parts.push(part);
    else turns.push({ isModel, parts: [...parts] });
  }
  return { found, turns };
}

function contentOf(content: JsonRecord): ParsedContent {
  const parts = content['parts'];
  return {
    isModel: content['role'] === 'model',
    parts: isRecord(parts) ? [parts] : objectsOf(parts),
  };
}

/** "the number of function response parts is equal to the number of function call parts of the function call turn" */
function pairing(turn: ParsedContent, next: ParsedContent | undefined, isFirst: boolean): readonly string[] {
  const found: string[] = [];
  const given = turn.isModel ? [] : inside(turn.parts, 'functionResponse');
  if (isFirst && given.length > 0) found.push('results-answer-calls');
  for (const result of given) {
    const response = valueOf(result, 'response');
    if (response !== undefined && response !== null && !isRecord(response)) found.push('response-is-object');
  }
  if (!turn.isModel) return found;
  const calls = inside(turn.parts, 'functionCall');
  const answers = next ? inside(next.parts, 'functionResponse') : [];
  if (answers.length < calls.length) found.push('calls-answered-next');
  if (answers.length > calls.length) found.push('results-answer-calls');
  const open = new Map<unknown, number>();
  for (const name of calls.map(nameOf)) open.set(name, (open.get(name) ?? 0) + 1);
  for (const name of answers.map(nameOf)) {
    const left = open.get(name) ?? 0;
    if (left === 0) found.push('results-name-calls');
    else open.set(name, left - 1);
  }
  return found;
}

function nameOf(held: JsonRecord): unknown {
  return valueOf(held, 'name');
}

function inside(parts: readonly JsonRecord[], name: string): readonly JsonRecord[] {
  return parts.flatMap((part) => {
    const held = valueOf(part, name);
    return isRecord(held) ? [held] : [];
  });
}

// Problems: broken invariants of generateContent, each with the provider's words.
// https://ai.google.dev/gemini-api/docs/function-calling, https://ai.google.dev/gemini-api/docs/thought-signatures

/** Neighboring contents of one side are one turn: pairing holds between turns. */
type GeminiTurn = { readonly isModel: boolean; readonly said: ContentPart[] };
type ContentPart = { readonly message: Message; readonly part: Part };

function problems(conversation: Conversation): readonly Problem[] {
  const { messages } = conversation;
  if (messages.length === 0)
    return [{ rule: 'messages-not-empty', message: 0, detail: 'there is no content' }];
  const found: Problem[] = [];
  // A list may be too long for the arguments of one call.
  const add = (all: readonly Problem[]) => all.forEach((one) => found.push(one));
  if (messages[0]!.role === 'assistant')
    found.push(problem('first-is-user', messages[0]!, 'the first content is not from the user'));
  messages.forEach((message, index) => add(shape(conversation, message, messages[index - 1])));
  const turns = turnsOf(messages);
  turns.forEach((turn, index) => {
    add(turn.isModel ? unanswered(turn, turns[index + 1]) : results(turn, turns[index - 1]));
    if (!turn.isModel) add(misnamed(conversation, turn, turns[index - 1]));
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
 * contents of the model (the official client makes one for each chunk of a stream), and the user's words right after results.
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
    if (last?.isModel === isModel) for (const one of said) last.said.push(one);
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
          'responses without ids are in another order than their calls',
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

/** Results by part. Parts that were read are reused for later bodies, so each result is looked up once. */
const knownResults = openNotes<Part, Result>('part');

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
 * message" that answers no call); 0 without one. Called for every edit, so it is remembered.
 */
const currentTurn: (conversation: Conversation) => number = memoized(({ messages }) => {
  const begins = messages.findLast(
    ({ role, parts }) => role === 'user' && !parts.some((part) => part.type === 'tool-result'),
  );
  return begins?.index ?? 0;
});
