/**
 * Listings, logs and test runs, without loss: where lines that follow each other begin alike, the common beginning (and end) is written
 * once above them; a line that repeats is written once with how often. Lines keep their order. Beginnings are cut behind a space or another
 * sign, never inside a word, a number or a path: those are what the next call will name. Only of long listings, and where something may
 * be lost, are folders cut off.
 */
import type { Claim, Draft } from './content.ts';
import { mayLose } from './guards.ts';
import { digestLog } from './log-digest.ts';
import { andEnd, nextLinesBegin, nextLineTimes } from './markers.ts';

/** UTF-16 units a marker must save beyond its own length. */
const LEAST_GAIN = 30;
/** Of listings that long folders are cut off, UTF-16 units. */
const LONG = 8_000;
const SHORTEST_BEGINNING = 8;
const SHORTEST_ENDING = 6;
const FEWEST_LINES = 3;

export function sharedLines(text: string): Claim {
  return {
    kind: 'lines',
    drafts({ lossless }) {
      const lines = text.split('\n');
      const drafts: Draft[] = [];
      const out = write(lines, signs);
      if (out !== undefined)
        drafts.push({ text: out, isLossless: true, note: 'what lines have in common written once' });
      if (lossless || !mayLose(text)) return drafts;
      const byFolder = text.length < LONG ? undefined : write(lines, signsAndSlashes);
      if (byFolder !== undefined)
        drafts.push({ text: byFolder, isLossless: false, note: 'folders of paths written once' });
      const digest = digestLog(text);
      if (digest)
        drafts.push({
          text: digest.text,
          isLossless: false,
          note: `${digest.lines} lines like others left out`,
        });
      return drafts;
    },
  };
}

/** One line and how often it stands there in a row. */
type Item = { readonly line: string; readonly times: number };
/** Items that begin alike; `end` exclusive. */
type Block = { readonly start: number; readonly end: number; readonly beginning: number };

function write(lines: readonly string[], cutBehind: ReadonlySet<string>): string | undefined {
  const items = countRepeats(lines);
  const blocks = findBlocks(
    items.map(({ line, times }) => (times > 1 ? undefined : line)),
    cutBehind,
  );
  if (blocks.length === 0 && items.length === lines.length) return undefined;
  const out: string[] = [];
  let next = 0;
  const single = (end: number): void => {
    for (; next < end; next++) {
      const { line, times } = items[next]!;
      if (times > 1) out.push(nextLineTimes(times));
      out.push(line);
    }
  };
  for (const { start, end, beginning } of blocks) {
    single(start);
    out.push(nextLinesBegin(end - start, items[start]!.line.slice(0, beginning)));
    const rests = items.slice(start, end).map(({ line }) => line.slice(beginning));
    const ending = commonEnding(rests, cutBehind);
    if (ending !== '') out.push(andEnd(ending));
    for (const rest of rests) out.push(` ${rest.slice(0, rest.length - ending.length)}`);
    next = end;
  }
  single(items.length);
  return out.join('\n');
}

function countRepeats(lines: readonly string[]): readonly Item[] {
  const items: Item[] = [];
  for (let start = 0, end = 0; start < lines.length; start = end) {
    const line = lines[start]!;
    while (end < lines.length && lines[end] === line) end++;
    const saved = (line.length + 1) * (end - start - 1);
    if (saved > LEAST_GAIN + nextLineTimes(end - start).length) items.push({ line, times: end - start });
    else for (let at = start; at < end; at++) items.push({ line, times: 1 });
  }
  return items;
}

/**
 * The blocks that save most. Stretches of lines with a common beginning lie in one another, the longer the beginning the fewer the lines;
 * from the inside out, each is taken whole where that saves more than the best of what lies in it. An undefined line is in no block.
 */
function findBlocks(
  lines: readonly (string | undefined)[],
  cutBehind: ReadonlySet<string>,
): readonly Block[] {
  type Stretch = { readonly height: number; readonly start: number; gain: number; blocks: Block[] };
  const open: Stretch[] = [{ height: 0, start: 0, gain: 0, blocks: [] }];
  for (let at = 0; at < lines.length; at++) {
    const height = commonLength(lines[at], lines[at + 1]);
    let start = at;
    let inside: Pick<Stretch, 'gain' | 'blocks'> = { gain: 0, blocks: [] };
    while (open.at(-1)!.height > height) {
      const stretch = open.pop()!;
      start = stretch.start;
      inside = best(stretch, lines[start]!, at + 1, cutBehind);
      const around = open.at(-1)!;
      if (around.height < height) break;
      around.gain += inside.gain;
      for (const block of inside.blocks) around.blocks.push(block);
      inside = { gain: 0, blocks: [] };
    }
    if (open.at(-1)!.height < height) open.push({ height, start, ...inside });
  }
  return open[0]!.blocks;
}

function best(
  { height, start, gain, blocks }: { height: number; start: number; gain: number; blocks: Block[] },
  line: string,
  end: number,
  cutBehind: ReadonlySet<string>,
): { gain: number; blocks: Block[] } {
  const beginning = cutBehindSign(line, height, cutBehind);
  const own = (end - start - 1) * beginning - nextLinesBegin(end - start, '').length;
  const isBetter =
    end - start >= FEWEST_LINES && own >= LEAST_GAIN && own >= gain && isTelling(line.slice(0, beginning));
  return isBetter ? { gain: own, blocks: [{ start, end, beginning }] } : { gain, blocks };
}

/** Indentation alone says nothing, and cutting it off would hide it. */
function isTelling(beginning: string): boolean {
  return beginning.trim().length >= SHORTEST_BEGINNING;
}

function commonLength(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return 0;
  const most = Math.min(one.length, other.length);
  let length = 0;
  while (length < most && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

const signs = new Set(' \t=,;|([{<"\'');
const signsAndSlashes = new Set([...signs, '/', '\\', ':']);

function cutBehindSign(line: string, length: number, cutBehind: ReadonlySet<string>): number {
  let cut = length;
  while (cut > 0 && !cutBehind.has(line[cut - 1]!)) cut--;
  return cut;
}

/** What all of them end with, from a sign on; empty where that would save nothing. */
function commonEnding(rests: readonly string[], cutBehind: ReadonlySet<string>): string {
  const first = rests[0]!;
  let length = first.length;
  for (const rest of rests) {
    let same = 0;
    while (same < length && same < rest.length && rest.at(-1 - same) === first.at(-1 - same)) same++;
    length = same;
  }
  let start = first.length - length;
  while (start < first.length && !cutBehind.has(first[start]!)) start++;
  const ending = first.slice(start);
  return ending.length >= SHORTEST_ENDING && ending.length * rests.length > LEAST_GAIN + andEnd(ending).length
    ? ending
    : '';
}
