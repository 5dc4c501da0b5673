/**
 * Indexes the texts shown so far in a conversation, to find the lines of a new text in them. Each group of five successive lines is indexed
 * by its hash, newest first, as compressors do. Texts can be removed from the end, so a branch of a conversation costs only the work of the
 * branch.
 */
import { isReference, isShrunk } from './markers.ts';
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
  /** False if neither the whole text nor any group of its lines occurs in an earlier text. This is a cheap test: most texts repeat nothing. */
  mayRepeat(text: TextLines): boolean;
  /** Yields texts of exactly these lines that were shown completely and are the newest with their label, newest first. */
  same(text: TextLines): Iterable<OrderedShownText>;
  /** Finds the lines of a text from line `at` on in earlier texts, longest match first, then newest first. */
  matches(text: TextLines, at: number): readonly ShownMatch[];
  /** Yields the texts with a label, newest first; at most `maxLabeled`. */
  labeled(label: string): Iterable<OrderedShownText>;
  /** Returns the bytes of the index, without the texts. */
  bytes(): number;
}

/** Minimum number of equal lines for a match. */
export const MIN_LINES = 5;

/** Maximum number of places with one hash that are compared. */
const maxPlaces = 8;

/**
 * Maximum number of equal texts, and of texts with one label, that are compared, newest first. Ordinary conversations show fewer; without a
 * limit, a hostile one would compare each text with all others.
 */
const maxSame = 64;
const maxLabeled = 64;

export function createShownTexts(): ShownTexts {
  const texts: OrderedShownText[] = [];
  const labels = new Map<string, OrderedShownText[]>();
  const wholes = new Map<number, OrderedShownText[]>();
  const groups = createGroups();
  /** The number of groups before each text. */
  const starts: number[] = [];

  return {
    *add(text) {
      const shown = { ...text, order: texts.length };
      starts.push(groups.size());
      const { keys, isLaidOut } = shown.lines;
      for (const { start, end } of isLaidOut ? [] : shown.literal) {
        for (let line = start; line + MIN_LINES <= end; line++) {
          const key = keys[line]!;
          if (key === 0) continue;
          groups.add(key, texts.length, line);
          if (groups.size() % linesPerStep === 0) yield;
        }
      }
      texts.push(shown);
      listed(labels, shown.label).push(shown);
      if (isShownCompletely(shown)) listed(wholes, shown.lines.wholeKey).push(shown);
    },
    *truncate(size) {
      while (texts.length > size) {
        const shown = texts.pop()!;
        labels.get(shown.label)!.pop();
        if (isShownCompletely(shown)) wholes.get(shown.lines.wholeKey)!.pop();
        const start = starts.pop()!;
        while (groups.size() > start) {
          groups.removeNewest();
          if (groups.size() % linesPerStep === 0) yield;
        }
      }
      groups.trim();
    },
    mayRepeat({ keys, wholeKey, isLaidOut }) {
      const same = wholes.get(wholeKey);
      if (same !== undefined && same.length > 0) return true;
      return !isLaidOut && keys.some((key) => key !== 0 && groups.newest(key) >= 0);
    },
    matches(text, at) {
      const key = text.keys[at]!;
      if (key === 0) return [];
      const found: ShownMatch[] = [];
      let place = groups.newest(key);
      for (let looked = 0; place >= 0 && looked < maxPlaces; looked++) {
        const source = texts[groups.textOf(place)]!;
        const line = groups.lineOf(place);
        const length = sameFrom(text, at, source, line);
        if (length >= MIN_LINES) found.push({ source, at: line, length });
        place = groups.before(place);
      }
      return found.length < 2 ? found : found.toSorted((one, other) => other.length - one.length);
    },
    *same(text) {
      for (const shown of newestOf(wholes.get(text.wholeKey), maxSame))
        if (labels.get(shown.label)!.at(-1) === shown && hasSameLines(shown.lines, text)) yield shown;
    },
    labeled: (label) => newestOf(labels.get(label), maxLabeled),
    bytes: () => groups.bytes(),
  };
}

/** Groups of successive lines in the order in which they were added, each with its key, its text and its first line. */
type Groups = {
  size(): number;
  add(key: number, text: number, line: number): void;
  removeNewest(): void;
  /** Gives back memory if most of it is not used: a fold removes most texts, and the index stays in memory. */
  trim(): void;
  bytes(): number;
  /** Returns the place of the newest group with a key; -1 if there is none. */
  newest(key: number): number;
  /** Returns the place of the next older group with the same key; -1 if there is none. */
  before(place: number): number;
  textOf(place: number): number;
  lineOf(place: number): number;
};

/** Numbers of a group in memory: its key, its text, its first line, and the place of the next older group with the key. */
const numbersPerPlace = 4;
const [KEY, TEXT, LINE, BEFORE] = [0, 1, 2, 3] as const;
/** Slots of the hash table for each group that there is room for: half of them stay empty, and it is made again after as many removals. */
const slotsPerPlace = 4;

/** Keeps groups in arrays of numbers: a map with an object for each line took five times as long, most of it in the garbage collector. */
function createGroups(): Groups {
  let room = minRoom;
  let size = 0;
  let numbers = new Int32Array(room * numbersPerPlace);
  /** A hash table of keys: for each, the place of its newest group plus 1, and the key. A key whose groups were all removed stays, as `GONE`. */
  let slots = new Int32Array(room * slotsPerPlace * 2);
  let usedSlots = 0;

  function slotOf(key: number): number {
    const mask = slots.length - 2;
    let slot = (Math.imul(key ^ (key >>> 15), 0x2c1b3c6d) >>> 7) & mask;
    while (slots[slot] !== 0 && slots[slot + 1] !== key) slot = (slot + 2) & mask;
    return slot;
  }
  function link(key: number, place: number): void {
    const slot = slotOf(key);
    if (slots[slot] === 0) usedSlots++;
    slots[slot] = place + 1;
    slots[slot + 1] = key;
  }
  /** Moves the groups to arrays with room for so many, and forgets the keys that are gone. */
  function moveTo(newRoom: number): void {
    room = newRoom;
    const moved = new Int32Array(room * numbersPerPlace);
    moved.set(numbers.subarray(0, size * numbersPerPlace));
    numbers = moved;
    slots = new Int32Array(room * slotsPerPlace * 2);
    usedSlots = 0;
    for (let place = 0; place < size; place++) link(numbers[place * numbersPerPlace + KEY]!, place);
  }
  function newest(key: number): number {
    return Math.max(slots[slotOf(key)]!, 0) - 1;
  }
  return {
    size: () => size,
    newest,
    add(key, text, line) {
      if (size === room || usedSlots >= 2 * room) moveTo(size === room ? 2 * room : room);
      const at = size * numbersPerPlace;
      numbers[at + KEY] = key;
      numbers[at + TEXT] = text;
      numbers[at + LINE] = line;
      numbers[at + BEFORE] = newest(key);
      link(key, size++);
    },
    removeNewest() {
      const at = --size * numbersPerPlace;
      const before = numbers[at + BEFORE]!;
      slots[slotOf(numbers[at + KEY]!)] = before < 0 ? GONE : before + 1;
    },
    trim() {
      let enough = room;
      while (enough > minRoom && size * 4 < enough) enough /= 2;
      if (enough < room) moveTo(enough);
    },
    bytes: () => numbers.byteLength + slots.byteLength,
    before: (place) => numbers[place * numbersPerPlace + BEFORE]!,
    textOf: (place) => numbers[place * numbersPerPlace + TEXT]!,
    lineOf: (place) => numbers[place * numbersPerPlace + LINE]!,
  };
}

const GONE = -1;
const minRoom = 256;

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

function wholeKeyOf(hashes: Uint32Array): number {
  let key = hashes.length;
  for (let at = 0; at < hashes.length; at++) key = (Math.imul(key, 0x9e3779b1) + hashes[at]!) | 0;
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

/** Hashes a group of lines; 0 if one of them never matches. */
function keyAt(hashes: Uint32Array, at: number): number {
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
  /** Hashes of the group that begins with each line; 0 if there are too few lines, or if one of them never matches. */
  readonly keys: Int32Array;
  /** A hash of all lines. */
  readonly wholeKey: number;
  /** True if the text contains our markers: then its lines mean nothing without them. */
  readonly isLaidOut: boolean;
};

/** UTF-16 units of the longest text that is compared line by line. Longer ones fit few models. */
export const MAX_COMPARED = 1_000_000;

/** UTF-16 units at each end of a longer text that its hash covers. Texts with equal hashes are then compared. */
const hashedEnds = 10_000;

/** The number of lines that are processed between two pauses. */
export const linesPerStep = 2_048;

/** Splits a text into the lines that it is compared by. */
export function* splitLines(text: string): Steps<readonly string[]> {
  if (text.length > MAX_COMPARED) return [text];
  if (text.length < maxSplitAtOnce) return text.split('\n');
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
const maxSplitAtOnce = 50_000;

/** Reads a text into hashes and numbers. They are small, so that they can be kept while the text is not. */
export function* readLines(text: string): Steps<TextLines> {
  if (text.length > MAX_COMPARED) {
    const ends = hashOf(text, 0, hashedEnds) ^ hashOf(text, text.length - hashedEnds, text.length);
    const hash = (ends ^ text.length) >>> 0 || 1;
    return { ...linesOf(Uint32Array.of(hash), Int32Array.of(-1)), isLaidOut: true, isOneLine: true };
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
  return { ...linesOf(new Uint32Array(hashes), new Int32Array(numbers)), isLaidOut: isShrunk(text) };
}

function linesOf(hashes: Uint32Array, numbers: Int32Array): Omit<TextLines, 'isLaidOut'> {
  const keys = new Int32Array(hashes.length);
  for (let at = 0; at + MIN_LINES <= hashes.length; at++) keys[at] = keyAt(hashes, at);
  return { hashes, numbers, keys, wholeKey: wholeKeyOf(hashes) };
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
