/**
 * Listings, logs and test runs, without loss: where lines that follow each other begin alike, the common beginning (and end) is written
 * once above them; a line that repeats is written once with how often. Lines keep their order. Beginnings are cut behind a space or another
 * sign, never inside a word, a number or a path: those are what the next call will name. Only of long listings, and where something may
 * be lost, are folders cut off.
 */
import { mayLose, type RecognizedKind, type ShrinkDraft } from './kind.ts';
import { andEnd, leftOut, nextLineTimes, nextLinesBegin, withoutSmallGaps } from './markers.ts';

/** UTF-16 units a marker must save beyond its own length. */
const LEAST_GAIN = 30;
/** Of listings that long folders are cut off, UTF-16 units. */
const LONG = 8_000;
const SHORTEST_BEGINNING = 8;
const SHORTEST_ENDING = 6;
const FEWEST_LINES = 3;

export function sharedLines(text: string): RecognizedKind {
  return {
    kind: 'lines',
    drafts({ lossless }) {
      const lines = text.split('\n');
      const drafts: ShrinkDraft[] = [];
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
type CountedLine = { readonly line: string; readonly times: number };
/** Items that begin alike; `end` exclusive. */
type LineBlock = { readonly start: number; readonly end: number; readonly beginning: number };

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

function countRepeats(lines: readonly string[]): readonly CountedLine[] {
  const items: CountedLine[] = [];
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
): readonly LineBlock[] {
  type Stretch = { readonly height: number; readonly start: number; gain: number; blocks: LineBlock[] };
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
  { height, start, gain, blocks }: { height: number; start: number; gain: number; blocks: LineBlock[] },
  line: string,
  end: number,
  cutBehind: ReadonlySet<string>,
): { gain: number; blocks: LineBlock[] } {
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

/** UTF-16 units; shorter logs stay whole. */
const FLOOR = 8_000;
/** A template with fewer lines stays whole. */
const RARE = 5;
/** Of lines that report one and the same trouble, so many stay at the beginning and at the end. */
const TROUBLES = 10;
/** Templates named where lines are missing. */
const NAMED = 3;

/** A log has a time or a level in most of its lines. In a listing each line is news, however alike they look. */
const LOG_SHARE = 0.7;
const logLine =
  /\d:\d\d:\d\d|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\b|^\[?(?:trace|debug|info|warn|error)\b|\b\d{10}(?:\.\d+)?\b/;

/** Undefined where this is no log, or too little can go. */
export function digestLog(text: string): { readonly text: string; readonly lines: number } | undefined {
  if (text.length < FLOOR) return undefined;
  const lines = text.split('\n');
  if (lines.filter((line) => logLine.test(line)).length < lines.length * LOG_SHARE) return undefined;
  const templates = lines.map(templateOf);
  const kept = withoutSmallGaps(keep(lines, templates), lines.length);
  const gone = lines.length - kept.size;
  return gone < lines.length / 4 ? undefined : { text: writeDigest(lines, templates, kept), lines: gone };
}

/** Whatever a log line says of trouble. */
const trouble =
  /\b(?:error|errors|fail|fails|failed|failure|fatal|exception|critical|severe|panic|denied|refused|timeout|timed out|unreachable|crash\w*|abort\w*|warn|warning|cannot|unable|invalid|killed|oom)\b|\b[45]\d\d\b(?= )/i;

function keep(lines: readonly string[], templates: readonly string[]): ReadonlySet<number> {
  const places = new Map<string, number[]>();
  for (const [at, template] of templates.entries()) {
    const known = places.get(template);
    if (known) known.push(at);
    else places.set(template, [at]);
  }
  const kept = new Set<number>();
  for (const [template, all] of places) {
    const isTrouble = trouble.test(template);
    const first = isTrouble ? TROUBLES : 2;
    const last = isTrouble ? TROUBLES : 1;
    const some = all.length < RARE ? all : [...all.slice(0, first), ...all.slice(-last)];
    for (const at of some) {
      kept.add(at);
      if (!isTrouble) continue;
      if (at > 0) kept.add(at - 1);
      if (at + 1 < lines.length) kept.add(at + 1);
    }
  }
  return kept;
}

function writeDigest(
  lines: readonly string[],
  templates: readonly string[],
  kept: ReadonlySet<number>,
): string {
  const out: string[] = [];
  let gap: string[] = [];
  const close = (): void => {
    if (gap.length > 0) out.push(leftOut(gap.length, 'lines', `: ${tally(gap)}`));
    gap = [];
  };
  for (const [at, line] of lines.entries()) {
    if (!kept.has(at)) gap.push(templates[at]!);
    else {
      close();
      out.push(line);
    }
  }
  close();
  return out.join('\n');
}

function tally(templates: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const template of templates) counts.set(template, (counts.get(template) ?? 0) + 1);
  const most = [...counts].sort((one, other) => other[1] - one[1]);
  const named = most.slice(0, NAMED).map(([template, count]) => `${count} x ${clip(template, 80)}`);
  return named.join('; ') + (most.length > NAMED ? `; ${most.length - NAMED} others` : '');
}

/** What is another value each time: ids, addresses, times, numbers. Words are not: a line that says something else is another template. */
const value =
  /\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){1,4}\b|\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{7,}\b|\d+/g;

function templateOf(line: string): string {
  return clip(line, 300).replace(value, '#').replace(/\s+/g, ' ');
}

/** Never half of a character. */
function clip(text: string, most: number): string {
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return text.slice(0, isHalf ? most - 1 : most);
}
