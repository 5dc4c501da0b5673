/**
 * Writes and recognizes markers: the lines that Leporello adds to a text. They are plain words in brackets, for a model to read. They also
 * show that a text was shrunk before, so that it is never shrunk twice; if a tool prints such a line itself, its output is not shrunk.
 * References to earlier texts are lines of this kind, too.
 */

export const FIFTH_NUMBERED = '[every fifth line is numbered]';
export const MAIN_TEXT = '[main text of the page]';

export function groupedByFile(base: string | undefined): string {
  return base === undefined ? '[grouped by file]' : `[grouped by file, some named relative to ${base}]`;
}

export const TABLES = '[JSON; tables: [rows]{columns}: row lines]';

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

const ours =
  /\[(?:every fifth line is numbered|main text of the page|grouped by file[,\]]|JSON; tables: |next \d+ lines begin: |next line \d+ times\]|and end: |\d+ [a-z0-9 ]{1,40} left out)/;

/** True for a text that contains one of our markers. */
export function isShrunk(text: string): boolean {
  return ours.test(text);
}

const SMALLEST_GAP = 4;

/** Adds to `kept` all indices below `length` in gaps too small for a marker: one to three lines are no longer than it. */
export function withoutSmallGaps(kept: ReadonlySet<number>, length: number): ReadonlySet<number> {
  const all = new Set(kept);
  let last = -1;
  for (let at = 0; at <= length; at++) {
    if (at < length && !kept.has(at)) continue;
    if (at - last - 1 < SMALLEST_GAP) for (let gone = last + 1; gone < at; gone++) all.add(gone);
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

const reference = /^\[(?:lines \d+-\d+|\d+ lines|all of it) as in .* above[\],]/;

/** True for a line that refers to an earlier result. */
export function isReference(line: string): boolean {
  return reference.test(line);
}
