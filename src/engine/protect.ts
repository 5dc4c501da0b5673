/** What a fold leaves alone: system, what the user said last, the newest tool batch with its calls, the last message, pins, recalls. */
import type { Codec, FormatRules, Problem, RecallTool } from '../codecs/codec.ts';
import { type Conversation, type Message, inputOf, textOf, textsOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { pairCalls, placeKey } from '../conversation/pairing.ts';
import { lastUser, newestBatch, turnStart } from '../conversation/turns.ts';
import type { EngineOptions, Pins } from './types.ts';
import { recallToolFor } from '../recall/tool.ts';
import { isFoldedHistory } from '../strategies/lib/summary-record.ts';
import type { Protection } from '../strategies/strategy.ts';

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

// Offering the recall tool. Providers cache tools before all messages, so a tool that comes late re-bills the whole conversation, and one that is
// never called costs some tokens in each: docs/decisions/0004.

/** What can be offered. Side calls without tools (titles, routing) are not the conversation; for several replies recalls could not be answered apart. */
export function toolToOffer(
  { offerRecall, isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { toolNames, replies }: Conversation,
): RecallTool | undefined {
  if (offerRecall === 'never' || toolNames.length === 0 || replies !== 1) return undefined;
  if (!isHistoryKept) return recallToolFor(toolNames);
  const own = recallToolFor([]);
  return toolNames.includes(own.name) ? own : undefined;
}

/**
 * Whether what a fold takes away can be read again: by the recall tool, or by the program that keeps the folded history. `never` is the
 * user's own wish to fold without one. Everywhere else (a request without tools, one that asks for several replies) a fold would leave ids
 * that nobody can read, so only what would not fit otherwise is folded: docs/decisions/0028.
 */
export function hasWayBack(
  options: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  conversation: Conversation,
): boolean {
  const isWished = options.offerRecall === 'never' || options.isHistoryKept === true;
  return isWished || toolToOffer(options, conversation) !== undefined;
}

/**
 * Whether the tool is offered from the first request of a conversation on. With `with-fold` it is offered as soon as something can be
 * recalled, except to models that bind their replies to the tools: a tool that comes later would make these replies invalid.
 */
export function isOfferedAlways(
  { offerRecall = 'always', isHistoryKept }: Pick<EngineOptions, 'offerRecall' | 'isHistoryKept'>,
  { rules }: Pick<Codec, 'rules'>,
  conversation: Conversation,
): boolean {
  return isHistoryKept === true || offerRecall === 'always' || rules.bindsPrefix(conversation);
}

// Checks of a fold before it is sent: it must be as valid as the original, and never larger.

/**
 * Rules that the second conversation breaks more often than the first. A client may send what its provider would refuse; that is
 * between the two of them, and no reason to leave its conversation alone.
 */
export function newProblems(
  rules: FormatRules,
  before: Conversation,
  after: Conversation,
): readonly Problem[] {
  const problems = rules.problems(after);
  if (problems.length === 0) return [];
  const isNew = beyond(rules.problems(before).map(({ rule }) => rule));
  return problems.filter(({ rule }) => isNew(rule));
}

/**
 * The first rule that a body breaks more often than the one it was made of, or the loss of a tool that was loaded there. Both are read
 * with `JSON.parse`, apart from all that made the one of the other. Undefined for a sound body.
 */
export function newFault(
  { faults }: Pick<FormatRules, 'faults'>,
  before: Uint8Array,
  after: Uint8Array,
): string | undefined {
  const found = faults(after);
  const fault = found.length === 0 ? undefined : found.find(beyond(faults(before)));
  if (fault !== undefined) return fault;
  const loaded = loadedTools(before);
  if (loaded.length === 0) return undefined;
  return loadedTools(after).length < loaded.length ? 'loaded-tools-stay' : undefined;
}

/** Tells which of the rules named one after another were not broken so often before. */
function beyond(rules: readonly string[]): (rule: string) => boolean {
  const allowed = new Map<string, number>();
  for (const rule of rules) allowed.set(rule, (allowed.get(rule) ?? 0) + 1);
  return (rule) => {
    const left = allowed.get(rule) ?? 0;
    allowed.set(rule, left - 1);
    return left <= 0;
  };
}

const loading =
  /"type"\s*:\s*"(?:tool_reference|tool_search_\w+|additional_tools|mcp_list_tools)"|"name"\s*:\s*"(?:tool_?search|search_tools?)"/gi;

/** Returns the loaded tools that a body names in the usual spelling. */
function loadedTools(body: Uint8Array): readonly string[] {
  return new TextDecoder().decode(body).match(loading) ?? [];
}

/** Folds whose bodies were found sound, by their edits: those go out again with every request. */
const sound = new WeakSet<readonly Edit[]>();

export function isKnownSound(edits: readonly Edit[]): boolean {
  return edits.length === 0 || sound.has(edits);
}

export function noteSound(edits: readonly Edit[]): void {
  sound.add(edits);
}
