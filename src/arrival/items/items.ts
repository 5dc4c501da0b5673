/**
 * Finds the items of a text that is a list of them: articles, search hits, records. JSON (an array, one within an object, or lines of
 * JSON), or text whose items begin alike. Each item can be made smaller by itself; the rest of the text stays. Pure, linear.
 */
import { isCode } from '../kind.ts';
import { jsonItems } from './json-items.ts';
import { bm25, countTerm, queryTerms, rarityOf } from './query-terms.ts';
import type { ItemList, ListItem, TermWeights } from './shorten.ts';

/** Undefined for a text that is no list of at least three items. */
export function itemsOf(text: string): ItemList | undefined {
  return jsonItems(text) ?? textItems(text);
}

function textItems(text: string): ItemList | undefined {
  if (isCode(text.replaceAll(tagLine, ''))) return undefined;
  const starts = ways.map((way) => way(text)).find((found) => found.length >= FEWEST && covers(text, found));
  if (!starts) return undefined;
  const pieces = starts.map((start, at) => text.slice(start, starts[at + 1] ?? text.length));
  const items = pieces.map(itemOf);
  return {
    items,
    write: (smaller) =>
      text.slice(0, starts[0]) +
      pieces
        .map((piece, at) => {
          const shorter = smaller.get(at);
          return shorter === undefined ? piece : shorter + piece.slice(piece.trimEnd().length);
        })
        .join(''),
  };
}

const FEWEST = 3;

/** Markup around documents, which looks like code. */
const tagLine = /^<\/?[a-z][^>\n]{0,300}>[ \t]*\n/gim;

/** Where items begin, or nothing. */
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

/** A list of items is most of its text. */
function covers(text: string, starts: readonly number[]): boolean {
  return starts[0]! < text.length / 2;
}

function offsets(text: string, pattern: RegExp): readonly number[] {
  return [...text.matchAll(pattern)].map(({ index }) => index);
}

/** Of the beginnings that stand at least three times, that which comes first: what else repeats does so within items. */
function alike(text: string, pattern: RegExp): readonly number[] {
  const places = new Map<string, number[]>();
  for (const match of text.matchAll(pattern)) {
    const name = match[1]!.toLowerCase();
    const known = places.get(name);
    if (known) known.push(match.index);
    else places.set(name, [match.index]);
  }
  return [...places.values()].find((found) => found.length >= FEWEST) ?? [];
}

/** `1. `, `[1] `, `Result 1:`, `Document [1]`: only those that go on counting, so that numbers within items are none. */
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

/** UTF-16 units: shorter texts are read at once, shorter paragraphs belong to what stands before them. */
const LONG_PROSE = 8_000;
const LONG_PARAGRAPH = 400;

function paragraphs(text: string): readonly number[] {
  if (text.length < LONG_PROSE) return [];
  const starts = [0];
  for (const match of text.matchAll(/\n[ \t]*\n+/g)) {
    const start = match.index + match[0].length;
    if (start - starts.at(-1)! >= LONG_PARAGRAPH && start < text.length) starts.push(start);
  }
  return starts;
}

function itemOf(piece: string): ListItem {
  const text = piece.trimEnd();
  return {
    text,
    score: undefined,
    texts: [text],
    shorter(share, say) {
      const shorter = say(text, Math.floor(text.length * share));
      return shorter.length < text.length ? shorter : undefined;
    },
  };
}

type Ranking = {
  /** Places of the items, least relevant first. */
  readonly leastFirst: readonly number[];
  /** The words of the question, rarer ones worth more. */
  readonly terms: TermWeights;
};

/**
 * By the scores their source gives; without any in the order they come, where `isRanked` says that they come best first; else by BM25 of
 * the question, and where it says nothing of any, in the order they come.
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
