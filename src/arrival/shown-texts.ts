/**
 * Indexes the texts shown so far in a conversation, to find the lines of a new text in them. Each group of five successive lines is indexed
 * by its hash, newest first, as compressors do. Texts can be removed from the end, so a branch of a conversation costs only the work of the
 * branch.
 */
import { isShrunk } from './markers.ts';
import type { Steps } from '../conversation/steps.ts';

/** A range of lines; `end` is exclusive. */
export type LineRange = { readonly start: number; readonly end: number };

/** A text that was shown in the conversation. */
export type ShownText = {
  /** The name that references use. */
  readonly label: string;
  readonly lines: TextLines;
  /** The ranges of lines that were shown unchanged; references replaced the others. */
  readonly literal: readonly LineRange[];
};

/** `order`: the number of texts shown before it. */
export type OrderedShownText = ShownText & { readonly order: number };

/** Equal lines: their source, their start in it, and their number. */
export type ShownMatch = { readonly source: OrderedShownText; readonly at: number; readonly length: number };

export interface ShownTexts {
  /** Adds the newest text. */
  add(text: ShownText): Steps<void>;
  /** Removes all but the first `size` texts. */
  truncate(size: number): Steps<void>;
  /** Yields texts of exactly these lines that were shown completely and are the newest with their label, newest first. */
  same(text: TextLines): Iterable<OrderedShownText>;
  /** Finds the lines of a text from line `at` on in earlier texts, longest match first, then newest first. */
  matches(text: TextLines, at: number): readonly ShownMatch[];
  /** Yields the texts with a label, newest first; at most `MAX_LABELED`. */
  labeled(label: string): Iterable<OrderedShownText>;
}

/** Minimum number of equal lines for a match. */
export const MIN_LINES = 5;

/** Maximum number of places with one hash that are compared. */
const MAX_PLACES = 8;

/**
 * Maximum number of equal texts, and of texts with one label, that are compared, newest first. Ordinary conversations show fewer; without a
 * limit, a hostile one would compare each text with all others.
 */
const MAX_SAME = 64;
const MAX_LABELED = 64;

type HashedPlace = {
  readonly text: number;
  readonly line: number;
  readonly key: number;
  readonly before: number;
};

export function createShownTexts(): ShownTexts {
  const texts: OrderedShownText[] = [];
  const labels = new Map<string, OrderedShownText[]>();
  const wholes = new Map<number, OrderedShownText[]>();
  const places: HashedPlace[] = [];
  /** The number of places before each text. */
  const starts: number[] = [];
  const newest = new Map<number, number>();

  function* placesOf(key: number): Generator<HashedPlace> {
    let at = newest.get(key) ?? -1;
    for (let looked = 0; at >= 0 && looked < MAX_PLACES; looked++) {
      const place = places[at]!;
      yield place;
      at = place.before;
    }
  }

  return {
    *add(text) {
      const shown = { ...text, order: texts.length };
      starts.push(places.length);
      for (const { start, end } of shown.lines.isLaidOut ? [] : shown.literal) {
        for (let line = start; line + MIN_LINES <= end; line++) {
          const key = keyAt(shown.lines.hashes, line);
          if (key === 0) continue;
          places.push({ text: texts.length, line, key, before: newest.get(key) ?? -1 });
          newest.set(key, places.length - 1);
          if (places.length % linesPerStep === 0) yield;
        }
      }
      texts.push(shown);
      listed(labels, shown.label).push(shown);
      if (isShownCompletely(shown)) listed(wholes, wholeKey(shown.lines)).push(shown);
    },
    *truncate(size) {
      while (texts.length > size) {
        const shown = texts.pop()!;
        labels.get(shown.label)!.pop();
        if (isShownCompletely(shown)) wholes.get(wholeKey(shown.lines))!.pop();
        const start = starts.pop()!;
        while (places.length > start) {
          const { key, before } = places.pop()!;
          if (before < 0) newest.delete(key);
          else newest.set(key, before);
          if (places.length % linesPerStep === 0) yield;
        }
      }
    },
    matches(text, at) {
      const key = keyAt(text.hashes, at);
      if (key === 0) return [];
      const found: ShownMatch[] = [];
      for (const place of placesOf(key)) {
        const source = texts[place.text]!;
        const length = sameFrom(text, at, source, place.line);
        if (length >= MIN_LINES) found.push({ source, at: place.line, length });
      }
      return found.toSorted((one, other) => other.length - one.length);
    },
    *same(text) {
      for (const shown of newestOf(wholes.get(wholeKey(text)), MAX_SAME))
        if (labels.get(shown.label)!.at(-1) === shown && hasSameLines(shown.lines, text)) yield shown;
    },
    labeled: (label) => newestOf(labels.get(label), MAX_LABELED),
  };
}

/** Yields the last elements of a list, last one first. */
function* newestOf(texts: readonly OrderedShownText[] = [], max: number): Generator<OrderedShownText> {
  const oldest = Math.max(0, texts.length - max);
  for (let at = texts.length - 1; at >= oldest; at--) yield texts[at]!;
}

function listed<Key>(lists: Map<Key, OrderedShownText[]>, key: Key): OrderedShownText[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function wholeKey({ hashes }: TextLines): number {
  let key = hashes.length;
  for (const hash of hashes) key = (Math.imul(key, 0x9e3779b1) + hash) | 0;
  return key;
}

/** True if a text was shown without references. */
function isShownCompletely({ lines, literal }: ShownText): boolean {
  return literal.length === 1 && literal[0]!.end - literal[0]!.start === lines.hashes.length;
}

function hasSameLines(one: TextLines, { hashes, numbers }: TextLines): boolean {
  return (
    one.hashes.length === hashes.length &&
    hashes.every((hash, at) => hash === one.hashes[at] && numbers[at] === one.numbers[at])
  );
}

/** Hashes a group of lines; 0 if there are too few, or if one of them never matches. */
function keyAt(hashes: Uint32Array, at: number): number {
  if (at + MIN_LINES > hashes.length) return 0;
  let key = 0;
  for (let line = at; line < at + MIN_LINES; line++) {
    const hash = hashes[line]!;
    if (hash === 0) return 0;
    key = (Math.imul(key, 0x9e3779b1) + hash) | 0;
  }
  return key || 1;
}

/** Returns the number of equal lines. Either all have successive numbers in both texts, or none has a number. */
function sameFrom(text: TextLines, at: number, { lines: source, literal }: ShownText, start: number): number {
  const max = rangeAt(literal, start).end - start;
  let length = 0;
  while (length < max && at + length < text.hashes.length && isSame(length)) length++;
  return length;

  function isSame(by: number): boolean {
    const hash = text.hashes[at + by];
    return (
      hash !== 0 &&
      hash === source.hashes[start + by] &&
      follows(text.numbers, at, by) &&
      follows(source.numbers, start, by) &&
      (text.numbers[at] === -1) === (source.numbers[start] === -1)
    );
  }
}

/** Finds the range that contains a line: the first one that ends after it. Binary search, since there may be very many ranges. */
function rangeAt(literal: readonly LineRange[], line: number): LineRange {
  let first = 0;
  let last = literal.length - 1;
  while (first < last) {
    const middle = (first + last) >> 1;
    if (literal[middle]!.end > line) last = middle;
    else first = middle + 1;
  }
  return literal[first]!;
}

function follows(numbers: Int32Array, start: number, by: number): boolean {
  const first = numbers[start]!;
  return numbers[start + by] === (first === -1 ? -1 : first + by);
}

export type TextLines = {
  /** True for a very long text, which counts as one line: it is only compared as a whole. */
  readonly isOneLine?: boolean;
  /** Hashes of the lines without their numbers. 0 for a line that never matches. */
  readonly hashes: Uint32Array;
  /** The number before each line; -1 if there is none. */
  readonly numbers: Int32Array;
  /** True if the text contains our markers: then its lines mean nothing without them. */
  readonly isLaidOut: boolean;
};

/** UTF-16 units of the longest text that is compared line by line. Longer ones fit few models. */
export const MAX_COMPARED = 1_000_000;

/** UTF-16 units at each end of a longer text that its hash covers. Texts with equal hashes are then compared. */
const HASHED_ENDS = 10_000;

/** The number of lines that are processed between two pauses. */
export const linesPerStep = 2_048;

/** Splits a text into the lines that it is compared by. */
export function* splitLines(text: string): Steps<readonly string[]> {
  if (text.length > MAX_COMPARED) return [text];
  if (text.length < MAX_SPLIT_AT_ONCE) return text.split('\n');
  const lines: string[] = [];
  for (let start = 0; start <= text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    lines.push(text.slice(start, end));
    start = end + 1;
    if (lines.length % linesPerStep === 0) yield;
  }
  return lines;
}

/** UTF-16 units of the longest text that is split at once. */
const MAX_SPLIT_AT_ONCE = 50_000;

/** Reads a text into hashes and numbers. They are small, so that they can be kept while the text is not. */
export function* readLines(text: string): Steps<TextLines> {
  if (text.length > MAX_COMPARED) {
    const ends = hashOf(text, 0, HASHED_ENDS) ^ hashOf(text, text.length - HASHED_ENDS, text.length);
    const hash = (ends ^ text.length) >>> 0 || 1;
    return { hashes: Uint32Array.of(hash), numbers: Int32Array.of(-1), isLaidOut: true, isOneLine: true };
  }
  const hashes: number[] = [];
  const numbers: number[] = [];
  for (let start = 0; start <= text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    const behind = behindNumber(text, start, end);
    numbers.push(behind < 0 ? -1 : numberBefore(text, start, behind));
    // The sign between number and line is part of the line.
    hashes.push(isApart(text, start, end) ? 0 : hashOf(text, behind < 0 ? start : behind - 1, end));
    start = end + 1;
    if (hashes.length % linesPerStep === 0) yield;
  }
  yield;
  return {
    hashes: Uint32Array.from(hashes),
    numbers: Int32Array.from(numbers),
    isLaidOut: isShrunk(text),
  };
}

/** Returns the offset after a line's number and the sign after it; -1 if there is no number. */
function behindNumber(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && text.charCodeAt(at) === SPACE) at++;
  const first = at;
  while (at < end && isDigit(text.charCodeAt(at))) at++;
  const digits = at - first;
  if (digits === 0 || digits > 7 || at === end) return -1;
  const sign = text.charCodeAt(at);
  return sign === ARROW || sign === TAB ? at + 1 : -1;
}

function numberBefore(text: string, start: number, behind: number): number {
  return Number(text.slice(start, behind - 1));
}

/** True for lines that never match: our own, and notes that clients add to results, which are repeated on purpose. */
function isApart(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start);
  if (first === BRACKET) {
    const line = text.slice(start, end);
    return isShrunk(line) || isReference(line);
  }
  return first === ANGLE && /^<\/?system/.test(text.slice(start, start + 8));
}

const SPACE = 0x20;
const TAB = 0x09;
const ARROW = 0x2192;
const BRACKET = 0x5b;
const ANGLE = 0x3c;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Hashes a line with FNV-1a; never returns 0. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0 || 1;
}

// References to earlier texts

/** A range of line numbers in a listing, both inclusive. */
export type Numbered = { readonly from: number; readonly to: number };

/** Returns a reference to numbered lines that have the same numbers in the earlier result called `label`. */
export function sameNumbered({ from, to }: Numbered, label: string): string {
  return `[lines ${from}-${to} as in ${label} above]`;
}

/** Returns a reference to `count` lines that occur in the earlier result called `label`, from the line that starts with `begins`. */
export function sameLines(count: number, begins: string, label: string): string {
  return `[${count} lines as in ${label} above, from ${JSON.stringify(begins)} on]`;
}

/** Returns a reference to all of the earlier result called `label`. */
export function sameText(label: string): string {
  return `[all of it as in ${label} above]`;
}

const reference = /^\[(?:lines \d+-\d+|\d+ lines|all of it) as in .* above[\],]/;

/** True for a line that refers to an earlier result. */
export function isReference(line: string): boolean {
  return reference.test(line);
}
