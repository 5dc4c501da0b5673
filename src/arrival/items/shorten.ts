/**
 * The sentences and lines of a text that say most, in its own words and order: its beginning, headings, and what holds rare words that
 * were asked for. Where something is left out stands a mark. Deterministic, linear but for sorting. Pure.
 */
import { countTerm } from './query-terms.ts';

/** What a word that was asked for is worth where it stands. */
export type TermWeights = ReadonlyMap<string, number>;

export const GAP = '[…]';

/**
 * At most about `most` UTF-16 units of the text; the text itself where it is no longer. `terms` are in lower case.
 *
 * @example
 * shorten('Lamps. They shine. Old ones smoke. Ours cost 12 EUR.', 30, new Map([['cost', 1]])); // 'Lamps. […] Ours cost 12 EUR.'
 */
export function shorten(text: string, most: number, terms: TermWeights): string {
  if (text.length <= most) return text;
  const units = unitsOf(text);
  const ranked = units
    .map((unit, at) => ({ unit, at, score: score(text, unit, at, terms) }))
    .toSorted((a, b) => b.score - a.score || a.at - b.at);
  const kept = new Set<number>();
  let room = most;
  for (const { unit, at } of ranked) {
    const length = unit.end - unit.start + (kept.has(at - 1) || kept.has(at + 1) ? 0 : GAP.length + 1);
    if (length > room) continue;
    kept.add(at);
    room -= length;
  }
  return kept.size === 0
    ? `${cut(text, Math.max(0, most - GAP.length - 1))} ${GAP}`.trim()
    : joined(text, units, kept);
}

/** A sentence or a line, without the white space behind it; `end` exclusive. */
type TextUnit = { readonly start: number; readonly end: number; readonly beginsLine: boolean };

/** A longer line is one of prose. */
const longLine = 200;
const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

function unitsOf(text: string): readonly TextUnit[] {
  const units: TextUnit[] = [];
  const add = (start: number, piece: string, beginsLine: boolean): void => {
    const from = start + piece.length - piece.trimStart().length;
    const end = start + piece.trimEnd().length;
    if (end > from) units.push({ start: from, end, beginsLine });
  };
  let start = 0;
  for (const line of text.split('\n')) {
    if (line.length <= longLine) add(start, line, true);
    else for (const { segment, index } of sentences.segment(line)) add(start + index, segment, index === 0);
    start += line.length + 1;
  }
  return units;
}

/** What comes first mostly says what it is about; numbers are what is asked for later. */
function score(text: string, { start, end }: TextUnit, at: number, terms: TermWeights): number {
  const unit = text.slice(start, end);
  const lower = unit.toLowerCase();
  let found = 0;
  for (const [term, weight] of terms) if (countTerm(lower, term, lower.length).count > 0) found += weight;
  const heading = /^#{1,6} |^[^.!?]{1,80}:$/.test(unit) ? 0.5 : 0;
  const first = at === 0 ? 100 : 1 / (1 + at / 4);
  const numbers = /\d/.test(unit) ? 0.3 : 0;
  return found * 2 + heading + first + numbers;
}

function joined(text: string, units: readonly TextUnit[], kept: ReadonlySet<number>): string {
  const pieces: string[] = [];
  let last = -1;
  for (const [at, unit] of units.entries()) {
    if (!kept.has(at)) continue;
    const before = last < 0 ? undefined : units[last]!;
    const isNext = last === at - 1;
    if (isNext && before) pieces.push(text.slice(before.end, unit.start));
    else pieces.push(before ? (unit.beginsLine ? `\n${GAP}\n` : ` ${GAP} `) : `${GAP} `);
    pieces.push(text.slice(unit.start, unit.end));
    last = at;
  }
  if (last < units.length - 1) pieces.push(` ${GAP}`);
  const whole = pieces.join('');
  return last >= 0 && kept.has(0) ? whole.replace(/^\[…\] /, '') : whole;
}

/** Never half a character. */
function cut(text: string, most: number): string {
  return text
    .slice(0, most)
    .toWellFormed()
    .replace(/\uFFFD$/, '');
}

export type ItemList = {
  readonly items: readonly ListItem[];
  /** The text with smaller items in the places of some; what is around the items keeps its bytes, white space of JSON aside. */
  write(smaller: ReadonlyMap<number, string>): string;
};

export type ListItem = {
  /** As it stands. */
  readonly text: string;
  /** How relevant its source says it is, greater is more; undefined where it says nothing. */
  readonly score: number | undefined;
  /** The texts in it that are made smaller: all of it, or its long strings. */
  readonly texts: readonly string[];
  /** The item in about this share of its size, by what `say` makes of its texts; undefined where it cannot be said shorter. */
  shorter(share: number, say: Say): string | undefined;
};

/** A text in about so many UTF-16 units. */
export type Say = (text: string, most: number) => string;

/** In the text's own words, those best that say what was asked for. */
export function sayBy(terms: TermWeights): Say {
  return (text, most) => shorten(text, most, terms);
}
