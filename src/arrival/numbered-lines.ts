/**
 * Shrinks file listings with a number before each line, as `cat -n` and agents' file readers print them: more than half of what coding
 * agents read. The padding before the numbers is removed; numbers and lines stay. Optionally only every fifth number stays. Text around the
 * listing (a sentence before it, a reminder after it) is not changed. Also finds the lines of a listing that its call wrote.
 */
import { type ShrinkDraft, type Reader, type ShrinkOptions, atLineStart } from './kind.ts';
import { parseRecord } from '../conversation/json-scan.ts';
import type { Steps } from '../conversation/steps.ts';
import { firstBeginning } from './line-index.ts';
import {
  asWritten,
  charactersOf,
  fifthLineNumbered,
  MIN_GAIN,
  MIN_QUOTE,
  quoteOf,
  type ReplacedLines,
} from './markers.ts';

type NumberedLine = {
  readonly whole: string;
  /** Undefined for a line without a number before it. */
  readonly number: number | undefined;
  /** The sign between the number and the line. */
  readonly mark: string;
  /** The line with its number, without padding. */
  readonly unpadded: string;
  readonly content: string;
};

/** Minimum number of successive lines with successive numbers that make a listing. */
const minLines = 4;

const numberedEvery = 5;

export const numberedLines: Reader = (text) => {
  if (!looksNumbered(text)) return undefined;
  const lines = text.split('\n').map(readLine);
  let isListing = false;
  let isIndented = false;
  for (const { start, end } of runsOf(lines)) {
    if (end - start >= minLines) isListing = true;
    // A table whose first column counts up is no listing: its second column is never empty or indented.
    isIndented ||= lines.slice(start, end).some(({ whole }) => /^ |^\d+(?:→|\t(?:\s|$))/.test(whole));
  }
  if (!isListing || !isIndented) return undefined;
  return {
    kind: 'numbered-lines',
    drafts: ({ lineNumbers }: ShrinkOptions): readonly ShrinkDraft[] => {
      const unpadded = {
        text: lines.map((line) => line.unpadded).join('\n'),
        isLossless: true,
        note: 'padding of line numbers dropped',
      };
      const sparse = lineNumbers === 'every-fifth' ? everyFifth(lines) : undefined;
      return sparse === undefined
        ? [unpadded]
        : [unpadded, { text: sparse, isLossless: true, note: 'every fifth line number kept' }];
    },
  };
};

/** A cheap test: most texts have no line that begins with a number. */
const looksNumbered = atLineStart(' 0123456789', / *\d+(?:→|\t)/);

const numbered = /^ *(\d{1,7})(?:→|\t)/;

function readLine(whole: string): NumberedLine {
  const match = numbered.exec(whole);
  if (!match) return { whole, number: undefined, mark: '', unpadded: whole, content: whole };
  const [prefix, digits] = match;
  return {
    whole,
    number: Number(digits),
    mark: prefix.slice(-1),
    unpadded: whole.slice(prefix.length - digits!.length - 1),
    content: whole.slice(prefix.length),
  };
}

/** Returns runs of lines with successive numbers; `end` is exclusive. */
function runsOf(lines: readonly NumberedLine[]): readonly { readonly start: number; readonly end: number }[] {
  const runs: { start: number; end: number }[] = [];
  for (let start = 0; start < lines.length; ) {
    const { number, mark } = lines[start]!;
    let end = start + 1;
    if (number !== undefined) {
      while (lines[end]?.number === number + end - start && lines[end]?.mark === mark) end++;
      runs.push({ start, end });
    }
    start = end;
  }
  return runs;
}

/**
 * Keeps the first, the last and every fifth number of each run, so that a line's number follows from the numbered line above it. Undefined
 * if that would be ambiguous: if a line itself begins like a number, or if two runs are separated by as many lines as numbers are missing.
 */
function everyFifth(lines: readonly NumberedLine[]): string | undefined {
  const out = [fifthLineNumbered];
  let before: { number: number; line: number } | undefined;
  let next = 0;
  for (const { start, end } of runsOf(lines)) {
    for (; next < start; next++) out.push(lines[next]!.whole);
    const first = lines[start]!.number!;
    if (before && first - before.number === start - before.line && first - before.number <= numberedEvery)
      return undefined;
    for (; next < end; next++) {
      const { number, unpadded, content } = lines[next]!;
      const isKept =
        next === start || next === end - 1 || number! % numberedEvery === 0 || numbered.test(content);
      out.push(isKept ? unpadded : content);
    }
    before = { number: lines[end - 1]!.number!, line: end - 1 };
  }
  for (; next < lines.length; next++) out.push(lines[next]!.whole);
  return out.join('\n');
}

// Lines that a call wrote, which its result shows again with their numbers

/** Successive lines of a listing from `at` on that an argument of its call has, and the reference to them. */
type WrittenLines = ReplacedLines & { readonly characters: number };

/** The lines of an argument, and the first place of each. */
type WrittenText = {
  readonly name: string;
  readonly lines: readonly string[];
  readonly places: ReadonlyMap<string, number>;
};

/**
 * Finds the lines of a listing that an argument of its call has. A reader who looks for the first line in that argument finds exactly these. The
 * first line of the listing stays, because it shows how lines are numbered.
 */
export function* writtenLines(
  lines: readonly string[],
  numbers: Int32Array,
  argumentsJson: string,
): Steps<readonly WrittenLines[]> {
  const texts = Object.entries(parseRecord(argumentsJson) ?? {}).flatMap(([name, text]) => {
    if (typeof text !== 'string' || !text.includes('\n') || !/^\w{1,40}$/.test(name)) return [];
    const own = text.split('\n');
    return [{ name, lines: own, places: new Map(own.map((line, at) => [line, at] as const).toReversed()) }];
  });
  const found: WrittenLines[] = [];
  const first = texts.length === 0 ? -1 : numbers.findIndex((number) => number >= 0);
  if (first < 0) return found;
  const before = /^ *\d+→/.test(lines[first]!) ? /^ *\d+→/ : /^ *\d+\t/;
  const listed = lines.map((line) => line.replace(before, ''));
  for (let at = first + 1, visited = 0; at < lines.length; ) {
    if (++visited % 2_048 === 0) yield;
    let length = 0;
    let block: WrittenLines | undefined;
    for (const text of numbers[at]! < 0 ? [] : texts) {
      const from = text.places.get(listed[at]!);
      const same = from === undefined ? 0 : sameFrom(listed, numbers, at, text.lines, from);
      if (from === undefined || same < length) continue;
      length = same;
      block = referenceTo(text, from, { at, number: numbers[at]!, own: lines.slice(at, at + length) });
    }
    if (block) found.push(block);
    // Larger steps after longer rejected blocks keep a text full of them from taking long.
    at += block ? length : Math.max(1, length >> 3);
  }
  return found;
}

/** Returns the number of lines with successive numbers that are the same in both texts. */
function sameFrom(
  listed: readonly string[],
  numbers: Int32Array,
  at: number,
  written: readonly string[],
  from: number,
): number {
  let length = 0;
  while (
    numbers[at + length] === numbers[at]! + length &&
    from + length < written.length &&
    listed[at + length] === written[from + length]
  )
    length++;
  return length;
}

/** Returns the reference; undefined if it would save too little or be ambiguous. */
function referenceTo(
  { name, lines: written }: WrittenText,
  from: number,
  { at, number, own }: { readonly at: number; readonly number: number; readonly own: readonly string[] },
): WrittenLines | undefined {
  const begins = from === 0 ? undefined : quoteOf(written[from]!);
  const note = asWritten({ from: number, to: number + own.length - 1 }, name, begins);
  const characters = charactersOf(own);
  if (characters - note.length < MIN_GAIN) return undefined;
  const isClear =
    begins === undefined || (begins.trim().length >= MIN_QUOTE && firstBeginning(written, begins) === from);
  return isClear ? { at, length: own.length, note, characters } : undefined;
}
