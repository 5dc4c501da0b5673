/** Orders the items of a list by how relevant they are to a question, least first. Pure. */
import type { Terms } from './extract.ts';
import type { Item } from './item-list.ts';
import { bm25, countTerm, queryTerms, rarityOf } from './query-terms.ts';

export type Ranking = {
  /** Places of the items, least relevant first. */
  readonly leastFirst: readonly number[];
  /** The words of the question, rarer ones worth more. */
  readonly terms: Terms;
};

/**
 * By the scores their source gives; without any in the order they come, where `isRanked` says that they come best first; else by BM25 of
 * the question, and where it says nothing of any, in the order they come.
 */
export function rankItems(items: readonly Item[], question: string, isRanked: boolean): Ranking {
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
