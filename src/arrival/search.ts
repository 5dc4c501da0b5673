/**
 * What grep and ripgrep print (`path:12:text`, context as `path-11-text`), each path written once, above its lines, as `rg --heading`
 * does. Every line keeps its number and its text, in order. Where a tool writes one file both relative to a folder and in full, it is
 * written in full: that is what the next call will name.
 */
import type { Reader } from './kind.ts';
import { groupedByFile } from './markers.ts';

type SearchRow =
  | { readonly path: string; readonly number: string; readonly mark: ':' | '-'; readonly text: string }
  | { readonly path: undefined; readonly text: string };

export const search: Reader = (text) => {
  if (!looksFound.test(text)) return undefined;
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

/** No white space in a path: `Started 12:30:45` is no finding. */
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

/** A line of context: its file is one in which something was found, perhaps written in full. */
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

/** The ways to read `a-1-b-2-c`: in `a` the line 1, or in `a-1-b` the line 2. Paths are short, so there are few. */
function* splits(line: string): Generator<{ path: string; number: string; text: string }> {
  const edges = /-(\d+)-/g;
  const head = line.slice(0, 600);
  for (let tries = 0; tries < 8; tries++) {
    const match = edges.exec(head);
    if (!match) return;
    const text = line.slice(match.index + match[0].length);
    yield { path: head.slice(0, match.index), number: match[1]!, text };
    // The number's last dash may be the next number's first.
    edges.lastIndex--;
  }
}

/** The folder that stands before a relative path in a line of context, looked for in the first lines that could be one. */
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

/** True where a path below `base` and the rest of it surely name one file: each time the spelling changes, it is at the file's next line. */
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

/** Undefined where a line that is neither found nor context could be taken for one. */
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
