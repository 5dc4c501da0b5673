/**
 * Writes and recognizes markers: the lines that Leporello adds to a text. They are plain words in brackets, for a model to read. They also
 * show that a text was shrunk before, so that it is never shrunk twice; if a tool prints such a line itself, its output is not shrunk.
 * References to earlier texts are lines of this kind, too.
 */

export const fifthLineNumbered = '[every fifth line is numbered]';
export const mainTextOfPage = '[main text of the page]';

export function groupedByFile(base: string | undefined): string {
  return base === undefined ? '[grouped by file]' : `[grouped by file, some named relative to ${base}]`;
}

export const jsonTables = '[JSON; tables: [rows]{columns}: row lines]';

export function nextLinesBegin(lines: number, beginning: string): string {
  return `[next ${lines} lines begin: ${beginning}]`;
}

export function andEnd(ending: string): string {
  return `[and end: ${ending}]`;
}

export function nextLineTimes(times: number): string {
  return `[next line ${times} times]`;
}

export function leftOut(count: number, what: string, detail = ''): string {
  return `[${count} ${what} left out${detail}]`;
}

const ownMarker =
  /\[(?:every fifth line is numbered|main text of the page|grouped by file[,\]]|JSON; tables: |next \d+ lines begin: |next line \d+ times\]|and end: |\d+ [a-z0-9 ]{1,40} left out)/;

/** True for a text that contains one of our markers. */
export function isShrunk(text: string): boolean {
  return ownMarker.test(text);
}

const minGap = 4;

/** Adds to `kept` all indices below `length` in gaps too small for a marker: one to three lines are no longer than it. */
export function withoutSmallGaps(kept: ReadonlySet<number>, length: number): ReadonlySet<number> {
  const all = new Set(kept);
  let last = -1;
  for (let at = 0; at <= length; at++) {
    if (at < length && !kept.has(at)) continue;
    if (at - last - 1 < minGap) for (let gone = last + 1; gone < at; gone++) all.add(gone);
    last = at;
  }
  return all;
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

/**
 * Returns a reference to lines that the call of this result wrote in `argument`, from the line that starts with `begins`; default: from its first one. Each
 * number is written, because nothing else shows it, and later calls ask for lines by their numbers.
 */
export function asWritten({ from, to }: Numbered, argument: string, begins?: string): string {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  const start = begins === undefined ? '' : `, from ${JSON.stringify(begins)} on`;
  return `[lines ${numbers.join(' ')} as in ${argument} of this call${start}]`;
}

const reference =
  /^\[(?:lines \d+(?:-\d+|(?: \d+)*)|\d+ lines|all of it) as in .* (?:above|of this call)[\],]/;

/** True for a line that refers to an earlier result, or to the call of its own. */
export function isReference(line: string): boolean {
  return reference.test(line);
}

/** UTF-16 units of the longest beginning that a reference names. */
export const maxBeginning = 60;
/** Minimum UTF-16 units that a reference must save. */
export const MIN_GAIN = 120;
/** Minimum UTF-16 units of the line by which lines without numbers are found. */
export const MIN_QUOTE = 12;

/** Returns the beginning of a line by which a reference finds it. */
export function quoteOf(line: string): string {
  return line.length > maxBeginning ? line.slice(0, maxBeginning).replace(/[\uD800-\uDBFF]$/, '') : line;
}

/** Returns the UTF-16 units of lines and of the breaks behind them. */
export function charactersOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}

/** Lines of a text from `at` on, and the reference in their place. */
export type ReplacedLines = { readonly at: number; readonly length: number; readonly note: string };

/** Replaces lines by references. `literal`: the ranges of lines that stay unchanged. */
export function replaceLines(lines: readonly string[], blocks: readonly ReplacedLines[]) {
  const out: string[] = [];
  const literal: { readonly start: number; readonly end: number }[] = [];
  let start = 0;
  const leave = (end: number) => {
    if (end > start) literal.push({ start, end });
    for (const line of lines.slice(start, end)) out.push(line);
  };
  for (const { at, length, note } of blocks) {
    leave(at);
    out.push(note);
    start = at + length;
  }
  leave(lines.length);
  return { text: out.join('\n'), literal };
}
