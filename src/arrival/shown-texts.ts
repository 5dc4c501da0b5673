/**
 * The texts shown so far in a conversation, to find in them the lines of a new one. Every few lines that stand there are kept by their
 * hash, newest first, as compressors keep them. Texts are taken back from the end, so that a conversation that goes another way costs no
 * more than that way.
 */
import { isOurs, isShrunk } from './markers.ts';

/** `end` exclusive. */
export type LineRange = { readonly start: number; readonly end: number };

export type ShownText = {
  /** What a reference calls it. */
  readonly label: string;
  readonly lines: TextLines;
  /** Where its lines stand as they are; elsewhere there are references. */
  readonly literal: readonly LineRange[];
};

/** `order`: how many texts were shown before it. */
export type OrderedShownText = ShownText & { readonly order: number };

/** Lines that are the same in both. */
export type ShownMatch = { readonly source: OrderedShownText; readonly at: number; readonly length: number };

export interface ShownTexts {
  add(text: ShownText): void;
  /** Takes back all but the first `size`. */
  truncate(size: number): void;
  /** Texts that consist of exactly these lines, stand there whole and are the newest of their label; the newest first. */
  same(text: TextLines): Iterable<OrderedShownText>;
  /** Where the lines of a text from `at` on stand as they are, longest first; of equal ones the newest first. */
  matches(text: TextLines, at: number): readonly ShownMatch[];
  /** The texts of a label, the newest first; at most `MOST_LABELLED` of them. */
  labelled(label: string): Iterable<OrderedShownText>;
}

/** Lines that must be the same to be found. */
export const FEWEST_LINES = 5;

/** Places of one hash that are looked at. */
const MOST_PLACES = 8;

/**
 * Equal texts, and texts of one label, that are looked at: the newest ones. No ordinary conversation shows so many; a hostile one would
 * otherwise compare each text with all others.
 */
const MOST_SAME = 64;
const MOST_LABELLED = 64;

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
  /** How many places there were before each text. */
  const starts: number[] = [];
  const newest = new Map<number, number>();

  function* placesOf(key: number): Generator<HashedPlace> {
    let at = newest.get(key) ?? -1;
    for (let looked = 0; at >= 0 && looked < MOST_PLACES; looked++) {
      const place = places[at]!;
      yield place;
      at = place.before;
    }
  }

  return {
    add(text) {
      const shown = { ...text, order: texts.length };
      starts.push(places.length);
      for (const { start, end } of shown.lines.isLaidOut ? [] : shown.literal) {
        for (let line = start; line + FEWEST_LINES <= end; line++) {
          const key = keyAt(shown.lines.hashes, line);
          if (key === 0) continue;
          places.push({ text: texts.length, line, key, before: newest.get(key) ?? -1 });
          newest.set(key, places.length - 1);
        }
      }
      texts.push(shown);
      listed(labels, shown.label).push(shown);
      if (standsWhole(shown)) listed(wholes, wholeKey(shown.lines)).push(shown);
    },
    truncate(size) {
      while (texts.length > size) {
        const shown = texts.pop()!;
        labels.get(shown.label)!.pop();
        if (standsWhole(shown)) wholes.get(wholeKey(shown.lines))!.pop();
        const start = starts.pop()!;
        while (places.length > start) {
          const { key, before } = places.pop()!;
          if (before < 0) newest.delete(key);
          else newest.set(key, before);
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
        if (length >= FEWEST_LINES) found.push({ source, at: place.line, length });
      }
      return found.toSorted((one, other) => other.length - one.length);
    },
    *same(text) {
      for (const shown of newestOf(wholes.get(wholeKey(text)), MOST_SAME))
        if (labels.get(shown.label)!.at(-1) === shown && hasSameLines(shown.lines, text)) yield shown;
    },
    labelled: (label) => newestOf(labels.get(label), MOST_LABELLED),
  };
}

/** The last elements of a list, the last one first. */
function* newestOf(texts: readonly OrderedShownText[] = [], most: number): Generator<OrderedShownText> {
  const oldest = Math.max(0, texts.length - most);
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

/** Whether no reference stands in it. */
function standsWhole({ lines, literal }: ShownText): boolean {
  return literal.length === 1 && literal[0]!.end - literal[0]!.start === lines.hashes.length;
}

function hasSameLines(one: TextLines, { hashes, numbers }: TextLines): boolean {
  return (
    one.hashes.length === hashes.length &&
    hashes.every((hash, at) => hash === one.hashes[at] && numbers[at] === one.numbers[at])
  );
}

/** Of a few lines; 0 where they are not all there, or one of them is the same as no other. */
function keyAt(hashes: Uint32Array, at: number): number {
  if (at + FEWEST_LINES > hashes.length) return 0;
  let key = 0;
  for (let line = at; line < at + FEWEST_LINES; line++) {
    const hash = hashes[line]!;
    if (hash === 0) return 0;
    key = (Math.imul(key, 0x9e3779b1) + hash) | 0;
  }
  return key || 1;
}

/** How many lines are the same; either all are numbered, one after the other in both, or none is. */
function sameFrom(text: TextLines, at: number, { lines: source, literal }: ShownText, start: number): number {
  const most = stretchAt(literal, start).end - start;
  let length = 0;
  while (length < most && at + length < text.hashes.length && isSame(length)) length++;
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

/** The stretch that holds a line: the first that ends behind it. Found by halves, for a text may stand there in very many. */
function stretchAt(literal: readonly LineRange[], line: number): LineRange {
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
  /** Of what stands behind the number. 0 for a line that is never said to be the same as another. */
  readonly hashes: Uint32Array;
  /** The number before each line; -1 for a line without. */
  readonly numbers: Int32Array;
  /** True where lines of ours say what the others mean: then they mean nothing by themselves. */
  readonly isLaidOut: boolean;
};

export function readLines(text: string): TextLines {
  const hashes: number[] = [];
  const numbers: number[] = [];
  for (let start = 0; start <= text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    const behind = behindNumber(text, start, end);
    numbers.push(behind < 0 ? -1 : numberBefore(text, start, behind));
    // The sign between number and line is part of what the line says.
    hashes.push(isApart(text, start, end) ? 0 : hashOf(text, behind < 0 ? start : behind - 1, end));
    start = end + 1;
  }
  return {
    hashes: Uint32Array.from(hashes),
    numbers: Int32Array.from(numbers),
    isLaidOut: isShrunk(text),
  };
}

/** Where the line goes on behind its number and the sign after it; -1 for a line without. */
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

/** Our own lines, and what clients tell the model beside a result: that is said again on purpose. */
function isApart(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start);
  if (first === BRACKET) return isOurs(text.slice(start, end));
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

/** FNV-1a, never 0. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0 || 1;
}
