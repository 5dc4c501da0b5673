/**
 * Shrinks listings, logs and test runs. Without loss: if successive lines share a beginning, it is written once above them (and so is a
 * common end), and a repeated line is written once with its count. Lines keep their order. Beginnings are cut after a space or another
 * sign, never inside a word, a number or a path, since the next call will name those. Lossy drafts also cut folders off long listings, or
 * leave out log lines that are like others.
 */
import { mayLose, type RecognizedKind, type ShrinkDraft } from './kind.ts';
import { andEnd, leftOut, nextLineTimes, nextLinesBegin, withoutSmallGaps } from './markers.ts';

/** UTF-16 units that a marker must save beyond its own length. */
const minGain = 30;
/** Minimum length of a listing, in UTF-16 units, for cutting off folders. */
const minListing = 8_000;
const minBeginning = 8;
const minEnding = 6;
const minLines = 3;

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
      const byFolder = text.length < minListing ? undefined : write(lines, signsAndSlashes);
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

/** A line, and how often it occurs in a row. */
type CountedLine = { readonly line: string; readonly times: number };
/** Lines with a common beginning; `end` is exclusive. */
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
    if (saved > minGain + nextLineTimes(end - start).length) items.push({ line, times: end - start });
    else for (let at = start; at < end; at++) items.push({ line, times: 1 });
  }
  return items;
}

/**
 * Finds the blocks that save most. Runs of lines with a common beginning are nested: the longer the beginning, the fewer the lines. From the
 * inside out, a run becomes one block if that saves more than the best blocks inside it. An undefined line is in no block.
 */
function findBlocks(
  lines: readonly (string | undefined)[],
  cutBehind: ReadonlySet<string>,
): readonly LineBlock[] {
  type OpenRun = { readonly height: number; readonly start: number; gain: number; blocks: LineBlock[] };
  const open: OpenRun[] = [{ height: 0, start: 0, gain: 0, blocks: [] }];
  for (let at = 0; at < lines.length; at++) {
    const height = commonLength(lines[at], lines[at + 1]);
    let start = at;
    let inside: Pick<OpenRun, 'gain' | 'blocks'> = { gain: 0, blocks: [] };
    while (open.at(-1)!.height > height) {
      const run = open.pop()!;
      start = run.start;
      inside = best(run, lines[start]!, at + 1, cutBehind);
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
    end - start >= minLines && own >= minGain && own >= gain && isTelling(line.slice(0, beginning));
  return isBetter ? { gain: own, blocks: [{ start, end, beginning }] } : { gain, blocks };
}

/** True if a beginning has enough text. Indentation alone says nothing, and cutting it off would hide it. */
function isTelling(beginning: string): boolean {
  return beginning.trim().length >= minBeginning;
}

function commonLength(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return 0;
  const max = Math.min(one.length, other.length);
  let length = 0;
  while (length < max && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

const signs = new Set(' \t=,;|([{<"\'');
const signsAndSlashes = new Set([...signs, '/', '\\', ':']);

function cutBehindSign(line: string, length: number, cutBehind: ReadonlySet<string>): number {
  let cut = length;
  while (cut > 0 && !cutBehind.has(line[cut - 1]!)) cut--;
  return cut;
}

/** Returns the common end of all lines, starting at a sign; empty if that would save nothing. */
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
  return ending.length >= minEnding && ending.length * rests.length > minGain + andEnd(ending).length
    ? ending
    : '';
}

/** Shorter logs are kept completely, in UTF-16 units. */
const minLog = 8_000;
/** A template with fewer lines is kept completely. */
const minCommonLines = 5;
/** The number of lines that stay at both ends, among lines of a template that reports trouble. */
const troubleLinesKept = 10;
/** The number of templates named in a marker for omitted lines. */
const templatesNamed = 3;

/** Most lines of a log have a time or a level. In a listing each line is new information, however similar lines look. */
const minLogShare = 0.7;
const logLine =
  /\d:\d\d:\d\d|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\b|^\[?(?:trace|debug|info|warn|error)\b|\b\d{10}(?:\.\d+)?\b/;

/**
 * Shortens a long log: leaves out most lines that are like others. The first two lines and the last one of each template (a line without its
 * numbers and ids) stay, so that the log's start and end stay; rare templates and lines that report trouble stay with a line before and
 * after. A marker names the templates of omitted lines. Undefined if the text is no log, or too little can be left out. Lossy.
 */
export function digestLog(text: string): { readonly text: string; readonly lines: number } | undefined {
  if (text.length < minLog) return undefined;
  const lines = text.split('\n');
  if (lines.filter((line) => logLine.test(line)).length < lines.length * minLogShare) return undefined;
  const templates = lines.map(templateOf);
  const kept = withoutSmallGaps(keep(lines, templates), lines.length);
  const gone = lines.length - kept.size;
  return gone < lines.length / 4 ? undefined : { text: writeDigest(lines, templates, kept), lines: gone };
}

/** Words by which log lines report trouble. */
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
    const first = isTrouble ? troubleLinesKept : 2;
    const last = isTrouble ? troubleLinesKept : 1;
    const some = all.length < minCommonLines ? all : [...all.slice(0, first), ...all.slice(-last)];
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
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  const named = sorted
    .slice(0, templatesNamed)
    .map(([template, count]) => `${count} x ${clip(template, 80)}`);
  return (
    named.join('; ') + (sorted.length > templatesNamed ? `; ${sorted.length - templatesNamed} others` : '')
  );
}

/** Matches variable values: ids, addresses, times, numbers. Words are not variable: a line with other words has another template. */
const value =
  /\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){1,4}\b|\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{7,}\b|\d+/g;

function templateOf(line: string): string {
  return clip(line, 300).replace(value, '#').replace(/\s+/g, ' ');
}

/** Cuts a text to `max` UTF-16 units, never inside a character. */
function clip(text: string, max: number): string {
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(max - 1));
  return text.slice(0, isHalf ? max - 1 : max);
}
