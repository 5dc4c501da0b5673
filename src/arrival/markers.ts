/**
 * The lines we add to a text. They are plain words in brackets, for a model to read; and they tell us that a text was shrunk before, so
 * that it is never shrunk twice. A tool that prints such a line itself only keeps its own output from being shrunk.
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

/** True for a text that holds one of our lines. */
export function isShrunk(text: string): boolean {
  return ours.test(text);
}

/** Lines of a listing, by the numbers before them. */
export type Numbered = { readonly from: number; readonly to: number };

/** Stands in place of numbered lines that stand under the same numbers in the earlier result `label` names. */
export function sameNumbered({ from, to }: Numbered, label: string): string {
  return `[lines ${from}-${to} as in ${label} above]`;
}

/** Stands in place of so many lines that stand in the earlier result `label` names, from the line on that begins so. */
export function sameLines(count: number, begins: string, label: string): string {
  return `[${count} lines as in ${label} above, from ${JSON.stringify(begins)} on]`;
}

/** Stands in place of all of a result. */
export function sameText(label: string): string {
  return `[all of it as in ${label} above]`;
}

const reference = /^\[(?:lines \d+-\d+|\d+ lines|all of it) as in .* above[\],]/;

/** True for a line that says where other lines stand. */
export function isReference(line: string): boolean {
  return reference.test(line);
}

/** True for a line of ours. */
export function isOurs(line: string): boolean {
  return ours.test(line) || reference.test(line);
}

const SMALLEST = 4;

/** `kept` and, of `length` places, all that lie in gaps too small to tell of. */
export function withoutSmallGaps(kept: ReadonlySet<number>, length: number): ReadonlySet<number> {
  const all = new Set(kept);
  let last = -1;
  for (let at = 0; at <= length; at++) {
    if (at < length && !kept.has(at)) continue;
    if (at - last - 1 < SMALLEST) for (let gone = last + 1; gone < at; gone++) all.add(gone);
    last = at;
  }
  return all;
}
