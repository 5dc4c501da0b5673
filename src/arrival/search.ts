/**
 * Shrinks the output of grep and ripgrep (`path:12:text`, context as `path-11-text`): each path is written once, above its lines, as in
 * `rg --heading`. Every line keeps its number and its text, in order. If a tool writes the same file both relative to a folder and in full,
 * the full path is written, since the next call will name that.
 */
import type { Reader } from './kind.ts';
import { groupedByFile } from './markers.ts';

type SearchRow =
  | { readonly path: string; readonly number: string; readonly mark: ':' | '-'; readonly text: string }
  | { readonly path: undefined; readonly text: string };

export const search: Reader = (text) => {
  if (!hasLineNumber(text) || !looksFound.test(text)) return undefined;
  const lines = text.split('\n');
  const found = lines.map(readFound);
  const paths = new Set(found.flatMap((row) => row?.path ?? []));
  const base = findBase(lines, paths);
  const rows = lines.map(
    (line, at): SearchRow => found[at] ?? readContext(line, paths, base) ?? { path: undefined, text: line },
  );
  const placed = rows.filter(({ path }) => path !== undefined).length;
  const others = rows.filter((row) => row.path === undefined && row.text !== '' && row.text !== separator);
  if (placed < 3 || placed < others.length * 2) return undefined;
  return {
    kind: 'search',
    drafts: () => {
      const shared = base !== undefined && isOneFolder(rows, base) ? base : undefined;
      const grouped = group(shared === undefined ? rows : rows.map((row) => inFull(row, shared)), shared);
      return grouped === undefined
        ? []
        : [{ text: grouped, isLossless: true, note: 'found lines grouped by file' }];
    },
  };
};

const separator = '--';

/** True for a text with digits between two colons, as every found line has them. It is faster than an expression. */
function hasLineNumber(text: string): boolean {
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) {
    let end = at + 1;
    while (isDigit(text.charCodeAt(end))) end++;
    if (end > at + 1 && text.charCodeAt(end) === COLON) return true;
  }
  return false;
}

const COLON = 0x3a;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Matches a found line. A path has no white space: `Started 12:30:45` is no match. */
const looksFound = /^(?:[A-Za-z]:[\\/])?[^\s:]+:\d+:/m;
const foundLine = /^((?:[A-Za-z]:[\\/])?[^\s:]+):(\d+):/;

function readFound(line: string): SearchRow | undefined {
  const match = foundLine.exec(line);
  if (!match || !isPath(match[1]!)) return undefined;
  return { path: match[1]!, number: match[2]!, mark: ':', text: line.slice(match[0].length) };
}

function isPath(path: string): boolean {
  return /[A-Za-z]/.test(path) && /[/\\]|\.\w{1,12}$|^[A-Z]\w+$/.test(path) && !/^\d+[:-]/.test(path);
}

/** Reads a line of context: its file is one with a found line, perhaps written in full. */
function readContext(
  line: string,
  paths: ReadonlySet<string>,
  base: string | undefined,
): SearchRow | undefined {
  for (const { path, number, text } of splits(line)) {
    const isInBase = base !== undefined && path.startsWith(base) && paths.has(path.slice(base.length));
    if (paths.has(path) || isInBase) return { path, number, mark: '-', text };
  }
  return undefined;
}

/** Yields the ways to read `a-1-b-2-c`: line 1 of `a`, or line 2 of `a-1-b`. Paths are short, so there are few. */
function* splits(line: string): Generator<{ path: string; number: string; text: string }> {
  const edges = /-(\d+)-/g;
  const head = line.slice(0, 600);
  for (let tries = 0; tries < 8; tries++) {
    const match = edges.exec(head);
    if (!match) return;
    const text = line.slice(match.index + match[0].length);
    yield { path: head.slice(0, match.index), number: match[1]!, text };
    // The dash after one number may be the dash before the next.
    edges.lastIndex--;
  }
}

/** Finds the folder that precedes a relative path in lines of context, among the first candidates. */
function findBase(lines: readonly string[], paths: ReadonlySet<string>): string | undefined {
  let tries = 100;
  for (const line of lines) {
    if (!line.startsWith('/')) continue;
    for (const { path } of splits(line)) {
      if (paths.has(path)) continue;
      for (let slash = 0; slash >= 0; slash = path.indexOf('/', slash + 1))
        if (paths.has(path.slice(slash + 1))) return path.slice(0, slash + 1);
    }
    if (--tries === 0) return undefined;
  }
  return undefined;
}

/** True if a full path below `base` and a relative path surely name the same file: at each change of spelling, the line numbers continue. */
function isOneFolder(rows: readonly SearchRow[], base: string): boolean {
  return rows.every((row, at) => {
    const before = rows[at - 1];
    if (row.path === undefined || before?.path === undefined || row.path === before.path) return true;
    const isSame = inFull(row, base).path === inFull(before, base).path;
    return !isSame || Number(row.number) === Number(before.number) + 1;
  });
}

function inFull(row: SearchRow, base: string): SearchRow {
  if (row.path === undefined || isAbsolute.test(row.path)) return row;
  return { ...row, path: base + row.path };
}

const isAbsolute = /^(?:\/|[A-Za-z]:[\\/])/;

/** Writes the lines; undefined if another line could be mistaken for a found line or context. */
function group(rows: readonly SearchRow[], base: string | undefined): string | undefined {
  const out = [groupedByFile(base)];
  let current: string | undefined;
  for (const row of rows) {
    if (row.path === undefined) {
      if (/^\d+[:-]/.test(row.text)) return undefined;
      if (row.text !== separator) current = undefined;
      out.push(row.text);
      continue;
    }
    if (/^\d+[:-]/.test(row.path) || row.path === separator) return undefined;
    if (row.path !== current) out.push(row.path);
    current = row.path;
    out.push(`${row.number}${row.mark}${row.text}`);
  }
  return out.join('\n');
}
