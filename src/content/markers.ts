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
