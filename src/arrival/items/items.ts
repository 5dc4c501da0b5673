/**
 * Finds the items of a text that is a list: articles, search hits, records. The text is JSON (an array, an array inside an object, or JSON
 * lines), or text whose items begin alike. Each item can be shortened by itself; the rest of the text stays. Pure, linear.
 */
import { isCode } from '../code.ts';
import { jsonItems } from './json-items.ts';
import { bm25, countTerm, queryTerms, rarityOf } from './query-terms.ts';
import type { ItemList, ListItem, TermWeights } from './shorten.ts';

/** Returns the items of a text; undefined if it is no list of at least three items. */
export function itemsOf(text: string): ItemList | undefined {
  return jsonItems(text) ?? textItems(text);
}

/**
 * Finds the items of a text that is not JSON: text after headings of one level, tags of one name, increasing numbers or the same first word,
 * text between rulers, or else the paragraphs of long prose. Text before the first item stays unchanged.
 */
function textItems(text: string): ItemList | undefined {
  if (isCode(text.replaceAll(tagLine, ''))) return undefined;
  const starts = ways
    .map((way) => way(text))
    .find((found) => found.length >= minItems && covers(text, found));
  if (!starts) return undefined;
  const pieces = starts.map((start, at) => text.slice(start, starts[at + 1] ?? text.length));
  const items = pieces.map(itemOf);
  return {
    items,
    write(smaller, note) {
      const written = pieces.map((piece, at) => {
        const shorter = smaller.get(at);
        return shorter === undefined ? piece : shorter + piece.slice(piece.trimEnd().length);
      });
      const whole = text.slice(0, starts[0]) + written.join('');
      return note === undefined ? whole : `${whole.trimEnd()}\n${note}`;
    },
  };
}

const minItems = 3;

/** Matches markup around documents, which looks like code. */
const tagLine = /^<\/?[a-z][^>\n]{0,300}>[ \t]*\n/gim;

/** Returns the offsets at which items begin, if any. */
type Way = (text: string) => readonly number[];

const ways: readonly Way[] = [
  ...[1, 2, 3].map(
    (level): Way =>
      (text) =>
        offsets(text, new RegExp(`^#{${level}} \\S`, 'gm')),
  ),
  (text) => alike(text, /^<([a-z][\w-]*)(?: [^>\n]{0,300})?>/gim),
  countingUp,
  (text) => alike(text, /^(?:\*\*)?([A-Z][\w ]{1,20}):/gm),
  (text) => offsets(text, /^(?:-{3,}|\*{3,}|={3,})[ \t]*$/gm),
  paragraphs,
];

/** True if the items are at least half of the text. */
function covers(text: string, starts: readonly number[]): boolean {
  return starts[0]! < text.length / 2;
}

function offsets(text: string, pattern: RegExp): readonly number[] {
  return [...text.matchAll(pattern)].map(({ index }) => index);
}

/** Returns the offsets of the first beginning that occurs at least three times: others repeat inside items. */
function alike(text: string, pattern: RegExp): readonly number[] {
  const places = new Map<string, number[]>();
  for (const match of text.matchAll(pattern)) {
    const name = match[1]!.toLowerCase();
    const known = places.get(name);
    if (known) known.push(match.index);
    else places.set(name, [match.index]);
  }
  return [...places.values()].find((found) => found.length >= minItems) ?? [];
}

/** Returns the offsets of `1. `, `[1] `, `Result 1:` or `Document [1]`. Only successive numbers count, so numbers inside items do not. */
function countingUp(text: string): readonly number[] {
  const starts: number[] = [];
  let next: number | undefined;
  for (const match of text.matchAll(/^(?:[A-Z]\w{2,15} )?[[(]?(\d{1,4})[\])]?[.:)]?[ \t]/gm)) {
    const number = Number(match[1]);
    if (next === undefined ? number > 1 : number !== next) continue;
    starts.push(match.index);
    next = number + 1;
  }
  return starts;
}

/** Minimum lengths in UTF-16 units: shorter prose is no list, and shorter paragraphs belong to the previous item. */
const minProse = 8_000;
const minParagraph = 400;

function paragraphs(text: string): readonly number[] {
  if (text.length < minProse) return [];
  const starts = [0];
  for (const match of text.matchAll(/\n[ \t]*\n+/g)) {
    const start = match.index + match[0].length;
    if (start - starts.at(-1)! >= minParagraph && start < text.length) starts.push(start);
  }
  return starts;
}

function itemOf(piece: string): ListItem {
  const text = piece.trimEnd();
  return {
    text,
    score: undefined,
    texts: [text],
    shorter(share, shortenText) {
      const shorter = shortenText(text, Math.floor(text.length * share));
      return shorter.length < text.length ? shorter : undefined;
    },
  };
}

type Ranking = {
  /** Indices of the items, least relevant first. */
  readonly leastFirst: readonly number[];
  /** The words of the question; rarer words weigh more. */
  readonly terms: TermWeights;
};

/**
 * Ranks items: by the scores of their source; without scores, in their order if `isRanked` says that the best come first; else by BM25 of the
 * question, and in their order if no word of the question occurs.
 */
export function rankItems(items: readonly ListItem[], question: string, isRanked: boolean): Ranking {
  const words = queryTerms(question).map(({ text }) => text);
  const texts = items.map(({ text }) => text.toLowerCase());
  const counts = texts.map((text) => words.map((word) => countTerm(text, word, text.length).count));
  const rarity = words.map((_, word) =>
    rarityOf(counts.filter((row) => row[word]! > 0).length, items.length),
  );
  const mean = texts.reduce((sum, { length }) => sum + length, 0) / Math.max(1, texts.length);
  const byWords = counts.map((row, at) => bm25(row, rarity, texts[at]!.length / mean));
  const given = items.every(({ score }) => score !== undefined);
  const scores = given ? items.map(({ score }) => score!) : isRanked ? items.map(() => 0) : byWords;
  const leastFirst = items.map((_, at) => at).toSorted((a, b) => scores[a]! - scores[b]! || b - a);
  return { leastFirst, terms: new Map(words.map((word, at) => [word, rarity[at]!])) };
}
