/**
 * Takes a query apart into what to look for, and counts words in lower-cased text. A word with signs in it (a path, an
 * id, a number with points) is looked for as it is and in its pieces. Pure.
 */

const mostTerms = 64;
const mostCharacters = 2_000;

// The commonest words of English questions: they stand everywhere, and would make windows of prose rank by them.
const common = new Set(
  'a an and are as at be by do for from has have how i in is it of on or that the this to was what when where which who why with'.split(
    ' ',
  ),
);

/**
 * The query as it may stand in a text: as it is, without the quotes a model puts around it, and as JSON spells it within a
 * string (once, in ASCII, or twice, as in arguments that are JSON themselves).
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
 * What to look for, and what finding it is worth beside a word by itself: the pieces of one word are worth that together, or else a
 * long path would drown the number next to it.
 */
export type QueryTerm = { readonly text: string; readonly weight: number };

/** Distinct terms in lower case, at most 64; all words are taken when there are only common ones. */
export function queryTerms(query: string): readonly QueryTerm[] {
  const weights = new Map<string, number>();
  const add = (text: string, weight: number) => weights.set(text, Math.max(weight, weights.get(text) ?? 0));
  for (const chunk of query.toLowerCase().slice(0, mostCharacters).split(/\s+/)) {
    const bare = chunk.replace(/^[^\p{L}\p{N}_$@#/.-]+/u, '').replace(/[^\p{L}\p{N}_]+$/u, '');
    if (bare !== '') add(bare, 1);
    const pieces = bare.split(/[^\p{L}\p{N}_]+/u).filter(({ length }) => length > 1);
    for (const piece of pieces) add(piece, 1 / pieces.length);
  }
  const terms = [...weights].map(([text, weight]): QueryTerm => ({ text, weight }));
  const telling = terms.filter(({ text }) => !common.has(text));
  return (telling.length > 0 ? telling : terms).slice(0, mostTerms);
}

/** Pairs of neighbouring words as they stand in the query, in lower case, at most 64: what a query quotes stands so in the text. */
export function queryPhrases(query: string): readonly QueryTerm[] {
  const words = query.toLowerCase().slice(0, mostCharacters).trim().split(/\s+/);
  const pairs = words.slice(1).map((word, index) => `${words[index]} ${word}`);
  return [...new Set(pairs)].slice(0, mostTerms).map((text) => ({ text, weight: 1 }));
}

/**
 * Counts a term that begins before `limit`; inside a longer word it counts a third, so that plurals and compounds are
 * found and words still win. `first` is the offset of the first one, Infinity when there is none.
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

/** How rare a term is that `holding` of `all` texts hold: what finding it is worth. */
export function rarityOf(holding: number, all: number): number {
  return Math.log(1 + (all - holding + 0.5) / (holding + 0.5));
}

/** Okapi BM25 with its usual constants. `relativeLength`: of the text to the usual one; `counts` and `rarity` by term. */
export function bm25(counts: readonly number[], rarity: readonly number[], relativeLength: number): number {
  const norm = 1.2 * (0.25 + 0.75 * relativeLength);
  return counts.reduce((sum, count, term) => sum + ((rarity[term] ?? 0) * count * 2.2) / (count + norm), 0);
}
