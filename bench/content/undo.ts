/**
 * Undoes lossless shrinks, to prove that nothing was lost: on random texts in the tests, on recorded texts in the benchmark. The code
 * follows the description of each format, not the code that writes it.
 */

/** Returns the listing with all its line numbers, without padding. The shrunk text may show every number or every fifth. */
export function undoNumberedLines(shrunk: string): string {
  const lines = shrunk.split('\n');
  if (lines[0] !== '[every fifth line is numbered]') return shrunk;
  const out: string[] = [];
  let number: number | undefined;
  let mark = '';
  const body = lines.slice(1);
  for (const [at, line] of body.entries()) {
    const own = /^ *(\d{1,7})(→|\t)/.exec(line);
    if (own) {
      number = Number(own[1]);
      mark = own[2]!;
      out.push(line.slice(own[0].indexOf(own[1]!)));
    } else if (number !== undefined && leadsTo(body, at, number)) out.push(`${++number}${mark}${line}`);
    else {
      number = undefined;
      out.push(line);
    }
  }
  return out.join('\n');
}

/** True if the next numbered line shows that this line continues the count. */
function leadsTo(lines: readonly string[], at: number, number: number): boolean {
  for (let ahead = 1; ahead < 5; ahead++) {
    const own = /^ *(\d{1,7})[→\t]/.exec(lines[at + ahead] ?? '');
    if (own) return Number(own[1]) === number + 1 + ahead;
  }
  return false;
}

/** Removes the padding before line numbers. */
export function withoutPadding(listing: string): string {
  return listing.replace(/^ +(?=\d{1,7}[→\t])/gm, '');
}

export type SearchRow =
  | { readonly path: string; readonly number: string; readonly mark: string; readonly text: string }
  | { readonly other: string };

/** Returns grep's output line by line, and the folder of relative paths. */
export function undoSearch(shrunk: string): {
  readonly base: string | undefined;
  readonly rows: readonly SearchRow[];
} {
  const [first = '', ...lines] = shrunk.split('\n');
  const head = /^\[grouped by file(?:, some named relative to (.*))?\]$/.exec(first);
  if (!head) throw new Error(`Expected results grouped by file, found: ${first}`);
  const rows: SearchRow[] = [];
  let path: string | undefined;
  for (const [at, line] of lines.entries()) {
    const own = /^(\d+)([:-])/.exec(line);
    if (own && path !== undefined)
      rows.push({ path, number: own[1]!, mark: own[2]!, text: line.slice(own[0].length) });
    else if (line !== '--' && /^\d+[:-]/.test(lines[at + 1] ?? '')) path = line;
    else rows.push({ other: line });
  }
  return { base: head[1], rows };
}

/** Returns the forms in which grep may have printed this row: with the full path, or relative to `base`. */
export function spellings(row: SearchRow, base: string | undefined): readonly string[] {
  if ('other' in row) return [row.other];
  const { path, number, mark, text } = row;
  const line = `${path}${mark}${number}${mark}${text}`;
  return base !== undefined && line.startsWith(base) ? [line, line.slice(base.length)] : [line];
}

export function undoLines(shrunk: string): string {
  const lines = shrunk.split('\n');
  const out: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const times = /^\[next line (\d+) times\]$/.exec(line);
    const block = /^\[next (\d+) lines begin: ([^]*)\]$/.exec(line);
    if (times) {
      at++;
      for (let count = 0; count < Number(times[1]); count++) out.push(lines[at]!);
    } else if (block) {
      const end = /^\[and end: ([^]*)\]$/.exec(lines[at + 1] ?? '');
      if (end) at++;
      for (let count = 0; count < Number(block[1]); count++)
        out.push(`${block[2]}${lines[++at]!.slice(1)}${end?.[1] ?? ''}`);
    } else out.push(line);
  }
  return out.join('\n');
}
