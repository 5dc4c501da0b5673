/**
 * Checks the invariants of Anthropic Messages that a compressor could break, each with the provider's words.
 * https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
 */
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { bytesOf, memoizedInSteps } from '../../conversation/messages.ts';
import type { Steps } from '../../conversation/steps.ts';
import { scanObject } from '../../conversation/json-scan.ts';
import type { Problem } from '../codec.ts';
import { isNull } from '../read-body.ts';
import { placeKey } from '../../conversation/turns.ts';

/** Neighboring messages of one side are one turn to the provider; system messages between them belong to neither side. */
type SpeakerTurn = { readonly isAssistant: boolean; readonly said: readonly SpokenPart[] };
type SpokenPart = { readonly message: Message; readonly part: Part };

export function problems(conversation: Conversation): readonly Problem[] {
  const { body, messages } = conversation;
  if (messages.length === 0)
    return [{ rule: 'messages-not-empty', message: 0, detail: 'there is no message' }];
  const found: Problem[] = [];
  // A list may be too long for the arguments of one call.
  const add = (all: readonly Problem[]) => all.forEach((one) => found.push(one));
  const first = messages.find((message) => message.role !== 'system');
  // A server compaction replaces the beginning of history.
  if (first?.role === 'assistant' && !first.parts.some(isCompaction))
    found.push(problem('first-is-user', first, 'the first message is not from the user'));
  messages.forEach((message) => {
    if (message.index < messages.length - 1 || message.role !== 'assistant')
      found.push(...emptiness(body, message));
  });
  const turns = turnsOf(messages);
  turns.forEach((turn, index) => {
    add(turn.isAssistant ? unanswered(turn, turns[index + 1]) : results(turn, turns[index - 1]));
  });
  add(systemProblems(conversation));
  return found;
}

/**
 * "all messages must have non-empty content except for the optional final assistant message", "system content must contain at least one
 * block", "text content blocks must be non-empty"
 */
function emptiness(body: Uint8Array, message: Message): readonly Problem[] {
  if (isDirective(body, message)) return [];
  if (message.parts.length === 0)
    return [problem('content-not-empty', message, 'the message has no content')];
  return message.parts.flatMap((part, index) =>
    part.type === 'text' && part.texts.some((text) => bytesOf(body, message, text).length === 2)
      ? [problem('text-not-empty', message, `part ${index} is a text without a character`)]
      : [],
  );
}

function turnsOf(messages: readonly Message[]): readonly SpeakerTurn[] {
  const turns: { isAssistant: boolean; said: SpokenPart[] }[] = [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const isAssistant = message.role === 'assistant';
    const said = message.parts.map((part) => ({ message, part }));
    const last = turns.at(-1);
    if (last?.isAssistant === isAssistant) for (const one of said) last.said.push(one);
    else turns.push({ isAssistant, said });
  }
  return turns;
}

/**
 * "`tool_use` ids were found without `tool_result` blocks immediately after: … Each `tool_use` block must have a corresponding
 * `tool_result` block in the next message", "`tool_use` ids must be unique"
 */
function unanswered(turn: SpeakerTurn, next: SpeakerTurn | undefined): readonly Problem[] {
  const answered = new Set(
    next?.said.map(({ part }) => (part.type === 'tool-result' ? part.callId : undefined)),
  );
  const seen = new Set<string>();
  return turn.said.flatMap(({ message, part }) => {
    if (part.type !== 'tool-call') return [];
    const call = `tool_use ${part.id}`;
    const found: Problem[] = [];
    if (seen.has(part.id))
      found.push(problem('call-ids-differ', message, `${call} occurs twice in one turn`));
    seen.add(part.id);
    if (!answered.has(part.id))
      found.push(problem('calls-answered-next', message, `${call} has no tool_result in the next message`));
    return found;
  });
}

/** "`tool_result` block(s) provided when previous message does not contain any `tool_use` blocks"; results come before other content. */
function results(turn: SpeakerTurn, previous: SpeakerTurn | undefined): readonly Problem[] {
  const asked = new Set(previous?.said.map(({ part }) => (part.type === 'tool-call' ? part.id : undefined)));
  const seen = new Set<string>();
  const found: Problem[] = [];
  let other = false;
  for (const { message, part } of turn.said) {
    if (part.type !== 'tool-result') {
      other = true;
      continue;
    }
    const result = `tool_result ${part.callId}`;
    if (!asked.has(part.callId))
      found.push(
        problem('results-answer-calls', message, `${result} answers no tool_use of the message before`),
      );
    if (seen.has(part.callId)) found.push(problem('one-result-a-call', message, `${result} occurs twice`));
    seen.add(part.callId);
    if (other) found.push(problem('results-come-first', message, `${result} comes after other content`));
  }
  return found;
}

function isCompaction(part: Part): boolean {
  return part.type === 'opaque' && part.kind === 'compaction';
}

function problem(rule: string, message: Message, detail: string): Problem {
  return { rule, message: message.index, detail };
}

/**
 * Checks the places of messages of role `system` among the turns; newer clients put a reminder after every result. "role 'system'
 * must follow a 'user' message or an 'assistant' message ending in a server tool result", "role 'system' must precede an
 * 'assistant' message or end the array; the directive-only form (content: [] with output_config) is accepted at any position".
 * Several in a row count as one. "use the top-level 'system' parameter for the initial system prompt": so none may be first.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
function systemProblems({ body, messages }: Conversation): readonly Problem[] {
  const found: Problem[] = [];
  let before: Message | undefined;
  for (const message of messages) {
    if (isDirective(body, message)) continue;
    if (message.role === 'system') {
      if (before?.role !== 'system' && !mayPrecedeSystem(before)) {
        const detail = 'a system message follows neither a user message nor a server tool result';
        found.push({ rule: 'system-follows-user', message: message.index, detail });
      }
    } else if (before?.role === 'system' && message.role !== 'assistant') {
      const detail = 'a system message precedes a user message';
      found.push({ rule: 'system-precedes-assistant', message: before.index, detail });
    }
    before = message;
  }
  return found;
}

/** True for a system message without content that only sets how the model answers: `content: []` with its own `output_config`. */
function isDirective(body: Uint8Array, { role, parts, span }: Message): boolean {
  if (role !== 'system' || parts.length > 0) return false;
  return scanObject(body, span.start).members.some(
    ({ key, value }) => key === 'output_config' && !isNull(body, value),
  );
}

function mayPrecedeSystem(message: Message | undefined): boolean {
  if (message?.role !== 'assistant') return message !== undefined;
  const last = message.parts.at(-1);
  return last?.type === 'opaque' && last.kind.endsWith('_tool_result');
}

// Messages around system messages. No fold may remove a system message, so in each turn with one, the user's messages at the
// beginning and the reply at the end stay. Any of the steps between, calls with all their results, may be removed: the
// remaining system messages then follow a user message or a result, and precede the assistant's next message.

type AroundSystem = {
  /** Indices of messages that stay. */
  readonly messages: ReadonlySet<number>;
  /** Keys of parts that stay, because the part or message that they belong to stays. */
  readonly parts: ReadonlySet<string>;
  /** Returns where a message meant to precede this one may be inserted: never between a system message and the assistant's reply. */
  readonly placeBefore: (message: number) => number;
};

/** Neighboring messages of one side. */
type Side = { readonly isAssistant: boolean; readonly messages: readonly Message[] };

/**
 * A turn: what the user said (at the beginning of history perhaps the assistant), and everything until the user says more than
 * results.
 */
type SystemTurn = {
  readonly sides: readonly Side[];
  readonly firstSystem: number | undefined;
  /** The index of the first message after it. */
  readonly end: number;
};

/** Finds the messages and parts that stay. Called for every edit that a strategy considers, so the result is remembered. */
export const { now: aroundSystem, inSteps: aroundSystemInSteps } = memoizedInSteps(findAroundSystem);

function* findAroundSystem(conversation: Conversation): Steps<AroundSystem> {
  const messages = new Set<number>();
  const parts = new Set<string>();
  const places = new Map<number, number>();
  const turns = yield* systemTurnsOf(conversation);
  for (const [index, { sides, firstSystem, end }] of turns.entries()) {
    if (index % turnsPerStep === 0) yield;
    if (firstSystem === undefined) continue;
    keepIn(sides, index === turns.length - 1, { messages, parts });
    for (let after = firstSystem + 1; after < end; after++) places.set(after, firstSystem);
  }
  return { messages, parts, placeBefore: (message) => places.get(message) ?? message };
}

const turnsPerStep = 512;

/** Adds what stays of the sides of a turn. */
function keepIn(
  sides: readonly Side[],
  isLast: boolean,
  { messages, parts }: { readonly messages: Set<number>; readonly parts: Set<string> },
): void {
  for (let index = 0; index < sides.length; index++) {
    const side = sides[index]!;
    const endsTurn = side.isAssistant && index === sides.length - 1 && !isLast;
    if (endsTurn || isUserText(side)) {
      for (const message of side.messages) messages.add(message.index);
      const last = side.messages.findLast((message) => message.parts.length > 0);
      if (last) parts.add(placeKey({ message: last.index, part: last.parts.length - 1 }));
    }
    for (const key of keptPair(side, sides[index + 1])) parts.add(key);
  }
}

function* systemTurnsOf({ body, messages }: Conversation): Steps<readonly SystemTurn[]> {
  const setsRole = (message: Message) => message.role === 'system' && !isDirective(body, message);
  if (!messages.some(setsRole)) return [];
  const turns: { sides: Side[]; firstSystem: number | undefined; end: number }[] = [];
  const sides = sidesOf(messages);
  yield;
  for (const [index, side] of sides.entries()) {
    if (index % turnsPerStep === 0) yield;
    const turn = turns.at(-1);
    if (turn && !isUserText(side)) turn.sides.push(side);
    else {
      if (turn) turn.end = side.messages[0]!.index;
      turns.push({ sides: [side], firstSystem: undefined, end: messages.length });
    }
  }
  yield;
  for (const turn of turns) {
    let at = turn.sides[0]!.messages[0]!.index;
    while (at < turn.end && !setsRole(messages[at]!)) at++;
    if (at < turn.end) turn.firstSystem = at;
  }
  return turns;
}

function sidesOf(messages: readonly Message[]): readonly { isAssistant: boolean; messages: Message[] }[] {
  const sides: { isAssistant: boolean; messages: Message[] }[] = [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const isAssistant = message.role === 'assistant';
    const last = sides.at(-1);
    if (last?.isAssistant === isAssistant) last.messages.push(message);
    else sides.push({ isAssistant, messages: [message] });
  }
  return sides;
}

/** True for a side of the user's with a message that answers no call. */
function isUserText({ isAssistant, messages }: Side): boolean {
  return !isAssistant && messages.some(({ parts }) => !parts.some((part) => part.type === 'tool-result'));
}

/**
 * Returns a call with its result when one of the two sides holds more than calls or results: otherwise one would stay without the
 * other. A side of calls only and its side of results only are removed together or not at all.
 */
function keptPair(asking: Side, answering: Side | undefined): readonly string[] {
  if (!asking.isAssistant || !answering || !asking.messages.some(holdsCall)) return [];
  const [calls, answers] = [partsOf(asking), partsOf(answering)];
  const isAlone =
    calls.every(({ part }) => part.type === 'tool-call') &&
    answers.every(({ part }) => part.type === 'tool-result');
  const last = calls.findLast(({ part }) => part.type === 'tool-call');
  if (isAlone || last?.part.type !== 'tool-call') return [];
  const { id } = last.part;
  const answer = answers.find(({ part }) => part.type === 'tool-result' && part.callId === id);
  return answer ? [last.key, answer.key] : [last.key];
}

function holdsCall({ parts }: Message): boolean {
  return parts.some((part) => part.type === 'tool-call');
}

function partsOf({ messages }: Side): readonly { readonly key: string; readonly part: Part }[] {
  return messages.flatMap(({ index, parts }) =>
    parts.map((part, at) => ({ key: placeKey({ message: index, part: at }), part })),
  );
}
