/**
 * How long the summary of one stretch is, by what it stands for and the ratio that is asked for, and its words where they are the steps'
 * own lines. Pure.
 */
import { clip, type CountTokens } from '../conversation/fit.ts';
import { maxRatio } from './levels.ts';

/** Tokens: of what is summarised, of the entry as it is wanted, and of its first line, which says what it is. */
export type EntrySizes = { readonly before: number; readonly wanted: number; readonly head: number };

/** A summary has at least so many tokens, whatever the ratio; less says nothing. */
const leastText = 24;

/** Words rarely fill the room they are given, so less is asked for than the hardest ratio allows. */
const hardestAim = 14;

/** A light merge has a third, but no more than this, of what stood there. */
const mergeRatio = 3;
const mergeTokens = 300;

/** Of an entry for so many tokens; `ratio` undefined: of a light merge. */
export function wantedTokens(before: number, ratio: number | undefined): number {
  if (ratio !== undefined) return Math.floor(before / Math.min(ratio, hardestAim));
  return Math.floor(Math.max(before / hardestAim, Math.min(before / mergeRatio, mergeTokens)));
}

/** Tokens that are left beside the first line. */
export function roomOf(sizes: EntrySizes): number {
  return Math.max(0, Math.min(Math.max(sizes.wanted - sizes.head, leastText), mostRoom(sizes)));
}

/** With more nothing would be saved. */
function mostRoom({ before, head }: EntrySizes): number {
  return Math.max(0, before - head - 4);
}

/** The steps' own lines, behind what the entry says already. `tokensOf`: of the entry with such a text. */
export function entryLines(
  steps: readonly string[],
  sizes: EntrySizes,
  { begun = '', mark, tokensOf, count }: EntryMeasure,
): string {
  const least = sizes.before / maxRatio;
  const taken = tokensOf(begun) - sizes.head;
  const sayOn = (room: number): string => {
    const words = tellingLines(steps, room - taken, count, mark);
    return [begun, words].filter((part) => part !== '').join('\n');
  };
  let room = roomOf(sizes);
  let text = sayOn(room);
  // Lines that do not divide well leave some of the room.
  for (let round = 0; round < 3 && room < mostRoom(sizes); round++) {
    const missing = least - tokensOf(text);
    if (missing <= 0) break;
    room = Math.min(room + Math.ceil(missing) + 16, mostRoom(sizes));
    text = sayOn(room);
  }
  return text;
}

export type EntryMeasure = {
  readonly begun?: string;
  /** As `tellingLines` takes it. */
  readonly mark?: string;
  readonly tokensOf: (text: string) => number;
  readonly count: CountTokens;
};

const longestLine = 160;
/** Lines of one step that are looked at, from both ends. */
const mostLines = 400;
/** First lines have at most this share of the room where there is more to say. */
const headShare = 0.7;
/** Room for less is left as it is. */
const leastLine = 8;

type StepLine = { readonly step: number; readonly at: number; readonly text: string; readonly worth: number };

/**
 * At most `maxTokens` of the steps' own lines, in their order. `mark` is put in front of all but the first lines of steps, so that nothing
 * they quote passes for one.
 */
export function tellingLines(
  steps: readonly string[],
  maxTokens: number,
  count: CountTokens,
  mark = '',
): string {
  const lines = steps.map((step, index) => linesOf(step, index, mark));
  let chosen = headsOf(lines, maxTokens, count);
  const headed = new Set(chosen.map(({ step }) => step));
  const unheaded = lines.flatMap(([head]) => (head && !headed.has(head.step) ? head : []));
  let others = byWorth([...terse(unheaded), ...lines.flat().filter(({ at }) => at > 0)]);
  // Counted together lines have fewer tokens than one by one, so there is room left for more of them.
  for (let round = 0; round < 3 && others.length > 0; round++) {
    const more = fitting(others, maxTokens - count(joined(chosen)), count);
    if (more.length === 0) break;
    chosen = [...chosen, ...more];
    const last = more.at(-1)!;
    others = others.slice(others.findIndex(({ step, at }) => step === last.step && at === last.at) + 1);
  }
  return clip(joined(chosen), maxTokens, count);
}

function joined(lines: readonly StepLine[]): string {
  const inOrder = lines.toSorted((a, b) => a.step - b.step || a.at - b.at);
  return inOrder.map(({ text }) => text).join('\n');
}

/** The first lines: whole where they fit, else each in its tersest form, of as many steps as there is room for. */
function headsOf(
  steps: readonly (readonly StepLine[])[],
  maxTokens: number,
  count: CountTokens,
): readonly StepLine[] {
  const whole = steps.flatMap((lines) => lines[0] ?? []);
  const room = maxTokens * headShare;
  if (sizeOf(whole, count) <= room) return whole;
  for (let most = whole.length; most > 1; ) {
    const heads = terse(spread(whole, most));
    const size = sizeOf(heads, count);
    if (size <= room) return heads;
    most = Math.min(most - 1, Math.floor((most * room) / size));
  }
  return terse(whole.slice(-1)).map((head) => ({
    ...head,
    text: shorter(head.text, Math.floor(room), count),
  }));
}

/** The id, what was done in a word, and those names and numbers that no head before it has. */
function terse(heads: readonly StepLine[]): readonly StepLine[] {
  const seen = new Set<string>();
  return heads.map((head) => {
    const [id = '', verb = ''] = head.text.split(' ');
    const found = new Set(head.text.slice(id.length + 1).match(named));
    const names = [...found].filter((name) => !seen.has(name));
    for (const name of names) seen.add(name);
    const text = [id, verb, ...names.filter((name) => !verb.includes(name))].join(' ').trim();
    return text.length < head.text.length ? { ...head, text } : head;
  });
}

/** The best first; what repeats another but for numbers comes last. */
function byWorth(lines: readonly StepLine[]): readonly StepLine[] {
  const shapes = new Set<string>();
  const fresh: StepLine[] = [];
  const repeated: StepLine[] = [];
  for (const line of lines.toSorted((a, b) => b.worth - a.worth || a.step - b.step || a.at - b.at)) {
    const shape = line.text.replaceAll(/\d+/g, '0');
    (shapes.has(shape) ? repeated : fresh).push(line);
    shapes.add(shape);
  }
  return [...fresh, ...repeated];
}

/** The first of them that fit, the last one cut. */
function fitting(lines: readonly StepLine[], maxTokens: number, count: CountTokens): readonly StepLine[] {
  const chosen: StepLine[] = [];
  let left = maxTokens;
  for (const line of lines) {
    if (left < leastLine) break;
    const text = shorter(line.text, left - 1, count);
    if (text === '') continue;
    left -= count(text) + 1;
    chosen.push({ ...line, text });
  }
  return chosen;
}

/** The text before its last white space; all of it where there is none. By hand: a pattern would try each character of a long run. */
function withoutLastWord(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1]!.trim() !== '') end--;
  return end === 0 ? text : text.slice(0, end).trimEnd();
}

/** Ends between words where that leaves enough: half a path would pass for another one. */
function shorter(text: string, maxTokens: number, count: CountTokens): string {
  const fits = clip(text, maxTokens, count);
  if (fits.length === text.length) return text;
  const cut = clip(text, maxTokens - 1, count).trimEnd();
  const words = withoutLastWord(cut);
  const kept = words.length * 2 > cut.length ? words : cut;
  return kept === '' ? '' : `${kept}…`;
}

/** So many of them, the first and the last among them. */
function spread<T>(items: readonly T[], most: number): readonly T[] {
  if (items.length <= most) return items;
  if (most === 1) return items.slice(-1);
  return Array.from({ length: most }, (_, at) => items[Math.round((at * (items.length - 1)) / (most - 1))]!);
}

function sizeOf(lines: readonly StepLine[], count: CountTokens): number {
  return lines.reduce((sum, { text }) => sum + count(text) + 1, 0);
}

function linesOf(step: string, index: number, mark: string): readonly StepLine[] {
  const all = step.split('\n').flatMap(piecesOf);
  const ends = all.length <= mostLines ? all : [...all.slice(0, mostLines / 2), ...all.slice(-mostLines / 2)];
  return ends.map((text, at) => ({
    step: index,
    at,
    text: at === 0 ? text : mark + text,
    worth: worthOf(text, at, ends.length),
  }));
}

/** Long lines are taken as several; of very long ones the beginning. */
function piecesOf(line: string): readonly string[] {
  const pieces = line.slice(0, longestLine * mostLines).match(piece) ?? [];
  return pieces.map((text) => text.trim().toWellFormed()).filter((text) => text !== '');
}

const piece = new RegExp(`.{1,${longestLine}}`, 'gsu');
const trouble =
  /\b(errors?|fail(?:ed|s|ure)?|exception|denied|not found|undefined|panic|fatal|refused|timed? ?out)\b/i;
/** What a step may be known by: a path, a file, a digest, a long number. */
const named = /[\w.-]+\/[\w./-]+|\b[\w-]+\.[a-z]{1,4}\b|\b[0-9a-f]{7,}\b|\b\d{4,}\b/g;
const artifact =
  /[\w.-]+\/[\w./-]+|\b\w+\.[a-z]{1,4}\b|\b[0-9a-f]{7,}\b|\b\d[\d.,:]*\b|["'`][^"'`]{2,40}["'`]/g;

function worthOf(text: string, at: number, of: number): number {
  const place = (at === 0 ? 3 : 0) + (at === of - 1 ? 1 : 0);
  // What has a name of its own was worth one.
  const name = text.startsWith('[') ? 4 : 0;
  return place + name + (trouble.test(text) ? 4 : 0) + Math.min(text.match(artifact)?.length ?? 0, 3);
}
