/**
 * Writes a summary from the steps' own lines, as long as its ratio demands. It invents no words: it takes the first line of each step (what
 * was done), then the lines that say most. Deterministic; never fails. Pure.
 */
import { clip, type CountTokens } from '../conversation/messages.ts';
import { maxRatio } from './levels.ts';

/** Tokens before the summary, of the wanted entry, and of its first line, which says what it is. */
export type EntrySizes = { readonly before: number; readonly wanted: number; readonly head: number };

/** Minimum tokens of a summary, whatever the ratio; less says nothing. */
const minText = 24;

/** The strongest ratio aimed at: text rarely fills its budget, so the aim is below the maximum ratio. */
const maxAimRatio = 14;

/** A light merge keeps a third of the tokens, but at most `mergeTokens`. */
const mergeRatio = 3;
const mergeTokens = 300;

/** Returns the tokens of an entry for `before` tokens; with `ratio` undefined, of a light merge. */
export function wantedTokens(before: number, ratio: number | undefined): number {
  if (ratio !== undefined) return Math.floor(before / Math.min(ratio, maxAimRatio));
  return Math.floor(Math.max(before / maxAimRatio, Math.min(before / mergeRatio, mergeTokens)));
}

/** Returns the tokens left for the text after the first line. */
export function textBudgetOf(sizes: EntrySizes): number {
  return Math.max(0, Math.min(Math.max(sizes.wanted - sizes.head, minText), maxText(sizes)));
}

/** Returns the maximum tokens of the text: with more, nothing would be saved. */
function maxText({ before, head }: EntrySizes): number {
  return Math.max(0, before - head - 4);
}

/** Writes the steps' own lines after the text in `begun`. `tokensOf` counts the entry with a text. */
export function entryLines(
  steps: readonly string[],
  sizes: EntrySizes,
  { begun = '', mark, tokensOf, count }: EntryMeasure,
): string {
  const min = sizes.before / maxRatio;
  const taken = tokensOf(begun) - sizes.head;
  const extended = (room: number): string => {
    const words = tellingLines(steps, room - taken, count, mark);
    return [begun, words].filter((part) => part !== '').join('\n');
  };
  let room = textBudgetOf(sizes);
  let text = extended(room);
  // Whole lines may leave some of the budget unused.
  for (let round = 0; round < 3 && room < maxText(sizes); round++) {
    const missing = min - tokensOf(text);
    if (missing <= 0) break;
    room = Math.min(room + Math.ceil(missing) + 16, maxText(sizes));
    text = extended(room);
  }
  return text;
}

export type EntryMeasure = {
  readonly begun?: string;
  /** Put before all but the first line of each step, so that quoted text cannot be mistaken for ours. */
  readonly mark?: string;
  readonly tokensOf: (text: string) => number;
  readonly count: CountTokens;
};

const maxLine = 160;
/** Maximum lines of one step that are read, from both ends. */
const maxLines = 400;
/** Maximum share of the budget for first lines if there are other lines. */
const headShare = 0.7;
/** Minimum tokens of a further line. */
const minLine = 8;

type StepLine = { readonly step: number; readonly at: number; readonly text: string; readonly worth: number };

/** Selects at most `maxTokens` of the steps' own lines, in their order. `mark` is put before all but the first line of each step. */
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
  // Lines have fewer tokens together than one by one, so there is space for more of them.
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

/** Returns the first lines: whole if they fit, else in short form, of as many steps as fit. */
function headsOf(
  steps: readonly (readonly StepLine[])[],
  maxTokens: number,
  count: CountTokens,
): readonly StepLine[] {
  const whole = steps.flatMap((lines) => lines[0] ?? []);
  const room = maxTokens * headShare;
  if (sizeOf(whole, count) <= room) return whole;
  for (let max = whole.length; max > 1; ) {
    const heads = terse(spread(whole, max));
    const size = sizeOf(heads, count);
    if (size <= room) return heads;
    max = Math.min(max - 1, Math.floor((max * room) / size));
  }
  return terse(whole.slice(-1)).map((head) => ({
    ...head,
    text: shorter(head.text, Math.floor(room), count),
  }));
}

/** Shortens first lines to the id, the verb, and names and numbers that no earlier one has. */
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

/** Sorts lines, best first; lines that repeat another one except for numbers come last. */
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

/** Returns the first lines that fit, the last one cut. */
function fitting(lines: readonly StepLine[], maxTokens: number, count: CountTokens): readonly StepLine[] {
  const chosen: StepLine[] = [];
  let left = maxTokens;
  for (const line of lines) {
    if (left < minLine) break;
    const text = shorter(line.text, left - 1, count);
    if (text === '') continue;
    left -= count(text) + 1;
    chosen.push({ ...line, text });
  }
  return chosen;
}

/** Returns the text before its last white space, or all of it. Done by hand: a regular expression would take quadratic time. */
function withoutLastWord(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1]!.trim() !== '') end--;
  return end === 0 ? text : text.slice(0, end).trimEnd();
}

/** Cuts a text, between words if that keeps enough: half a path could be mistaken for another path. */
function shorter(text: string, maxTokens: number, count: CountTokens): string {
  const fits = clip(text, maxTokens, count);
  if (fits.length === text.length) return text;
  const cut = clip(text, maxTokens - 1, count).trimEnd();
  const words = withoutLastWord(cut);
  const kept = words.length * 2 > cut.length ? words : cut;
  return kept === '' ? '' : `${kept}…`;
}

/** Picks `max` items evenly, including the first and the last. */
function spread<T>(items: readonly T[], max: number): readonly T[] {
  if (items.length <= max) return items;
  if (max === 1) return items.slice(-1);
  return Array.from({ length: max }, (_, at) => items[Math.round((at * (items.length - 1)) / (max - 1))]!);
}

function sizeOf(lines: readonly StepLine[], count: CountTokens): number {
  return lines.reduce((sum, { text }) => sum + count(text) + 1, 0);
}

function linesOf(step: string, index: number, mark: string): readonly StepLine[] {
  const all = step.split('\n').flatMap(piecesOf);
  const ends = all.length <= maxLines ? all : [...all.slice(0, maxLines / 2), ...all.slice(-maxLines / 2)];
  return ends.map((text, at) => ({
    step: index,
    at,
    text: at === 0 ? text : mark + text,
    worth: worthOf(text, at, ends.length),
  }));
}

/** Splits long lines; of very long ones only the beginning is kept. */
function piecesOf(line: string): readonly string[] {
  const pieces = line.slice(0, maxLine * maxLines).match(piece) ?? [];
  return pieces.map((text) => text.trim().toWellFormed()).filter((text) => text !== '');
}

const piece = new RegExp(`.{1,${maxLine}}`, 'gsu');
const trouble =
  /\b(errors?|fail(?:ed|s|ure)?|exception|denied|not found|undefined|panic|fatal|refused|timed? ?out)\b/i;
/** Matches names that identify a step: a path, a file, a digest, a long number. */
const named = /[\w.-]+\/[\w./-]+|\b[\w-]+\.[a-z]{1,4}\b|\b[0-9a-f]{7,}\b|\b\d{4,}\b/g;
const artifact =
  /[\w.-]+\/[\w./-]+|\b\w+\.[a-z]{1,4}\b|\b[0-9a-f]{7,}\b|\b\d[\d.,:]*\b|["'`][^"'`]{2,40}["'`]/g;

function worthOf(text: string, at: number, of: number): number {
  const place = (at === 0 ? 3 : 0) + (at === of - 1 ? 1 : 0);
  // A line with a name of its own is worth more.
  const name = text.startsWith('[') ? 4 : 0;
  return place + name + (trouble.test(text) ? 4 : 0) + Math.min(text.match(artifact)?.length ?? 0, 3);
}
