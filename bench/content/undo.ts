/**
 * Takes a lossless shrink back: what proves that nothing was lost, on random texts in the tests and on recorded ones in the benchmark.
 * Written from the description of each format, not from the code that writes it.
 */

/** `cat -n` without the padding before the numbers, whether all numbers are shown or every fifth. */
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

/** True where the next number below says that this line is one of the lines between. */
function leadsTo(lines: readonly string[], at: number, number: number): boolean {
  for (let ahead = 1; ahead < 5; ahead++) {
    const own = /^ *(\d{1,7})[→\t]/.exec(lines[at + ahead] ?? '');
    if (own) return Number(own[1]) === number + 1 + ahead;
  }
  return false;
}

/** One spelling for all paddings. */
export function withoutPadding(listing: string): string {
  return listing.replace(/^ +(?=\d{1,7}[→\t])/gm, '');
}

export type Found =
  | { readonly path: string; readonly number: string; readonly mark: string; readonly text: string }
  | { readonly other: string };

/** What grep said, line by line, with the folder that relative paths are in. */
export function undoSearch(shrunk: string): {
  readonly base: string | undefined;
  readonly found: readonly Found[];
} {
  const [first = '', ...lines] = shrunk.split('\n');
  const head = /^\[grouped by file(?:, some named relative to (.*))?\]$/.exec(first);
  if (!head) throw new Error(`not grouped by file: ${first}`);
  const found: Found[] = [];
  let path: string | undefined;
  for (const [at, line] of lines.entries()) {
    const own = /^(\d+)([:-])/.exec(line);
    if (own && path !== undefined)
      found.push({ path, number: own[1]!, mark: own[2]!, text: line.slice(own[0].length) });
    else if (line !== '--' && /^\d+[:-]/.test(lines[at + 1] ?? '')) path = line;
    else found.push({ other: line });
  }
  return { base: head[1], found };
}

/** The lines as grep printed them: each is one of the spellings given. */
export function spellings(found: Found, base: string | undefined): readonly string[] {
  if ('other' in found) return [found.other];
  const { path, number, mark, text } = found;
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
