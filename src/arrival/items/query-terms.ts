/**
 * Splits a query into terms, and counts terms in lower-case text. A word with signs in it (a path, an id, a decimal number) is searched as
 * a whole and by its pieces. Pure.
 */

const maxTerms = 64;
const maxCharacters = 2_000;

// The most common words of English questions: they are everywhere, and would dominate the ranking of prose.
const common = new Set(
  'a an and are as at be by do for from has have how i in is it of on or that the this to was what when where which who why with'.split(
    ' ',
  ),
);

/**
 * Returns the ways a query may be spelled in a text: unchanged, without surrounding quotes, and escaped as in a JSON string (once, in ASCII,
 * or twice, as in arguments that are JSON themselves).
 */
export function spellingsOf(query: string): readonly string[] {
  const bare = /^(["'`])(.+)\1$/s.exec(query)?.[2] ?? query;
  const escaped = JSON.stringify(bare).slice(1, -1);
  const ascii = escaped.replaceAll(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [...new Set([query, bare, escaped, ascii, JSON.stringify(escaped).slice(1, -1)])];
}

/**
 * A search term and its weight. The pieces of one word together weigh as much as the word, so that a long path does not outweigh the number
 * next to it.
 */
export type QueryTerm = { readonly text: string; readonly weight: number };

/** Returns the distinct terms in lower case, at most 64. Common words count only if there are no others. */
export function queryTerms(query: string): readonly QueryTerm[] {
  const weights = new Map<string, number>();
  const add = (text: string, weight: number) => weights.set(text, Math.max(weight, weights.get(text) ?? 0));
  for (const chunk of query.toLowerCase().slice(0, maxCharacters).split(/\s+/)) {
    const bare = chunk
      .replace(/^[^\p{L}\p{N}_$@#/.-]+/u, '')
      .replace(/(?<![^\p{L}\p{N}_])[^\p{L}\p{N}_]+$/u, '');
    if (bare !== '') add(bare, 1);
    const pieces = bare.split(/[^\p{L}\p{N}_]+/u).filter(({ length }) => length > 1);
    for (const piece of pieces) add(piece, 1 / pieces.length);
  }
  const terms = [...weights].map(([text, weight]): QueryTerm => ({ text, weight }));
  const telling = terms.filter(({ text }) => !common.has(text));
  return (telling.length > 0 ? telling : terms).slice(0, maxTerms);
}

/**
 * Counts occurrences of a term that begin before `limit`. Inside a longer word an occurrence counts a third, so that plurals and compounds
 * are found and whole words rank higher. `first` is the offset of the first occurrence, Infinity if there is none.
 */
export function countTerm(lower: string, term: string, limit: number): { count: number; first: number } {
  let count = 0;
  let first = Infinity;
  for (let at = lower.indexOf(term); at >= 0 && at < limit; at = lower.indexOf(term, at + term.length)) {
    if (first === Infinity) first = at;
    const isWord = !isLetterOrDigit(lower, at - 1) || !isLetterOrDigit(lower, at);
    const isEnd = !isLetterOrDigit(lower, at + term.length) || !isLetterOrDigit(lower, at + term.length - 1);
    count += isWord && isEnd ? 1 : 1 / 3;
  }
  return { count, first };
}

function isLetterOrDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x5f ||
    (code > 0x7f && code < 0x2e80)
  );
}

/** Returns the weight of a term that `holding` of `all` texts contain (inverse document frequency). */
export function rarityOf(holding: number, all: number): number {
  return Math.log(1 + (all - holding + 0.5) / (holding + 0.5));
}

/** Computes Okapi BM25 with its usual constants. `relativeLength`: the text's length relative to the mean; `counts` and `rarity` by term. */
export function bm25(counts: readonly number[], rarity: readonly number[], relativeLength: number): number {
  const norm = 1.2 * (0.25 + 0.75 * relativeLength);
  return counts.reduce((sum, count, term) => sum + ((rarity[term] ?? 0) * count * 2.2) / (count + norm), 0);
}
