/**
 * Finds the structure of a conversation: where turns begin, which messages are the newest, which result answers which call, and what
 * clients say to the model in the user's place, such as reminders, environment details and the rules of a repository.
 */
import { type Notes, openNotes } from '../caches.ts';
import type { Conversation, Message, Role } from './conversation.ts';
import {
  bytesOf,
  memoized,
  memoizedInSteps,
  messagesPerStep,
  perMessage,
  rememberAt,
  textOf,
  textsOf,
} from './messages.ts';
import type { Steps } from './steps.ts';

/**
 * Returns the index of the message that begins the running turn: the newest message in which the user speaks and that answers no
 * call, without those that `isOther` excludes. When only reminders are left, the newest of them; undefined without one.
 */
export function turnStart(
  conversation: Conversation,
  isOther?: (message: Message) => boolean,
): number | undefined {
  const isNone = (message: Message) => holdsResult(message) || (isOther?.(message) ?? false);
  const begins = (message: Message) => !isNone(message) && userSpeaks(conversation, message);
  return (
    (isOther ? last(conversation, begins) : newestThat(begins, turnStarts, conversation)) ??
    last(conversation, (message) => message.role === 'user' && !isNone(message))
  );
}

/** Returns the index of the newest message in which the user speaks, even together with results; undefined without one. */
export function lastUser(
  conversation: Conversation,
  isOther?: (message: Message) => boolean,
): number | undefined {
  const speaks = (message: Message) => userSpeaks(conversation, message);
  return isOther
    ? last(conversation, (message) => speaks(message) && !isOther(message))
    : newestThat(speaks, lastUsers, conversation);
}

/** Indexes of the newest message in which the user speaks up to a message, -1 without one; and the same for messages that begin a turn. */
const lastUsers = openNotes<Message, number>('message');
const turnStarts = openNotes<Message, number>('message');

/** Returns the index of the newest message that matches. Only the messages after those of an earlier request are looked at. */
function newestThat(
  matches: (message: Message) => boolean,
  known: Notes<Message, number>,
  { messages }: Conversation,
): number | undefined {
  let from = messages.length - 1;
  let newest: number | undefined;
  for (; from >= 0; from--) {
    newest = known.get(messages[from]!) ?? (matches(messages[from]!) ? from : undefined);
    if (newest !== undefined) break;
  }
  rememberAt(known, messages, Math.max(from, 0), newest ?? -1);
  return newest === undefined || newest < 0 ? undefined : newest;
}

/** Returns the indexes of the system messages. Conversations that continue each other share the list. */
export function systemMessages({ messages }: Conversation): readonly number[] {
  const { from, before } = newestStart(messages, systemsUpTo) ?? { from: -1, before: [] };
  const added = messages.slice(from + 1).filter(({ role }) => role === 'system');
  const found = added.length === 0 ? before : [...before, ...added.map(({ index }) => index)];
  rememberAt(systemsUpTo, messages, Math.max(from + 1, found.at(-1) ?? 0), found);
  return found;
}

/** The indexes of the system messages up to a message. */
const systemsUpTo = openNotes<Message, readonly number[]>('message');

/** Returns the index of the newest assistant message; undefined without one. Called for every edit, so it is remembered with the conversation. */
export const lastAssistant = memoized((conversation: Conversation) =>
  last(conversation, ({ role }) => role === 'assistant'),
);

/** Returns the messages of the newest tool batch: the run of messages with tool results that ends last. Empty when no tool was used. */
export function newestBatch(conversation: Conversation): ReadonlySet<number> {
  const isResult = (index: number) => holdsResult(conversation.messages[index]);
  const batch = new Set<number>();
  const end = last(conversation, holdsResult);
  for (let index = end ?? -1; index >= 0 && isResult(index); index--) batch.add(index);
  return batch;
}

/** Bytes of the largest tool batch that is current after the next message of the user. */
const maxStaleBytes = 4_000;

/** Returns the newest tool batch if it belongs to the turn that begins at `start`, or is small; else nothing. */
export function currentBatch(conversation: Conversation, start: number | undefined): ReadonlySet<number> {
  const batch = newestBatch(conversation);
  if (start === undefined || [...batch].some((index) => index > start)) return batch;
  const spans = [...batch].map((index) => conversation.messages[index]!.span);
  return spans.reduce((sum, span) => sum + span.end - span.start, 0) <= maxStaleBytes ? batch : new Set();
}

/** True for the first message of a reply. Neighboring messages of the model are one reply. */
export function beginsReply(messages: readonly Message[], index: number): boolean {
  return messages[index]!.role === 'assistant' && messages[index - 1]?.role !== 'assistant';
}

/** Tells for each message whether a reply begins with it. A list is looked through faster than the messages. */
export function repliesBegun(messages: readonly Message[]): readonly boolean[] {
  return replies(messages, ({ index }) => beginsReply(messages, index));
}

const replies = perMessage<boolean>();

/**
 * Returns the units that are removed only as a whole: neighboring assistant messages, which are one turn, with the messages that
 * answer their calls; any other message by itself. Some formats give reasoning and each of several calls a message of its own.
 */
export const { now: unitsOf, inSteps: unitsInSteps } = memoizedInSteps(unitsIn);

function* unitsIn(conversation: Conversation): Steps<readonly MessageUnit[]> {
  const { messages } = conversation;
  const { from, before } = newestStart(messages, unitsBefore) ?? { from: 0, before: [] };
  const units: Message[][] = [...before];
  for (let index = from; index < messages.length; index++) {
    if (index % messagesPerStep === 0) yield;
    const message = messages[index]!;
    const answers = holdsResult(message) || isMediaOfStep(conversation, message);
    const unit = units.at(-1);
    const continues = message.role === 'assistant' && unit?.at(-1)?.role === 'assistant';
    if ((answers || continues) && unit) unit.push(message);
    else units.push([message]);
  }
  const [older, newest] = [units.at(-2)?.[0], units.at(-1)?.[0]];
  // Also remembers the units before the last but one, for clients that rewrite their newest message.
  if (older && !unitsBefore.has(older)) unitsBefore.set(older, units.slice(0, -2));
  if (newest && !unitsBefore.has(newest)) unitsBefore.set(newest, units.slice(0, -1));
  return units;
}

type MessageUnit = readonly Message[];

/** The units before the newest one of a request, by the first message of the newest one. Later requests do not change them. */
const unitsBefore = openNotes<Message, Message[][]>('message');

/** Finds the newest message for which something is remembered, and its index. */
export function newestStart<T>(
  messages: readonly Message[],
  remembered: Notes<Message, T>,
): { readonly from: number; readonly before: T } | undefined {
  for (let from = messages.length - 1; from >= 0; from--) {
    const before = remembered.get(messages[from]!);
    if (before) return { from, before };
  }
  return undefined;
}

export function holdsResult(message: Message | undefined): boolean {
  return message?.parts.some((part) => part.type === 'tool-result') ?? false;
}

function last({ messages }: Conversation, matches: (message: Message) => boolean): number | undefined {
  const found = messages.findLastIndex(matches);
  return found < 0 ? undefined : found;
}

/**
 * True for a text of nothing but elements in which clients wrap reminders (`<system-reminder>`, `<environment_details>`). An
 * element that passes on what the user said is no reminder, nor is an element of any other name, because the user may have
 * written it.
 */
export function isReminder(text: string): boolean {
  const end = text.trimEnd().length;
  if (end === 0) return false;
  for (let at = 0; at < end; ) {
    element.lastIndex = at;
    const begin = element.exec(text);
    if (!begin) return false;
    const close = `</${begin[1]}>`;
    const found = text.indexOf(close, element.lastIndex);
    if (found < 0) return false;
    at = found + close.length;
  }
  return !passedOn.test(text);
}

/** The first text of a message that holds recalled media, in formats whose tool results hold none. Such a message belongs to the recall before it. */
export const recalledMediaNote = '[Recalled content]';

const noteLiteral = new TextEncoder().encode(JSON.stringify(recalledMediaNote));

/** True for a message of the user that holds nothing but recalled media. */
function isRecalledMedia({ body }: Pick<Conversation, 'body'>, message: Message): boolean {
  const [first, second] = message.parts;
  if (message.role !== 'user' || first?.type !== 'text' || second?.type !== 'media') return false;
  const [text] = first.texts;
  if (!text || text.end - text.start !== noteLiteral.length) return false;
  const bytes = bytesOf(body, message, text);
  return noteLiteral.every((byte, at) => bytes[at] === byte);
}

/** True for recalled media, and for a message of media alone right after results: clients send a screenshot so where results hold only text. */
function isMediaOfStep(conversation: Conversation, message: Message): boolean {
  const { index, parts, role } = message;
  const isMedia = role === 'user' && parts.every(({ type }) => type === 'media');
  return isMedia ? holdsResult(conversation.messages[index - 1]) : isRecalledMedia(conversation, message);
}

/** True when the user says something in this message, apart from results and reminders. */
export function userSpeaks(conversation: Conversation, message: Message): boolean {
  if (message.role !== 'user' || isMediaOfStep(conversation, message)) return false;
  return message.parts.some((part) => {
    if (part.type === 'tool-result') return false;
    if (part.type !== 'text') return true;
    return textsOf(part).some((span) => {
      const first = String.fromCharCode(bytesOf(conversation.body, message, span)[1]!);
      return !mayBegin.test(first) || !isReminder(textOf(conversation.body, message, span));
    });
  });
}

/**
 * Matches the first character of an element, of spaces ahead of it, or of their escapes: other texts, which may be long, need not
 * be decoded.
 */
const mayBegin = /[<\\ ]/;

/** Matches the beginning of an element, with spaces ahead of it. Names that a user may well write, such as `context`, do not match. */
const element =
  /\s*<((?:[a-z]+[-_])?reminder|(?:system|environment)[-_][a-z_-]+|user[-_]instructions)(?: [^>\n]{0,300})?>/y;

/** Matches the words with which clients pass on what the user said. */
const passedOn =
  /\buser\b[^.\n]{0,40}\b(?:sent|said|says|asks|asked|wrote|writes|replied|told|wants|requested|messages?|interrupted)\b/i;

// Pairs of calls and results. Call ids repeat within real conversations, so a pair is found by distance: a result answers the call of
// its id in the nearest run of assistant messages before it; of several calls with one id there, the first that is not answered yet.

export type PartPlace = { readonly message: number; readonly part: number };

export type Pair = {
  readonly name: string;
  readonly call: PartPlace;
  /** Undefined for a call that is not answered (yet). */
  readonly result: PartPlace | undefined;
};

export type Pairing = {
  readonly pairs: readonly Pair[];
  /** Results that answer no call before them. */
  readonly orphans: readonly PartPlace[];
  /** The message that begins the newest assistant turn, and the number of pairs ahead of it, which no later message changes. */
  readonly turn: { readonly message: Message; readonly pairs: number } | undefined;
};

type OpenPair = { readonly name: string; readonly call: PartPlace; result: PartPlace | undefined };

/** Several passes need the pairs of every request. `pairInSteps` makes them ahead. */
export const { now: pairCalls, inSteps: pairInSteps } = memoizedInSteps(paired);

/** The pairing of everything before the newest assistant turn of a request, by the message that begins the turn. */
const pairedBefore = openNotes<Message, Omit<Pairing, 'turn'>>('message');

function* paired({ messages }: Conversation): Steps<Pairing> {
  const start = newestStart(messages, pairedBefore);
  const pairs: OpenPair[] = [...(start?.before.pairs ?? [])];
  const orphans: PartPlace[] = [...(start?.before.orphans ?? [])];
  let open = new Map<string, { readonly pairs: OpenPair[]; answered: number }>();
  let speaker: Role | undefined;
  let turn: { readonly message: Message; readonly pairs: number; readonly orphans: number } | undefined;
  for (let at = start?.from ?? 0; at < messages.length; at++) {
    const message = messages[at]!;
    // Only the calls of the assistant turn right before can be answered: every format here requires it.
    if (message.role === 'assistant' && speaker !== 'assistant') {
      if (open.size > 0) open = new Map();
      turn = { message, pairs: pairs.length, orphans: orphans.length };
    }
    if (message.role !== 'system') speaker = message.role;
    for (let index = 0; index < message.parts.length; index++) {
      const part = message.parts[index]!;
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue;
      if (pairs.length % pairsPerStep === 0) yield;
      const place = { message: message.index, part: index };
      if (part.type === 'tool-call') {
        const pair: OpenPair = { name: part.name, call: place, result: undefined };
        pairs.push(pair);
        const same = open.get(part.id);
        if (same) same.pairs.push(pair);
        else open.set(part.id, { pairs: [pair], answered: 0 });
      } else {
        const same = open.get(part.callId);
        const pair = same?.pairs[same.answered];
        if (same && pair) {
          pair.result = place;
          same.answered++;
        } else orphans.push(place);
      }
    }
  }
  if (turn)
    pairedBefore.set(turn.message, {
      pairs: pairs.slice(0, turn.pairs),
      orphans: orphans.slice(0, turn.orphans),
    });
  return { pairs, orphans, turn };
}

const pairsPerStep = 512;

/** Returns the key of a place for maps and sets. */
export function placeKey(place: PartPlace): string {
  return `${place.message}.${place.part}`;
}

/**
 * Returns the parts that show the media of recalls outside of their results: in the message after them, and beside them in a message of
 * nothing else. `recalls` are the places of calls and results, in the order of the calls.
 */
export function mediaOfRecalls(
  conversation: Conversation,
  recalls: readonly PartPlace[],
): readonly PartPlace[] {
  const { messages } = conversation;
  const results = recalls.filter(
    ({ message, part }) => messages[message]!.parts[part]!.type === 'tool-result',
  );
  const places = new Set(results.map(placeKey));
  const visited = new Set<number>();
  const found = new Map<string, PartPlace>();
  const add = (message: number, isShown: (part: number) => boolean) => {
    messages[message]!.parts.forEach((_, part) => {
      if (isShown(part)) found.set(placeKey({ message, part }), { message, part });
    });
  };
  let run = { from: 0, end: 0 };
  for (const { message } of results) {
    // A run of results that was visited for the recall before is not visited again.
    if (message < run.from || message >= run.end) {
      run = { from: message, end: message + 1 };
      while (messages[run.end]?.role === 'tool') run.end++;
      const after = messages[run.end];
      if (after && isRecalledMedia(conversation, after)) add(run.end, () => true);
    }
    // A message may hold many results.
    if (visited.has(message)) continue;
    visited.add(message);
    const { parts } = messages[message]!;
    const isMedia = (part: number) => parts[part]!.type === 'media';
    if (parts.every((_, part) => isMedia(part) || places.has(placeKey({ message, part }))))
      add(message, isMedia);
  }
  return [...found.values()];
}

/** Returns the place of each call by the key of its result's place. */
export function callsByResult(conversation: Conversation): ReadonlyMap<string, PartPlace> {
  const calls = new Map<string, PartPlace>();
  for (const { call, result } of pairCalls(conversation).pairs) if (result) calls.set(placeKey(result), call);
  return calls;
}

/**
 * Names of the tools that Leporello added to a request: the one for recalls and, if offered, the one for notes. Leporello answers their
 * calls, and the client never sees them. Empty if it added none.
 */
export type PrivateTools = ReadonlySet<string>;

/** Returns the names that are given. */
export function privateToolsOf(names: readonly (string | undefined)[]): PrivateTools {
  return new Set(names.filter((name) => name !== undefined));
}

/** Returns the places of recalls, of their answers, and of the media that they gave back. */
export function recalledPlaces(
  conversation: Conversation,
  recallTool: string | undefined,
): ReadonlySet<string> {
  if (recallTool === undefined) return new Set();
  const places = new Set<string>();
  const results: PartPlace[] = [];
  for (const { name, call, result } of pairCalls(conversation).pairs) {
    if (!result || name !== recallTool) continue;
    places.add(placeKey(call)).add(placeKey(result));
    results.push(result);
  }
  for (const place of mediaOfRecalls(conversation, results)) places.add(placeKey(place));
  return places;
}

/** Returns the places of answered calls of these tools, and of their results. */
export function pinnedPlaces(conversation: Conversation, tools: readonly string[]): ReadonlySet<string> {
  const places = new Set<string>();
  if (tools.length === 0) return places;
  for (const { name, call, result } of pairCalls(conversation).pairs)
    if (result && tools.includes(name)) places.add(placeKey(call)).add(placeKey(result));
  return places;
}
