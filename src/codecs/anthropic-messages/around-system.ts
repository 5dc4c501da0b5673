/**
 * Finds the messages that a fold keeps around system messages, which it may not remove. In each turn with a system message it
 * keeps what the user said at the beginning and the reply at the end. Any of the steps between, calls with all their results, may
 * be removed: the remaining system messages then come together behind a user message or a result, and ahead of the assistant's
 * next message.
 */
import type { Conversation, Message, Part } from '../../conversation/conversation.ts';
import { placeKey } from '../../conversation/turns.ts';
import { memoized } from '../codec.ts';
import { isDirective } from './problems.ts';

type AroundSystem = {
  /** Indices of messages that stay. */
  readonly messages: ReadonlySet<number>;
  /** Keys of parts that stay, because a message that it belongs to stays. */
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
  readonly start: number;
  readonly sides: readonly Side[];
  readonly firstSystem: number | undefined;
};

/** Called for every edit that a strategy considers. */
export const aroundSystem: (conversation: Conversation) => AroundSystem = memoized((conversation) => {
  const turns = turnsOf(conversation);
  const held = turns.flatMap((turn, index) =>
    turn.firstSystem === undefined ? [] : keptIn(turn, index === turns.length - 1),
  );
  return {
    messages: new Set(held.flatMap(({ messages }) => messages)),
    parts: new Set(held.flatMap(({ parts }) => parts)),
    placeBefore: (message) => {
      const turn = turns.findLast(({ start }) => start <= message);
      return Math.min(message, turn?.firstSystem ?? message);
    },
  };
});

type KeptAround = { readonly messages: readonly number[]; readonly parts: readonly string[] };

function keptIn({ sides }: SystemTurn, isLast: boolean): readonly KeptAround[] {
  return sides.map((side, index) => {
    const endsTurn = side.isAssistant && index === sides.length - 1 && !isLast;
    const stays = endsTurn || isWordOfUser(side);
    const lastPart = partsOf(side).at(-1);
    return {
      messages: stays ? side.messages.map((message) => message.index) : [],
      parts: [...(stays && lastPart ? [lastPart.key] : []), ...keptPair(side, sides[index + 1])],
    };
  });
}

function turnsOf({ body, messages }: Conversation): readonly SystemTurn[] {
  const turns: { start: number; sides: { isAssistant: boolean; messages: Message[] }[]; end: number }[] = [];
  for (const side of sidesOf(messages)) {
    const turn = turns.at(-1);
    if (turn && !isWordOfUser(side)) turn.sides.push(side);
    else {
      const start = side.messages[0]!.index;
      if (turn) turn.end = start;
      turns.push({ start, sides: [side], end: messages.length });
    }
  }
  return turns.map(({ start, sides, end }) => {
    const first = messages
      .slice(start, end)
      .find((message) => message.role === 'system' && !isDirective(body, message));
    return { start, sides, firstSystem: first?.index };
  });
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
function isWordOfUser({ isAssistant, messages }: Side): boolean {
  return !isAssistant && messages.some(({ parts }) => !parts.some((part) => part.type === 'tool-result'));
}

/**
 * Returns a call with its result when one of the two sides holds more than calls or results: otherwise one would stay without the
 * other. A side of calls only and its side of results only are removed together or not at all.
 */
function keptPair(asking: Side, answering: Side | undefined): readonly string[] {
  if (!asking.isAssistant || !answering) return [];
  const [calls, results] = [partsOf(asking), partsOf(answering)];
  const isAlone =
    calls.every(({ part }) => part.type === 'tool-call') &&
    results.every(({ part }) => part.type === 'tool-result');
  const last = calls.findLast(({ part }) => part.type === 'tool-call');
  if (isAlone || last?.part.type !== 'tool-call') return [];
  const { id } = last.part;
  const answer = results.find(({ part }) => part.type === 'tool-result' && part.callId === id);
  return answer ? [last.key, answer.key] : [last.key];
}

function partsOf({ messages }: Side): readonly { readonly key: string; readonly part: Part }[] {
  return messages.flatMap(({ index, parts }) =>
    parts.map((part, at) => ({ key: placeKey({ message: index, part: at }), part })),
  );
}
