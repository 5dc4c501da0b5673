/**
 * Makes the edits that replace dropped messages by logs: one log for each gap, so that it stands between the same messages as what it tells. A
 * gap that joins the gap of an earlier fold takes in its log. The messages of a gap are stored in pages that are worth reading each.
 */
import type { Conversation, Message } from '../../conversation/conversation.ts';
import { type Edit, originalOfMessages } from '../../conversation/edit.ts';
import { inputOf, messagesPerStep, textInSteps } from '../../conversation/messages.ts';
import type { Steps } from '../../conversation/steps.ts';
import { type PartPlace, pairCalls, placeKey, unitsInSteps, userSpeaks } from '../../conversation/turns.ts';
import { maxUserWords } from '../../outline/outcome.ts';
import { endsOf } from '../../outline/sentences.ts';
import { replyVerdict, wordsBeside, wordsOnResult } from '../../outline/lib/closings.ts';
import { summaryLines } from '../../outline/lib/client-summary.ts';
import { repairedSteps } from '../../outline/lib/call-outcome.ts';
import {
  clientSummary,
  maxAgreement,
  quotedWords,
  replyBefore,
  typedText,
} from '../../outline/lib/typed-text.ts';
import { type CallWords, type StepWords, callWords, stepWords } from '../../outline/step-line.ts';
import type { FoldView } from '../strategy.ts';
import { placesEdited } from './editable-texts.ts';
import { replyText, textBefore } from './summaries.ts';
import {
  addNamesIn,
  knownNames,
  type LogEntry,
  type LogPage,
  type NameSources,
  messagesLog,
  wholeLogCharacters,
} from './stubs.ts';

/** Maximum tokens of messages with one id, unless one step has more. */
const pageTokens = 4_800;

/**
 * Drops messages for logs. `dropped` has the tokens of each message by its index, in order, and `ranges` where they were. All logs together may have
 * `maxCharacters`, up to `room` with verdicts, and `maxWords` for the user's words; `demands` of the user are in them. A gap stays if its log would save too little.
 */
export function* logEdits(
  view: FoldView,
  dropped: ReadonlyMap<number, number>,
  ranges: readonly DroppedRange[],
  sizes: Readonly<Record<'maxCharacters' | 'maxWords' | 'room' | 'demands', number>>,
): Steps<readonly Edit[]> {
  const { recallTool, measure } = view;
  const { maxCharacters, maxWords, room, demands } = sizes;
  const gaps: OpenGap[] = [];
  const earlier = memoriesOf(view.edits);
  const resultOf = new Map<string, PartPlace | undefined>();
  const recalls = new Set<number>();
  for (const { call, result, name } of pairCalls(view.conversation).pairs) {
    const places = name === recallTool ? [call, result] : [];
    for (const place of places)
      if (place && view.conversation.messages[place.message]!.parts.length === 1) recalls.add(place.message);
    if (resultOf.set(placeKey(call), result).size % messagesPerStep === 0) yield;
  }
  const unitsBetween = yield* unitsByPlace(view.conversation);
  const takenIn = new Set<Edit>(ranges.flatMap(({ logs }) => logs));
  const before = insertedTexts(takenIn);
  yield;
  const lengths = lengthsFor((maxCharacters + before.length) / Math.max(1, demands));
  const read: { range: DroppedRange; pages: readonly DroppedPage[] }[] = [];
  for (const range of ranges) {
    read.push({
      range,
      pages: yield* pagesOf(view, range, { earlier, resultOf, unitsBetween, recalls, lengths }),
    });
    yield;
  }
  const steps: StepWords[] = [];
  for (const { pages } of read)
    for (const { entries } of pages) {
      for (const entry of entries) if (entry.kind === 'step') steps.push(entry.step);
      yield;
    }
  const others = insertedTexts(view.edits.filter((edit) => !takenIn.has(edit)));
  const calls = yield* allCalls(view, dropped);
  const repaired = steps.some(({ hasFailed }) => hasFailed)
    ? repairedSteps(steps)
    : new Map<StepWords, StepWords>();
  const known = knownNames({ ...calls, logs: others, dropped: steps, repaired });
  for (const { range, pages } of read)
    gaps.push({ ...range, pages, characters: yield* wholeLogCharacters(pages, known) });
  const whole = gaps.reduce((sum, { characters }) => sum + characters, 0);
  const share = Math.min(1, (maxCharacters + before.length + longQuotes(gaps)) / whole);
  const all = [...dropped.values()].reduce((sum, tokens) => sum + tokens, 0);
  const wordsPerToken = Math.min(2, maxWords / Math.max(1, all));
  const edits: Edit[] = [];
  for (const { from, upTo, logs, pages, characters } of gaps) {
    let tokens = 0;
    for (const { indices } of pages) {
      for (const index of indices) {
        if (index % messagesPerStep === 0) yield;
        tokens += dropped.get(index) ?? 0;
      }
      yield;
    }
    const text = yield* messagesLog({
      pages,
      maxCharacters: characters * share,
      maxVerdicts: characters * (room / whole),
      maxWords: insertedTexts(logs).length + tokens * wordsPerToken,
      known,
      recallTool,
    });
    yield;
    const added = measure.text(text) - logs.reduce((sum, log) => sum + measure.text(log.text), 0);
    if (view.excess.unit === 'tokens' && added * (view.isForced ? 1 : 2) > tokens) continue;
    addNamesIn(text, known);
    edits.push({ kind: 'insert-message', before: from, role: 'user', text, upTo });
    for (const { memory, indices } of pages) {
      for (const message of indices) {
        if (message % messagesPerStep === 0) yield;
        if (dropped.has(message)) edits.push({ kind: 'drop-message', message, memory });
      }
      yield;
    }
  }
  return edits;
}

/** UTF-16 units of a line of a client's summary that take the place of others; the rest of a longer one, which has the words of the user, takes none. */
const maxOwnPlace = 700;

function longQuotes(gaps: readonly OpenGap[]): number {
  const entries = gaps.flatMap(({ pages }) => pages.flatMap((page) => page.entries));
  return entries.reduce(
    (sum, entry) => sum + (entry.kind === 'summary' ? Math.max(0, entry.text.length - maxOwnPlace) : 0),
    0,
  );
}

/** Reads the calls that neither this fold nor an earlier one drops, and the paths and folders of all. */
function* allCalls(
  { conversation, edits, recallTool }: FoldView,
  dropped: ReadonlyMap<number, number>,
): Steps<Pick<NameSources, 'staying' | 'all'>> {
  const gone = placesEdited(edits).messages;
  const staying: CallWords[] = [];
  const all: NameSources['all'][number][] = [];
  for (const message of conversation.messages) {
    if (message.index % 64 === 63) yield;
    const stays = !gone.has(message.index) && !dropped.has(message.index);
    for (const part of message.parts) {
      if (part.type !== 'tool-call' || part.name === recallTool) continue;
      const words = callWords({ tool: part.name, input: inputOf(conversation.body, message, part) });
      if (words.path !== '' || words.folder !== '') all.push({ path: words.path, folder: words.folder });
      if (stays) staying.push(words);
      yield;
    }
  }
  return { staying, all };
}

/** Returns the texts that folds put in the place of messages. */
export function insertedTexts(edits: Iterable<Edit>): string {
  return Array.from(edits, (edit) => (edit.kind === 'insert-message' ? edit.text : '')).join('\n');
}

export type LogEdit = Edit & { readonly kind: 'insert-message'; readonly upTo: number };

/** Neighboring messages that are dropped, now or by an earlier fold, and the logs of earlier folds among them. */
export type DroppedRange = {
  readonly from: number;
  readonly upTo: number;
  readonly logs: readonly LogEdit[];
};

type DroppedPage = LogPage & { readonly indices: readonly number[] };

/** `characters`: those of a log that leaves nothing out. */
type OpenGap = DroppedRange & { readonly pages: readonly DroppedPage[]; readonly characters: number };

/** Returns the memory of each dropped message. */
function memoriesOf(edits: readonly Edit[]): ReadonlyMap<number, string> {
  const memories = new Map<number, string>();
  for (const edit of edits)
    if (edit.kind === 'drop-message' && edit.memory !== undefined) memories.set(edit.message, edit.memory);
  return memories;
}

type PageSources = {
  readonly earlier: ReadonlyMap<number, string>;
  readonly resultOf: ReadonlyMap<string, PartPlace | undefined>;
  readonly unitsBetween: UnitsBetween;
  /** Messages with the answers of hidden recalls, and those of the model that only recall: the client has none of them. */
  readonly recalls: ReadonlySet<number>;
  readonly lengths: ReplyLengths;
};

/** Reads the messages of a gap page by page. Pages of earlier folds stay as they are. */
function* pagesOf(
  view: FoldView,
  { from, upTo }: DroppedRange,
  sources: PageSources,
): Steps<readonly DroppedPage[]> {
  const { earlier, unitsBetween } = sources;
  const { measure } = view;
  const pages: { memory: string | undefined; indices: number[]; entries: LogEntry[]; tokens: number }[] = [];
  for (const unit of yield* unitsBetween(from, upTo)) {
    yield;
    const memory = earlier.get(unit[0]!.index);
    let tokens = 0;
    for (const { index } of unit) {
      if (index % 512 === 0) yield;
      tokens += measure.message(index);
    }
    const last = pages.at(-1);
    const fits = memory !== undefined || (last?.tokens ?? 0) + tokens <= pageTokens;
    const page =
      last && last.memory === memory && fits ? last : { memory, indices: [], entries: [], tokens: 0 };
    if (page !== last) pages.push(page);
    for (const { index } of unit) page.indices.push(index);
    page.tokens += tokens;
    yield* addEntries({ entries: page.entries, earlier: last?.entries ?? [] }, view, unit, sources);
  }
  // An answer that stays needs the question that goes.
  const answer = view.conversation.messages[upTo];
  const newest = pages.at(-1);
  if (newest && answer?.role === 'user')
    askedBefore(newest.entries, yield* typedIn(view.conversation, answer));
  const named: DroppedPage[] = [];
  for (const { memory: known, indices, entries } of pages) {
    const memory = known ?? view.idOf(originalOfMessages(view.conversation, indices));
    const messages = indices.filter((index) => !sources.recalls.has(index)).length;
    named.push({ memory, messages, indices, entries });
    yield;
  }
  return named;
}

type UnitsBetween = (from: number, upTo: number) => Steps<readonly (readonly Message[])[]>;

/** Returns a function that divides messages into their units. All ranges together take one pass, however many there are. */
function* unitsByPlace(conversation: Conversation): Steps<UnitsBetween> {
  const unitOf: number[] = [];
  for (const [at, unit] of (yield* unitsInSteps(conversation)).entries())
    for (const { index } of unit) {
      if (index % messagesPerStep === 0) yield;
      unitOf[index] = at;
    }
  return function* unitsBetween(from, upTo) {
    const units: Message[][] = [];
    for (let index = from; index < upTo; index++) {
      if (index % messagesPerStep === 0) yield;
      const message = conversation.messages[index]!;
      if (index > from && unitOf[index] === unitOf[index - 1]) units.at(-1)!.push(message);
      else units.push([message]);
    }
    return units;
  };
}

/** Maximum UTF-16 units of the user's words if space is short, and those read of a reply. */
const maxBrief = 240;
const maxRead = 6_000;
/** UTF-16 units of the shortest text beside a call that tells the user something, and is no remark on a result. */
const minTelling = 800;

/** UTF-16 units of a reply in a log, and of one that ended a turn if space is short. */
type ReplyLengths = Readonly<Record<'reply' | 'verdict', number>>;

/** Returns how much a log tells of replies: the more, the fewer demands it has to tell of. */
function lengthsFor(perDemand: number): ReplyLengths {
  const within = (min: number, share: number, max: number): number =>
    Math.round(Math.min(max, Math.max(min, perDemand * share)));
  return { reply: within(150, 0.5, 320), verdict: within(80, 0.25, 160) };
}

/** Adds what was said and done in the messages of a unit. */
function* addEntries(
  page: PageEntries,
  { conversation, recallTool, protects }: FoldView,
  unit: readonly Message[],
  { resultOf, lengths }: PageSources,
): Steps<void> {
  const { body } = conversation;
  const { entries } = page;
  const isStep = unit.some(({ parts }) => parts.some(({ type }) => type === 'tool-call'));
  let asked = messageBefore(page, false);
  for (const message of unit) {
    // Words beside a call, until it is known whether the user answered the call.
    let beside = '';
    for (const [at, part] of message.parts.entries()) {
      yield;
      if (part.type === 'text' && message.role === 'user') {
        let before = textBefore(conversation, message, at);
        for (const span of part.texts) {
          const text = yield* textInSteps(body, message, span);
          addSaid(page, text, before);
          asked = messageBefore(page, false);
          before = text;
        }
      } else if (part.type === 'text' && message.role === 'assistant') {
        for (const span of part.texts) {
          const said = replyText(yield* textInSteps(body, message, span));
          if (!isStep) {
            const told = (max: number): string => replyVerdict(endsOf(said, maxRead), max, asked);
            const text = told(lengths.reply);
            if (text !== '') entries.push({ kind: 'reply', text, said, verdict: told(lengths.verdict) });
            continue;
          }
          const answered = messageBefore(page, true);
          const last = entries.at(-1);
          const result = last?.kind === 'step' ? last.step : undefined;
          const read = said.slice(0, maxRead);
          const text = result ? wordsOnResult(read, result) : wordsBeside(read, lengths.reply, answered);
          if (text === '') continue;
          const told = (max: number): string => wordsBeside(read, max, messageBefore(page, false));
          if (said.length >= minTelling && told(lengths.reply) !== '')
            entries.push({ kind: 'reply', text: told(lengths.reply), verdict: told(lengths.verdict) });
          else if (result) entries.push({ kind: 'found', text, on: result });
          else if (answered !== undefined) entries.push({ kind: 'reply', text });
          else beside = text;
        }
      } else if (part.type === 'media' && userSpeaks(conversation, message)) {
        entries.push({ kind: 'note', text: '(The user sent a file.)' });
      } else if (part.type === 'tool-call' && part.name !== recallTool) {
        const place = resultOf.get(placeKey({ message: message.index, part: at }));
        const answer = place && conversation.messages[place.message]!;
        const result = answer?.parts[place!.part];
        const texts: string[] = [];
        const isResult = answer !== undefined && result?.type === 'tool-result';
        if (isResult) for (const span of result.texts) texts.push(yield* textInSteps(body, answer, span));
        const step = stepWords({
          tool: part.name,
          input: inputOf(body, message, part),
          result: isResult ? texts.join('\n') : undefined,
          isError: isResult ? result.isError : undefined,
        });
        if (step.user && beside !== '') entries.push({ kind: 'reply', text: beside });
        beside = '';
        entries.push({ kind: 'step', step });
        if (place && protects.hasGivenWay && protects.isInView?.(place.message, place.part))
          entries.push({ kind: 'note', text: '(The request did not fit with this, but it still holds.)' });
      }
    }
  }
}

/** The entries of a page, and those of the page before it. */
type PageEntries = Readonly<Record<'entries' | 'earlier', LogEntry[]>>;

/** Returns what the user said last, in a message or about a call: right before, if `isNext`. */
function messageBefore({ entries, earlier }: PageEntries, isNext: boolean): string | undefined {
  const fits = (one: LogEntry) => (isNext ? one.kind !== 'note' : wordsOf(one) !== undefined);
  return wordsOf(entries.findLast(fits) ?? earlier.findLast(fits));
}

function wordsOf(entry: LogEntry | undefined): string | undefined {
  if (entry?.kind === 'step') return entry.step.user?.words;
  return entry?.kind === 'user' ? entry.text : undefined;
}

/** Adds the question of a short answer to the reply that asked it: without the question, the answer says nothing. */
function askedBefore(entries: LogEntry[], answer: string): void {
  // A note of the client between the two changes nothing.
  const at = entries.findLastIndex(({ kind }) => kind !== 'note');
  const last = entries[at];
  if (last?.kind !== 'reply' || last.said === undefined || answer === '') return;
  const text = replyBefore(last.said, last.text, answer);
  const isNeeded = text !== last.text || answer.length <= maxAgreement;
  entries[at] = isNeeded ? { kind: 'answered', text } : { kind: 'reply', text, verdict: last.verdict! };
}

function addSaid({ entries, earlier }: PageEntries, text: string, before: string): void {
  const { words, note } = typedText(text, before);
  const shortened = clientSummary.test(text)
    ? summaryLines(text).map((line) => (line.isState ? '(then) ' : '') + line.text)
    : [];
  if (shortened.length > 0)
    for (const line of `(${note}, shortened:\n${shortened.join('\n')})`.split('\n'))
      entries.push({ kind: 'summary', text: line });
  else if (note !== '') entries.push({ kind: 'note', text: `(${note})` });
  if (words === '') return;
  askedBefore(entries.length > 0 ? entries : earlier, words);
  entries.push({
    kind: 'user',
    text: quotedWords(words, maxUserWords),
    verdict: quotedWords(words, maxBrief),
  });
}

/** Returns what the user typed in a message. */
function* typedIn(conversation: Conversation, message: Message): Steps<string> {
  const words: string[] = [];
  for (const [at, part] of message.parts.entries()) {
    if (part.type !== 'text') continue;
    const before = textBefore(conversation, message, at);
    for (const span of part.texts)
      words.push(typedText(yield* textInSteps(conversation.body, message, span), before).words);
  }
  return words.join('\n').trim();
}
