/**
 * Shortens a text to the sentences and lines that say most, in their order: its beginning, headings, and text with rare words of the
 * question. A sign marks what is left out. Also the types of lists of items, which are shortened item by item. Deterministic; linear
 * except for sorting. Pure.
 */
import { countTerm } from './query-terms.ts';

/** The weights of the words of a question, in lower case. */
export type TermWeights = ReadonlyMap<string, number>;

export const gapMark = '[…]';

/**
 * Shortens a text to about `max` UTF-16 units; returns it unchanged if it is no longer. `terms` are in lower case.
 *
 * @example
 * shorten('Lamps. They shine. Old ones smoke. Ours cost 12 EUR.', 30, new Map([['cost', 1]])); // 'Lamps. […] Ours cost 12 EUR.'
 */
export function shorten(text: string, max: number, terms: TermWeights): string {
  if (text.length <= max) return text;
  const units = unitsOf(text);
  const ranked = units
    .map((unit, at) => ({ unit, at, score: score(text, unit, at, terms) }))
    .toSorted((a, b) => b.score - a.score || a.at - b.at);
  const kept = new Set<number>();
  let room = max;
  for (const { unit, at } of ranked) {
    const length = unit.end - unit.start + (kept.has(at - 1) || kept.has(at + 1) ? 0 : gapMark.length + 1);
    if (length > room) continue;
    kept.add(at);
    room -= length;
  }
  return kept.size === 0
    ? `${cut(text, Math.max(0, max - gapMark.length - 1))} ${gapMark}`.trim()
    : joined(text, units, kept);
}

/** A sentence or a line, without the white space after it; `end` is exclusive. */
type TextUnit = { readonly start: number; readonly end: number; readonly beginsLine: boolean };

/** Longer lines, in UTF-16 units, are split into sentences. */
const longLine = 200;
/** Is created when it is first needed, because that takes 10 ms. */
let sentences: Intl.Segmenter | undefined;

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
    else {
      sentences ??= new Intl.Segmenter('en', { granularity: 'sentence' });
      for (const { segment, index } of sentences.segment(line)) add(start + index, segment, index === 0);
    }
    start += line.length + 1;
  }
  return units;
}

/** Scores a unit. The beginning mostly says what a text is about; numbers are often asked for later. */
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
    else pieces.push(before ? (unit.beginsLine ? `\n${gapMark}\n` : ` ${gapMark} `) : `${gapMark} `);
    pieces.push(text.slice(unit.start, unit.end));
    last = at;
  }
  if (last < units.length - 1) pieces.push(` ${gapMark}`);
  const whole = pieces.join('');
  return last >= 0 && kept.has(0) ? whole.replace(/^\[…\] /, '') : whole;
}

/** Cuts a text to `max` UTF-16 units, never inside a character. */
function cut(text: string, max: number): string {
  return text
    .slice(0, max)
    .toWellFormed()
    .replace(/\uFFFD$/, '');
}

/** A text that is a list, split into its items. */
export type ItemList = {
  readonly items: readonly ListItem[];
  /**
   * Writes the text with some items replaced by smaller ones, and with a note about them, if there is one. Text around the items keeps its bytes, except for
   * white space of JSON. JSON stays JSON: each smaller object gets the member `"compressed": true`, and the first one also has the note; in
   * other lists the note is an item, and in other texts the last line.
   */
  write(smaller: ReadonlyMap<number, string>, note?: string): string;
};

export type ListItem = {
  /** The item's own text. */
  readonly text: string;
  /** The relevance that the source reports, higher is more relevant; undefined if it reports none. */
  readonly score: number | undefined;
  /** The texts in the item that can be shortened: the whole item, or its long strings. */
  readonly texts: readonly string[];
  /** Shortens the item to about this share of its size, with its texts shortened by `shortenText`; undefined if that is not possible. */
  shorter(share: number, shortenText: TextShortener): string | undefined;
};

/** Shortens a text to about `max` UTF-16 units. */
export type TextShortener = (text: string, max: number) => string;

/** Returns a function that shortens a text to its own words, preferring those of the question. */
export function shortenerFor(terms: TermWeights): TextShortener {
  return (text, max) => shorten(text, max, terms);
}
