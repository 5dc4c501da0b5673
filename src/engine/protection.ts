/** What a fold leaves alone: system, what the user said last, the newest tool batch with its calls, the last message, pins, recalls. */
import { type Conversation, inputOf, type Message, textOf, textsOf } from '../conversation/conversation.ts';
import { pairCalls, placeKey } from '../conversation/pairing.ts';
import { lastUser, newestBatch, turnStart } from '../conversation/turns.ts';
import { isFoldedHistory } from '../strategies/lib/summary-record.ts';
import type { Protection } from '../strategies/strategy.ts';

/** What the user wants kept verbatim. */
export type Pins = {
  /** Results of these tools are never folded. */
  readonly tools: readonly string[];
  /** Parts whose text holds one of these are never folded. */
  readonly texts: readonly string[];
};

type ProtectionOptions = {
  readonly pins: Pins;
  readonly recallTool: string | undefined;
  /** Whether what folds put in stands among the messages. */
  readonly isHistoryKept?: boolean;
};

export function protectionOf(
  conversation: Conversation,
  { pins, recallTool, isHistoryKept = false }: ProtectionOptions,
): Protection {
  const kept = keptMessages(conversation, isHistoryKept);
  const pinned = placesOf(conversation, pins.tools);
  const recalled = placesOf(conversation, recallTool === undefined ? [] : [recallTool]);
  const holdsPin = (index: number, at: number) => {
    if (pins.texts.length === 0) return false;
    const message = conversation.messages[index];
    const part = message?.parts[at];
    if (!message || !part) return false;
    if (part.type === 'tool-call') return holdsAny(inputOf(conversation.body, message, part), pins.texts);
    return textsOf(part).some((span) => {
      const text = textOf(conversation.body, message, span);
      return pins.texts.some((pin) => text.includes(pin));
    });
  };
  return {
    message: (index) => kept.has(index),
    part: (message, part) => holds(pinned, message, part) || holdsPin(message, part),
    recalled: (message, part) => holds(recalled, message, part),
  };
}

/** Of answered calls of these tools, and of their results. */
function placesOf(conversation: Conversation, tools: readonly string[]): ReadonlySet<string> {
  const places = new Set<string>();
  if (tools.length === 0) return places;
  for (const { name, call, result } of pairCalls(conversation).pairs)
    if (result && tools.includes(name)) places.add(placeKey(call)).add(placeKey(result));
  return places;
}

/** Asked of every part with every request, and mostly of an empty set: then no key is made. */
function holds(places: ReadonlySet<string>, message: number, part: number): boolean {
  return places.size > 0 && places.has(placeKey({ message, part }));
}

/** Arguments may spell a text with other escapes than the user did. */
function holdsAny(input: string, pins: readonly string[]): boolean {
  try {
    const spelled = JSON.stringify(JSON.parse(input));
    return pins.some((pin) => spelled.includes(JSON.stringify(pin).slice(1, -1)));
  } catch {
    return pins.some((pin) => input.includes(pin));
  }
}

/** Messages no strategy but the last resort may touch. */
export function keptMessages(conversation: Conversation, isHistoryKept = false): ReadonlySet<number> {
  const batch = newestBatch(conversation);
  const kept = new Set(batch);
  const first = [...batch].reduce((least, index) => Math.min(least, index), conversation.messages.length);
  if (batch.size > 0 && first > 0) kept.add(first - 1);
  const isOther = (message: Message) => isHistoryKept && isFoldedHistory(conversation, message);
  for (const index of [turnStart(conversation, isOther), lastUser(conversation, isOther)])
    if (index !== undefined) kept.add(index);
  kept.add(conversation.messages.length - 1);
  for (const message of conversation.messages) if (message.role === 'system') kept.add(message.index);
  return kept;
}
