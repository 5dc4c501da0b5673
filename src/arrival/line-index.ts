/**
 * Finds the first line of a text with a beginning or a number, and hashes the lines of a part. The first few lookups read through the text; after that
 * an index is built, so that very many lookups in a very long text cost n log n. Pure; remembered by text and by part.
 */
import { openNotes } from '../caches.ts';
import type { Message, Part } from '../conversation/conversation.ts';
import { parseRecord } from '../conversation/json-scan.ts';
import { inputOf, textInSteps, textsDeepIn, textsOf } from '../conversation/messages.ts';
import type { Steps } from '../conversation/steps.ts';
import { maxBeginning } from './markers.ts';

/** Number of lookups that read through the text. Building an index costs about as much. */
const lookupsWithoutIndex = 16;

/** An index of a text, and the number of lookups so far. */
type IndexUse<Index> = { times: number; index: Index | undefined };

const beginnings = new WeakMap<readonly string[], IndexUse<Beginnings>>();
const numbered = new WeakMap<Int32Array, IndexUse<ReadonlyMap<number, number>>>();

/** Returns the index of the first line with this beginning; -1 if there is none. */
export function firstBeginning(lines: readonly string[], begins: string): number {
  const asked = askedOf(beginnings, lines);
  if (++asked.times <= lookupsWithoutIndex) return lines.findIndex((line) => line.startsWith(begins));
  asked.index ??= indexBeginnings(lines);
  return asked.index.first(begins);
}

/** Returns the index of the first line with this number; -1 if there is none. */
export function firstNumbered(numbers: Int32Array, number: number): number {
  const asked = askedOf(numbered, numbers);
  if (++asked.times <= lookupsWithoutIndex) return numbers.indexOf(number);
  // The first of several lines with the same number is set last, so it wins.
  asked.index ??= new Map([...numbers].map((each, at) => [each, at] as const).toReversed());
  return asked.index.get(number) ?? -1;
}

function askedOf<Key extends WeakKey, Index>(memo: WeakMap<Key, IndexUse<Index>>, key: Key): IndexUse<Index> {
  const asked = memo.get(key) ?? { times: 0, index: undefined };
  memo.set(key, asked);
  return asked;
}

type Beginnings = { first(begins: string): number };

/** Sorts lines by text, so that lines with the same beginning are adjacent; the first of them has the smallest index. */
function indexBeginnings(lines: readonly string[]): Beginnings {
  const heads = lines.map((line) => line.slice(0, maxBeginning));
  const order = Int32Array.from(heads.keys()).sort((one, other) =>
    heads[one]! < heads[other]! ? -1 : heads[one]! > heads[other]! ? 1 : one - other,
  );
  const minIn = minOf(order);
  /** Returns the number of lines before the first one for which `holds` is true; it is true for all lines after that. */
  const before = (holds: (head: string) => boolean): number => {
    let first = 0;
    let last = order.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (holds(heads[order[middle]!]!)) last = middle;
      else first = middle + 1;
    }
    return first;
  };
  return {
    first(begins) {
      const start = before((head) => head >= begins);
      const end = before((head) => head > begins && !head.startsWith(begins));
      return start < end ? minIn(start, end) : -1;
    },
  };
}

/** Creates a range-minimum function (end exclusive) with a table of the minimum of 1, 2, 4, 8, ... neighbors. */
function minOf(numbers: Int32Array): (start: number, end: number) => number {
  const levels = [numbers];
  for (let width = 1; width * 2 <= numbers.length; width *= 2) {
    const below = levels.at(-1)!;
    levels.push(below.map((number, at) => Math.min(number, below[at + width] ?? number)));
  }
  return (start, end) => {
    const level = 31 - Math.clz32(end - start);
    return Math.min(levels[level]![start]!, levels[level]![end - 2 ** level]!);
  };
}

// Hashes of lines, by which a result that was fetched again is recognized

/** UTF-16 units of the shortest line that tells something, without its number and the space around it. */
const minTelling = 8;

/** The number of lines that are hashed between two pauses, and that are hashed at all of one text. */
const linesPerStep = 2_048;
const maxHashed = 100_000;

/** Hashes by part: bodies with the same bytes share the part. */
const hashesOfParts = openNotes<Part, Uint32Array>('part');

/** Returns the hashes of the distinct lines of a part that tell something. Reasoning has none. */
export function* lineHashes(body: Uint8Array, message: Message, part: Part): Steps<Uint32Array> {
  const known = hashesOfParts.get(part);
  if (known) return known;
  const hashes = new Set<number>();
  const sent = part.type === 'tool-call' ? parseRecord(inputOf(body, message, part)) : undefined;
  for (const text of textsDeepIn(sent, 4)) yield* hashLines(text, hashes);
  for (const span of part.type === 'reasoning' ? [] : textsOf(part))
    yield* hashLines(yield* textInSteps(body, message, span), hashes);
  const made = Uint32Array.from(hashes);
  hashesOfParts.set(part, made);
  return made;
}

/** Adds the hashes of the telling lines of a text, without numbers in front and without the space around them. */
function* hashLines(text: string, into: Set<number>): Steps<void> {
  let lines = 0;
  for (let start = 0; start < text.length && lines < maxHashed; ) {
    const newline = text.indexOf('\n', start);
    let end = newline < 0 ? text.length : newline;
    let from = behindNumber(text, start, end);
    while (from < end && isSpace(text.charCodeAt(from))) from++;
    while (from < end && isSpace(text.charCodeAt(end - 1))) end--;
    if (end - from >= minTelling) into.add(hashOf(text, from, end));
    start = newline < 0 ? text.length : newline + 1;
    if (++lines % linesPerStep === 0) yield;
  }
}

/** Returns the offset after the number of a line of a listing (`12→`, `12:`, a tab); the start of a line without a number. */
function behindNumber(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && isSpace(text.charCodeAt(at))) at++;
  const first = at;
  while (at < end && at < first + 8 && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  return at > first && at < end && '→\t:-|'.includes(text[at]!) ? at + 1 : start;
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 13;
}

/** Hashes a line with FNV-1a. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
