/**
 * Shrinks file listings with a number before each line, as `cat -n` and agents' file readers print them: more than half of what coding
 * agents read. The padding before the numbers is removed; numbers and lines stay. Optionally only every fifth number stays. Text around the
 * listing (a sentence before it, a reminder after it) is not changed.
 */
import { type ShrinkDraft, type Reader, type ShrinkOptions, atLineStart } from './kind.ts';
import { FIFTH_NUMBERED } from './markers.ts';

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
const MIN_LINES = 4;

const EVERY = 5;

export const numberedLines: Reader = (text) => {
  if (!looksNumbered(text)) return undefined;
  const lines = text.split('\n').map(readLine);
  let isListing = false;
  let isIndented = false;
  for (const { start, end } of runsOf(lines)) {
    if (end - start >= MIN_LINES) isListing = true;
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
  const out = [FIFTH_NUMBERED];
  let before: { number: number; line: number } | undefined;
  let next = 0;
  for (const { start, end } of runsOf(lines)) {
    for (; next < start; next++) out.push(lines[next]!.whole);
    const first = lines[start]!.number!;
    if (before && first - before.number === start - before.line && first - before.number <= EVERY)
      return undefined;
    for (; next < end; next++) {
      const { number, unpadded, content } = lines[next]!;
      const isKept = next === start || next === end - 1 || number! % EVERY === 0 || numbered.test(content);
      out.push(isKept ? unpadded : content);
    }
    before = { number: lines[end - 1]!.number!, line: end - 1 };
  }
  for (; next < lines.length; next++) out.push(lines[next]!.whole);
  return out.join('\n');
}
