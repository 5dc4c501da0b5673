/** Implements three strategies that drop old content: the oldest messages, recalls of earlier turns, and calls of tools that do not exist. */
import { checkSettings, object, oneOf } from '../checks.ts';
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { bytesOf, messagesPerStep, textOf, textsOf } from '../conversation/messages.ts';
import { type Edit, isLog } from '../conversation/edit.ts';
import type { Steps } from '../conversation/steps.ts';
import { freeMessagesOf, isPartDroppable, placesEdited, remainingInSteps } from './lib/editable-texts.ts';
import { type DroppedRange, insertedTexts, type LogEdit, logEdits } from './lib/drop-log.ts';
import { type FoldView, type Strategy, steppedStrategy } from './strategy.ts';
import {
  type Pair,
  type PartPlace,
  mediaOfRecalls,
  pairCalls,
  placeKey,
  unitsInSteps,
  userSpeaks,
} from '../conversation/turns.ts';
import { saysNoSuchTool } from './lib/no-such-tool.ts';

export type DropOldestOptions = {
  /** `everything` drops messages only if the request would not fit otherwise, as after a summary. Default `history`. */
  readonly reach?: 'history' | 'everything' | undefined;
};

/** Checks the options. */
export const dropOldestCheck = object<DropOldestOptions>({ reach: oneOf('history', 'everything') });

/**
 * Drops the oldest messages, calls always together with their results, and leaves a log in the place of each gap, by which the model can read
 * the exact messages again. System messages, the newest user message and the newest tool batch always stay.
 * Throws `bad-config` for options that are not allowed.
 */
export function dropOldest(options: DropOldestOptions = {}): Strategy {
  checkSettings(dropOldestCheck, options, 'dropOldest');
  return steppedStrategy('drop-oldest', options.reach ?? 'history', proposeOldest);
}

function* proposeOldest(view: FoldView): Steps<readonly Edit[]> {
  const gone = placesEdited(view.edits);
  const remaining = yield* remainingInSteps(view);
  const maxCharactersFor = yield* maxLogCharacters(view, gone.messages, remaining);
  const chosen = yield* oldestMessages(view, remaining, maxCharactersFor);
  if (chosen.tokens.size === 0 || chosen.saved <= 0) return [];
  yield;
  const ranges = yield* gapsOf(view, chosen.tokens);
  const maxCharacters = maxCharactersFor({ ...chosen, messages: chosen.tokens.size });
  const demands = yield* demandsIn(view, ranges);
  return yield* logEdits(view, chosen.tokens, ranges, { ...logRoom(view, chosen, maxCharacters), demands });
}

type MessagesToDrop = {
  /** The tokens that each message has now, by its index. */
  readonly tokens: ReadonlyMap<number, number>;
  readonly bytes: number;
  /** Tokens or messages (the unit of the excess) that dropping them saves, without the lines of the log. */
  readonly saved: number;
  /** The same with a log of the usual length. */
  readonly savedWithLog: number;
  /** Tokens of the words of the user, which the log repeats. */
  readonly wordsTokens: number;
};

/** Chooses the oldest messages that may be dropped, until they save enough. */
function* oldestMessages(
  view: FoldView,
  remaining: (index: number) => number,
  maxCharactersFor: (dropped: DroppedSizes) => number,
): Steps<MessagesToDrop> {
  const inTokens = view.excess.unit === 'tokens';
  const dropped = new Map<number, number>();
  // A log costs tokens, too; where messages are counted, it is one.
  let saved = inTokens ? -logTokens : -1;
  let bytes = 0;
  let wordsTokens = 0;
  // A token has at least three characters.
  const savedWithLog = () =>
    saved - (inTokens ? maxCharactersFor({ bytes, wordsTokens, messages: dropped.size }) / 3 : 0);
  for (const unit of yield* unitsInSteps(view.conversation)) {
    if (savedWithLog() >= view.excess.amount) break;
    yield;
    const messages = yield* freeMessagesOf(view, unit);
    if (messages.length === 0) continue;
    let tokens = 0;
    for (const message of messages) {
      const { index } = message;
      if (index % 64 === 63) yield;
      const left = remaining(index);
      dropped.set(index, left);
      tokens += left;
      bytes += contentBytes(view.conversation.body, message);
    }
    const speaks = messages.some(({ role }) => role === 'user') ? Math.min(tokens, maxWordsTokens) : 0;
    wordsTokens += speaks;
    saved += inTokens ? tokens - speaks : messages.length;
  }
  return { tokens: dropped, bytes, saved, savedWithLog: savedWithLog(), wordsTokens };
}

/** Returns the room for the log. If space is tight, it is short; if the request would hardly fit otherwise, it has only the words of the user. */
function logRoom(
  { excess, mustSave: wanted, isForced, protects }: FoldView,
  { saved, savedWithLog, wordsTokens }: MessagesToDrop,
  usualCharacters: number,
): { readonly maxCharacters: number; readonly room: number; readonly maxWords: number } {
  const isTight = savedWithLog <= 0 || (Number.isFinite(excess.amount) && savedWithLog < excess.amount);
  const mustSave = Math.min(excess.amount, wanted ?? Number.POSITIVE_INFINITY);
  // If this is not enough, something else is cut: a log may have an eighth of that, unless it still does not fit.
  const other = protects.hasGivenWay === true ? 0 : (mustSave - saved) / 4;
  const room = isForced ? Math.max(0, saved - mustSave, other) * 2 : Number.POSITIVE_INFINITY;
  // Even the words of the user give way if the request does not fit with them, whatever else is cut.
  const isTooMuch = isForced && protects.hasGivenWay === true && excess.unit === 'tokens' && saved < mustSave;
  return {
    maxCharacters: isTight ? Math.min(room, usualCharacters / 2) : usualCharacters,
    room,
    maxWords: isTooMuch ? Math.max(0, saved + wordsTokens - mustSave) * 2 : Number.POSITIVE_INFINITY,
  };
}

/** Finds the ranges in which no message stays, and in which no text of another kind was inserted. */
function* gapsOf(
  { conversation, edits }: FoldView,
  dropped: ReadonlyMap<number, number>,
): Steps<readonly DroppedRange[]> {
  const logs = new Map(edits.filter(isLog).map((log) => [log.before, log]));
  const others = new Set(
    edits.flatMap((edit) => (edit.kind === 'insert-message' && !isLog(edit) ? [edit.before] : [])),
  );
  const gone = placesEdited(edits).messages;
  const ranges: { from: number; upTo: number; logs: LogEdit[]; isNew: boolean }[] = [];
  for (let index = 0; index < conversation.messages.length; ) {
    if (index % 64 === 0) yield;
    const log = logs.get(index);
    const last = ranges.at(-1);
    if (!log && !dropped.has(index)) {
      // A recall that an earlier fold dropped leaves no log. It must not divide a step, whose call and result stay or go together.
      if (gone.has(index) && last?.upTo === index && !others.has(index)) last.upTo = index + 1;
      index++;
      continue;
    }
    const range =
      last?.upTo === index && !others.has(index)
        ? last
        : { from: index, upTo: index, logs: [], isNew: false };
    if (range !== last) ranges.push(range);
    if (log) range.logs.push(log);
    else range.isNew = true;
    range.upTo = log ? log.upTo : index + 1;
    index = range.upTo;
  }
  return ranges.filter(({ isNew }) => isNew);
}

/** Counts the messages of the user in ranges. */
function* demandsIn({ conversation }: FoldView, ranges: readonly DroppedRange[]): Steps<number> {
  let demands = 0;
  for (const { from, upTo } of ranges)
    for (let index = from; index < upTo; index++) {
      if (index % messagesPerStep === 0) yield;
      if (userSpeaks(conversation, conversation.messages[index]!)) demands++;
    }
  return demands;
}

/** The approximate tokens of a log without lines, and of the longest words of the user in it. */
const logTokens = 35;
const maxWordsTokens = 110;

/** Messages that are dropped, their bytes, and the tokens of the user's words in them. */
type DroppedSizes = Readonly<Record<'messages' | 'bytes' | 'wordsTokens', number>>;

/**
 * Returns how many characters a log may have, by the bytes it replaces: a fourteenth of them, about 1,500 tokens at most. All logs together may take at
 * most a third of the folded request (about half of the current one), because they stay. In small requests, logs have the words of the user and a few
 * words for each message, until they are as long as the other messages.
 */
function* maxLogCharacters(
  view: FoldView,
  gone: ReadonlySet<number>,
  remaining: (index: number) => number,
): Steps<(dropped: DroppedSizes) => number> {
  let tokens = 0;
  for (const { index } of view.conversation.messages) {
    if (!gone.has(index)) tokens += remaining(index);
    if (index % 64 === 63) yield;
  }
  const charactersThen = (tokens / 2) * 4;
  const before = insertedTexts(view.edits).length;
  return ({ messages, bytes, wordsTokens }) => {
    const usual = Math.min(bytes / 14, charactersThen / 3 - before);
    const few = Math.max(
      messages * perMessage + wordsTokens * 4,
      (gone.size + messages) * perMessage - before,
    );
    const room = Math.max(usual, Math.min(few, bytes / 5, Math.min(maxFew, charactersThen) - before));
    return Math.max(0, Math.floor(Math.min(5_600, room)));
  };
}

/** Characters of logs for each message that is gone, and of all logs that have so few. */
const perMessage = 70;
const maxFew = 16_000;

/**
 * Drops what the model recalled in earlier turns, oldest first: the hidden calls with their answers. The content can still be recalled by the same
 * id, so only the repeated recall is lost.
 */
export function dropRecalls(): Strategy {
  return { name: 'drop-recalls', reach: 'history', propose: proposeRecalls };
}

function proposeRecalls(view: FoldView): readonly Edit[] {
  const isFree = freeMessages(view);
  const edits: Edit[] = [];
  let saved = 0;
  for (const turn of recallTurnsOf(view)) {
    if (saved >= view.excess.amount) break;
    const dropped = dropsOf(view, turn);
    if (dropped.length === 0 || !dropped.every((edit) => isFree(edit.message) && view.mayEdit(edit)))
      continue;
    edits.push(...dropped);
    saved += dropped.reduce((sum, edit) => sum + gainOf(view, edit), 0);
  }
  return edits;
}

/** Adjacent messages of the model that make one turn: in some formats, reasoning and each call are messages of their own. */
type RecallTurn = {
  readonly turn: readonly number[];
  /** The answered recalls in the turn, and their answers. */
  readonly recalls: readonly PartPlace[];
};

/** Returns the turns whose recalls are neither pinned nor dropped. */
function recallTurnsOf(view: FoldView): readonly RecallTurn[] {
  const gone = placesEdited(view.edits).parts;
  const byTurn = new Map<number, PartPlace[]>();
  const startOfTurn = turnStarts(view.conversation);
  for (const pair of pairCalls(view.conversation).pairs) {
    if (!isRecall(view, pair)) continue;
    const start = startOfTurn(pair.call.message);
    const recalls = byTurn.get(start) ?? [];
    recalls.push(pair.call, pair.result);
    byTurn.set(start, recalls);
  }
  return [...byTurn]
    .filter(([, recalls]) =>
      recalls.every((place) => !view.protects.part(place.message, place.part) && !gone.has(placeKey(place))),
    )
    .map(([start, recalls]) => ({
      turn: turnFrom(view.conversation, start),
      recalls: [...recalls, ...mediaOfRecalls(view.conversation, recalls)],
    }));
}

function isRecall(view: FoldView, pair: Pair): pair is Pair & { readonly result: PartPlace } {
  return pair.name === view.recallTool && pair.result !== undefined;
}

/** Returns a function that finds the start of a message's turn. Call it in order, so that no message is visited twice. */
function turnStarts({ messages }: Conversation): (index: number) => number {
  let last = { index: 0, start: 0 };
  return (index) => {
    let start = index;
    while (start > last.index && messages[start - 1]?.role === 'assistant') start--;
    last = { index, start: start === last.index ? last.start : start };
    return last.start;
  };
}

function turnFrom({ messages }: Conversation, start: number): readonly number[] {
  let end = start;
  while (messages[end]?.role === 'assistant') end++;
  return messages.slice(start, end).map(({ index }) => index);
}

type Drop = Extract<Edit, { readonly kind: 'drop-message' | 'drop-part' }>;

/**
 * Makes the drops of one turn. Messages with only recalls are dropped as a whole, with the reasoning before the recalls; from others, only the parts.
 * Nothing is dropped if signed reasoning also led to something else, because it must stay with everything it led to.
 */
function dropsOf({ conversation: { messages } }: FoldView, { turn, recalls }: RecallTurn): readonly Drop[] {
  const recalled = new Set(recalls.map(placeKey));
  const isWhole = (message: number) =>
    messages[message]!.parts.every(
      ({ type }, part) => type === 'reasoning' || recalled.has(placeKey({ message, part })),
    );
  const isAll = turn.every(isWhole);
  if (!isAll && turn.some((message) => messages[message]!.parts.some(isSealed))) return [];
  const concerned = new Set([...(isAll ? turn : []), ...recalls.map(({ message }) => message)]);
  return [...concerned]
    .toSorted((a, b) => a - b)
    .flatMap((message): readonly Drop[] =>
      isWhole(message)
        ? [{ kind: 'drop-message', message, memory: undefined }]
        : recalls
            .filter((place) => place.message === message)
            .map((place) => ({ kind: 'drop-part', ...place, memory: undefined })),
    );
}

function isSealed(part: Part): boolean {
  return part.type === 'reasoning' && part.signed;
}

/** Returns a function that is true for messages that are neither protected nor dropped. */
function freeMessages(view: FoldView): (message: number) => boolean {
  const gone = placesEdited(view.edits).messages;
  return (message) => !view.protects.message(message) && !gone.has(message);
}

function gainOf(view: FoldView, edit: Drop): number {
  const inMessages = view.excess.unit === 'messages';
  if (edit.kind === 'drop-message') return inMessages ? 1 : view.measure.message(edit.message);
  const message = view.conversation.messages[edit.message]!;
  return inMessages ? 0 : view.measure.part(message, message.parts[edit.part]!);
}

/**
 * Drops calls of tools that do not exist, with their errors: they teach the model nothing and invite it to try again. A call counts if its name is
 * not among the offered tools and its result says that there is no such tool. Another error may be of a tool that was offered earlier.
 */
export function dropFailedCalls(): Strategy {
  return { name: 'drop-failed-calls', reach: 'history', propose: proposeFailed };
}

function proposeFailed(view: FoldView): readonly Edit[] {
  const offered = new Set(view.conversation.toolNames);
  if (offered.size === 0) return [];
  const gone = placesEdited(view.edits);
  return pairCalls(view.conversation).pairs.flatMap((pair) => {
    if (offered.has(pair.name) || !pair.result || gone.parts.has(placeKey(pair.call))) return [];
    if (gone.messages.has(pair.call.message)) return [];
    const edits = [dropPart(pair.call), dropPart(pair.result)];
    return isOld(view, pair, pair.result) &&
      isUnknown(view, pair.result, pair.name) &&
      edits.every(view.mayEdit)
      ? edits
      : [];
  });
}

function dropPart({ message, part }: PartPlace): Edit {
  return { kind: 'drop-part', message, part, memory: undefined };
}

/** True if nothing protects the call. A call in a message with signed reasoning stays, because the reasoning must not be left alone. */
function isOld(view: FoldView, pair: Pair, result: PartPlace): boolean {
  const asking = view.conversation.messages[pair.call.message]!;
  return (
    !asking.parts.some((part) => part.type === 'reasoning' && part.signed) &&
    [pair.call, result].every(
      ({ message, part }) => !view.protects.message(message) && isPartDroppable(view.protects, message, part),
    )
  );
}

function isUnknown(view: FoldView, place: PartPlace, name: string): boolean {
  const message = view.conversation.messages[place.message]!;
  const part: Part | undefined = message.parts[place.part];
  if (part?.type !== 'tool-result' || part.isError === false) return false;
  const text = textsOf(part)
    .map((span) => textOf(view.conversation.body, message, span))
    .join('\n');
  return saysNoSuchTool(text, name);
}

/** Returns about how many bytes a message has, the same in all formats: those of its texts and arguments, and 80 for the JSON around each part. */
export function contentBytes(body: Uint8Array, message: Message): number {
  let bytes = message.parts.length * 80;
  for (const part of message.parts) {
    for (const text of textsOf(part)) bytes += text.end - text.start;
    if (part.type !== 'tool-call') continue;
    const input = bytesOf(body, message, part.input);
    // Arguments in a string have a backslash ahead of each quote.
    bytes += input.length - (input[0] === 0x22 ? input.filter((byte) => byte === 0x5c).length : 0);
  }
  return bytes;
}
