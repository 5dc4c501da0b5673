/**
 * Finds the passages that hold a query as it is: windows of some twenty lines around each match. Each text is searched once, without an index. Pure.
 */
import type { Steps } from '../conversation/steps.ts';
import { wholeAfter, wholeBefore } from '../conversation/messages.ts';
import { groupBy } from '../es2024.ts';
import { spellingsOf } from '../arrival/items/query-terms.ts';
import type { PageSection } from './read-original.ts';
import type { TextSpan } from './text-ranges.ts';

/** A text to search. */
export type Searched = {
  /** The id that precedes each place in it; undefined when this is the only text searched. */
  readonly id: string | undefined;
  readonly text: string;
  /** The part of the text to search. */
  readonly within: TextSpan;
  /** A description of the text, such as `result of Read src/app.ts`; undefined when it is unknown or each section says it. */
  readonly title: string | undefined;
  readonly sections: readonly PageSection[];
  /** Place in the conversation: newer texts have larger numbers. */
  readonly order: number;
  /** Returns the arguments, as JSON, of the call that reads the given range. */
  readonly callFor: (lines: string) => string;
};

/** A place in a text. */
export type Place = TextSpan & { readonly from: Searched };

/** Weights of places by their kind: words of users and steps come before texts that were read. */
export const worthOf: Readonly<Record<PageSection['kind'], number>> = {
  user: 1.1,
  assistant: 1.1,
  call: 1.1,
  result: 1,
  other: 1,
};

export function kindOfTitle(title: string): PageSection['kind'] {
  if (title.startsWith('call ')) return 'call';
  return title === 'user' || title === 'assistant' ? title : 'result';
}

export function sectionAt({ from, start, end }: Place): PageSection | undefined {
  return from.sections.find((section) => section.end > start && section.start < end);
}

export function textOf({ from, start, end }: Place): string {
  return from.text.slice(start, end);
}

/** Joins places that overlap or touch, and puts those of one text in its order, where the first of them was. */
export function joined(places: readonly Place[]): readonly Place[] {
  return [...groupBy(places, ({ from }) => from).values()].flatMap((own) => {
    const result: Place[] = [];
    for (const next of own.toSorted((one, other) => one.start - other.start)) {
      const last = result.at(-1);
      if (last === undefined || next.start > last.end) result.push(next);
      else result[result.length - 1] = { ...last, end: Math.max(last.end, next.end) };
    }
    return result;
  });
}

export type Passage = Place & {
  /** Offset of the first match in it. */
  readonly hit: number;
};

/** Maximum characters across the border of a window in which the whole query is searched. */
const maxAcross = 1_500;

/**
 * Returns the passages that hold the query as one of its spellings, else those that hold it in other case. Whole words come before parts of words,
 * what was said and done before what was read, and newer texts before older ones.
 */
export function* findWhole(sources: readonly Searched[], query: string): Steps<readonly Passage[]> {
  if (query === '') return [];
  const spellings = spellingsOf(query);
  const found: Match[] = [];
  for (const from of sources) {
    const spelling = spellings.find((one) => placeIn(from, one, from.within.start) >= 0);
    yield;
    if (spelling !== undefined) for (const match of yield* exactIn(from, spelling)) found.push(match);
  }
  if (found.length === 0)
    for (const from of sources)
      for (const match of yield* anyCaseIn(from, query.toLowerCase())) found.push(match);
  const ranked = found.map((match) => ({ match, worth: worthAt(match) }));
  ranked.sort(
    (one, other) =>
      Number(other.match.isWord) - Number(one.match.isWord) ||
      other.worth - one.worth ||
      other.match.from.order - one.match.from.order,
  );
  return ranked.map(({ match }) => match);
}

/** Windows that are searched in one step. */
const windowsPerStep = 100;

type Match = Passage & { readonly isWord: boolean };

function worthAt(match: Match): number {
  return worthOf[
    sectionAt({ ...match, start: match.hit, end: match.hit + 1 })?.kind ?? kindOfTitle(match.from.title ?? '')
  ];
}

/** Returns the offset of a text in a source, at or after `start`; -1 if there is none. */
function placeIn({ text, within }: Searched, wanted: string, start: number): number {
  const at = text.indexOf(wanted, start);
  return at + wanted.length <= within.end ? at : -1;
}

function* exactIn(from: Searched, spelling: string): Steps<readonly Match[]> {
  const { text, within } = from;
  const matches: Match[] = [];
  let at = placeIn(from, spelling, within.start);
  for (const window of windowsOf(text, within)) {
    if (at >= 0 && at < window.start) at = placeIn(from, spelling, window.start);
    if (at < 0) break;
    if (at >= window.end) continue;
    if (matches.length % windowsPerStep === 0) yield;
    let word = at;
    while (word >= 0 && word < window.end && !isWordAt(text, word, spelling.length))
      word = placeIn(from, spelling, word + 1);
    const isWord = word >= 0 && word < window.end;
    const hit = isWord ? word : at;
    const hitEnd = wholeAfter(text, Math.min(hit + spelling.length, within.end));
    matches.push({ from, start: window.start, end: Math.max(window.end, hitEnd), hit, isWord });
  }
  return matches;
}

function isWordAt(text: string, at: number, length: number): boolean {
  return !isJoined(text, at) && !isJoined(text, at + length);
}

/** True if a word or number goes on across an offset. */
function isJoined(text: string, at: number): boolean {
  return /^[\p{L}\p{N}_]{2}$/u.test(text.slice(Math.max(0, at - 1), at + 1));
}

function* anyCaseIn(from: Searched, lower: string): Steps<readonly Match[]> {
  const { text, within } = from;
  const beyond = Math.min(lower.length, maxAcross);
  const matches: Match[] = [];
  let windows = 0;
  for (const window of windowsOf(text, within)) {
    if (windows++ % windowsPerStep === 0) yield;
    const length = window.end - window.start;
    const at = text
      .slice(window.start, Math.min(within.end, window.end + beyond))
      .toLowerCase()
      .indexOf(lower);
    if (at < 0 || at >= length) continue;
    const hit = wholeBefore(text, Math.min(window.start + at, window.end - 1));
    const hitEnd = wholeAfter(text, Math.min(hit + lower.length, within.end));
    matches.push({ from, start: window.start, end: Math.max(window.end, hitEnd), hit, isWord: true });
  }
  return matches;
}

const linesPerWindow = 20;
const minCharacters = 400;
const maxCharacters = 1_500;
const contextLines = 2;
const contextCharacters = 150;

/** Yields disjoint windows that cover the span: whole lines if they are short enough, else pieces of a line. */
export function* windowsOf(text: string, { start, end }: TextSpan): Generator<TextSpan> {
  for (let from = start; from < end; ) {
    const to = windowEnd(text, from, end);
    yield { start: from, end: to };
    from = to;
  }
}

function windowEnd(text: string, from: number, end: number): number {
  const limit = Math.min(end, from + maxCharacters);
  let lines = 0;
  let lastBreak = from;
  for (let at = from; at < limit; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue;
    lastBreak = at + 1;
    lines++;
    if (lines >= linesPerWindow && lastBreak - from >= minCharacters) return lastBreak;
  }
  if (limit === end) return end;
  return lastBreak > from ? lastBreak : wholeBefore(text, limit);
}

/** Returns the span with up to two lines more on each side, if they are not far. */
export function withContext(text: string, { start, end }: TextSpan, within: TextSpan): TextSpan {
  let [from, to] = [start, end];
  for (let lines = 0; lines < contextLines && from > within.start; lines++) {
    const before = Math.max(within.start, text.lastIndexOf('\n', from - 2) + 1);
    if (start - before > contextCharacters) break;
    from = before;
  }
  for (let lines = 0; lines < contextLines && to < within.end; lines++) {
    const next = text.indexOf('\n', to);
    const after = next < 0 ? within.end : Math.min(within.end, next + 1);
    if (after - end > contextCharacters) break;
    to = after;
  }
  return { start: from, end: to };
}
