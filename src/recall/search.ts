/**
 * Searches originals for a query, and shows the passages that answer it: in the order of the texts, under a token cap, each with
 * its lines. The last line names other matches. Pure.
 */
import { type CountTokens, clip, longestFit, wholeBefore, wholeAfter } from '../conversation/messages.ts';
import { type TextSpan, spellRange } from './read-original.ts';
import {
  type QueryTerm,
  bm25,
  countTerm,
  queryPhrases,
  queryTerms,
  rarityOf,
  spellingsOf,
} from '../arrival/items/query-terms.ts';

/** A text to search. */
export type Searched = Source & {
  /** The id that precedes each place in it; undefined when this is the only text searched. */
  readonly id: string | undefined;
  /** Returns the arguments, as JSON, of the call that reads the given range. */
  readonly callFor: (lines: string) => string;
};

export type SearchOptions = { readonly maxTokens: number; readonly countTokens: CountTokens };

const maxPassages = 8;
const maxOtherPlaces = 3;

/** Characters kept ahead of a match when its passage is too long to be shown whole. */
const beforeHit = 80;

/** Searches one source or more. */
export function searchPage(sources: readonly Searched[], query: string, options: SearchOptions): string {
  const { maxTokens, countTokens } = options;
  const found = findPassages(sources, query);
  const best = found[0];
  if (best === undefined) return clip(noMatch(sources, query), maxTokens, countTokens);

  const strong = found.filter(({ isStrong }) => isStrong).slice(0, maxPassages);
  for (let count = strong.length; count > 0; count--) {
    const page = layOut(sources, joined(sources, strong.slice(0, count).map(inContext)), found);
    if (countTokens(page) <= maxTokens) return page;
  }
  return shortPage(sources, best, found, options);
}

/** The shown part of a source. */
type ShownPassage = TextSpan & { readonly from: Searched };

function inContext(passage: Passage<Searched>): ShownPassage {
  const { from } = passage;
  return { from, ...withContext(from.text, passage, from.within) };
}

/** Shows only the surroundings of the best match, as much as fits; the rest of its passage is the next place to read. */
function shortPage(
  sources: readonly Searched[],
  best: Passage<Searched>,
  found: readonly Passage<Searched>[],
  { maxTokens, countTokens }: SearchOptions,
): string {
  const { from } = best;
  const start = wholeBefore(from.text, Math.max(best.start, best.hit - beforeHit));
  const pageTo = (end: number): string => {
    const left = end < best.end ? [{ ...best, start: end, hit: end }] : [];
    return layOut(sources, [{ from, start, end }], [...left, ...found]);
  };
  let room = maxTokens - countTokens(pageTo(start));
  while (room > 0) {
    const page = pageTo(longestFit(from.text, { start, end: best.end }, room, countTokens));
    const over = countTokens(page) - maxTokens;
    if (over <= 0) return page;
    room -= over;
  }
  return clip(from.text.slice(best.hit, best.end), maxTokens, countTokens);
}

function noMatch(sources: readonly Searched[], query: string): string {
  const asked = JSON.stringify(query.trim().slice(0, 80).toWellFormed());
  const [only] = sources;
  if (only === undefined || only.id !== undefined)
    return `No match for ${asked} in all that was folded. Use fewer or other words.`;
  const place = spellRange(only.text, only.within);
  return `No match for ${asked} in lines ${place}. Use fewer or other words, or read them: ${only.callFor(place)}`;
}

function layOut(
  sources: readonly Searched[],
  shown: readonly ShownPassage[],
  found: readonly Passage<Searched>[],
): string {
  const blocks = shown.map((span) => {
    const shownText = span.from.text.slice(span.start, span.end);
    const closing = shownText.endsWith('\n') ? '' : '\n';
    return `[${placeOf(span)}]\n${shownText}${closing}`;
  });
  const isShown = ({ from, hit }: Passage<Searched>) =>
    shown.some((span) => span.from === from && hit >= span.start && hit < span.end);
  return (
    blocks.join('') +
    lastLine(
      sources,
      found.filter((passage) => !isShown(passage)),
    )
  );
}

function lastLine(sources: readonly Searched[], others: readonly Passage<Searched>[]): string {
  const [only] = sources;
  const [next] = others;
  const isNamed = only?.id !== undefined;
  if (next === undefined)
    return `[No other matches${only && !isNamed ? ` in lines ${spellRange(only.text, only.within)}` : ''}.]`;
  const named = others.slice(0, maxOtherPlaces);
  const places = isNamed ? named.map(placeOf).join(', ') : `lines ${named.map(rangeOf).join(', ')}`;
  const more = others.length > named.length ? ` and ${others.length - named.length} more` : '';
  return `[More in ${places}${more}. To read on: ${next.from.callFor(rangeOf(next))}]`;
}

function placeOf(shown: ShownPassage): string {
  const { id } = shown.from;
  return `${id === undefined ? '' : `${id} `}lines ${rangeOf(shown)}`;
}

/** Returns the range as lines are spelled: without the line break at its end, except for the one that ends the text. */
function rangeOf({ from: { text }, start, end }: ShownPassage): string {
  const isBreak = end > start && end < text.length && text[end - 1] === '\n';
  return spellRange(text, { start, end: isBreak ? end - 1 : end });
}

/** Sorts spans in the order of the texts, and joins those that overlap or touch. */
function joined(sources: readonly Searched[], spans: readonly ShownPassage[]): readonly ShownPassage[] {
  return sources.flatMap((source) => {
    const result: ShownPassage[] = [];
    const own = spans.filter(({ from }) => from === source);
    for (const next of own.toSorted((one, other) => one.start - other.start)) {
      const last = result.at(-1);
      if (last === undefined || next.start > last.end) result.push(next);
      else result[result.length - 1] = { ...last, end: Math.max(last.end, next.end) };
    }
    return result;
  });
}

// Passages that answer a query. They are ranked by BM25 over windows of some twenty lines, those that hold the whole query first.
// Each text is searched once, so there is one pass over it and no index. Pure.

/** A text, and the part of it to search. */
type Source = { readonly text: string; readonly within: TextSpan };

type Passage<From extends Source = Source> = TextSpan & {
  readonly from: From;
  /** Offset of the first match in it. */
  readonly hit: number;
  /** False for a passage that matches far less well than the best one. */
  readonly isStrong: boolean;
};

/** Characters that a passage looks beyond its window, so that a match across the border is found. */
const lookAhead = 64;

/** Maximum characters across the border of a window in which the whole query is searched. */
const maxAcross = 1_500;

/** Minimum share of the best score for a strong passage. */
const strongShare = 0.15;

/** Maximum passages that are compared with each other, and that are chosen from them. */
const maxCompared = 64;
const maxChosen = 8;

/** The way in which a window holds the query: exactly, but for upper and lower case, or only some of its words. */
type Tier = 'exact' | 'any-case' | 'words';
const tiers: readonly Tier[] = ['exact', 'any-case', 'words'];

/** A query and its words. `whole` is the query as the searched text spells it. */
type Query = { readonly whole: string; readonly lower: string; readonly terms: readonly QueryTerm[] };
type Match<From> = TextSpan & {
  readonly from: From;
  readonly hit: number;
  readonly tier: Tier;
  readonly counts: readonly number[];
};

/**
 * Returns passages of all sources, the best first. When some passage holds the whole query, those with only some of its words are
 * left out. Empty when nothing matches.
 */
export function findPassages<From extends Source>(
  sources: readonly From[],
  wanted: string,
): readonly Passage<From>[] {
  const trimmed = wanted.trim();
  if (trimmed === '') return [];
  const spellings = spellingsOf(trimmed);
  const terms = [...queryTerms(trimmed), ...queryPhrases(trimmed)];
  const matches: Match<From>[] = [];
  const holding = terms.map(() => 0);
  let windows = 0;
  for (const from of sources) {
    const { text, within } = from;
    const whole = spellings.find((spelling) => holdsWhole(from, spelling)) ?? trimmed;
    const query: Query = { whole, lower: whole.toLowerCase(), terms };
    let exactAt = text.indexOf(whole, within.start);
    for (const window of windowsOf(text, within)) {
      windows++;
      if (exactAt >= 0 && exactAt < window.start) exactAt = text.indexOf(whole, window.start);
      const isExact = exactAt >= 0 && exactAt < window.end && exactAt + whole.length <= within.end;
      const match = matchIn(from, window, query, isExact ? exactAt : undefined);
      if (match === undefined) continue;
      matches.push(match);
      for (const [index, count] of match.counts.entries()) if (count > 0) holding[index]! += 1;
    }
  }
  const worth = holding.map((count, term) => rarityOf(count, windows) * terms[term]!.weight);
  return rank(matches, worth);
}

function holdsWhole({ text, within }: Source, spelling: string): boolean {
  const at = text.indexOf(spelling, within.start);
  return at >= 0 && at + spelling.length <= within.end;
}

function matchIn<From extends Source>(
  from: From,
  window: TextSpan,
  query: Query,
  exactAt: number | undefined,
): Match<From> | undefined {
  const { text, within } = from;
  const length = window.end - window.start;
  const beyond = Math.max(lookAhead, Math.min(query.whole.length, maxAcross));
  const lower = text.slice(window.start, Math.min(within.end, window.end + beyond)).toLowerCase();
  const counted = query.terms.map(({ text: term }) => countTerm(lower, term, length));
  const wholeAt = lower.indexOf(query.lower);
  const isAnyCase = wholeAt >= 0 && wholeAt < length;
  const first = counted.reduce((min, { first: at }) => Math.min(min, at), isAnyCase ? wholeAt : Infinity);
  if (exactAt === undefined && first === Infinity) return undefined;

  const tier = exactAt !== undefined ? 'exact' : isAnyCase ? 'any-case' : 'words';
  const hit = exactAt ?? wholeBefore(text, Math.min(window.start + first, window.end - 1));
  const hitEnd = wholeAfter(text, Math.min(hit + query.whole.length, within.end));
  const end = tier === 'words' ? window.end : Math.max(window.end, hitEnd);
  return { from, start: window.start, end, hit, tier, counts: counted.map(({ count }) => count) };
}

/** Sorts passages by score. `worth` is the score of finding each term. Of equal passages the one found first comes first. */
function rank<From extends Source>(
  matches: readonly Match<From>[],
  worth: readonly number[],
): readonly Passage<From>[] {
  const isWholeThere = matches.some(({ tier }) => tier !== 'words');
  const scored = matches
    .filter(({ tier }) => !isWholeThere || tier !== 'words')
    .map((match) => ({ match, score: score(match, worth), order: tiers.indexOf(match.tier) }))
    .sort((one, other) => one.order - other.order || other.score - one.score);
  const best = scored[0]?.score ?? 0;
  return byNovelty(scored, worth).map(({ match: { from, start, end, hit, tier }, score: own }) => {
    return { from, start, end, hit, isStrong: tier !== 'words' || own >= best * strongShare };
  });
}

/**
 * Returns the best passage, then each time the one that adds most to those before it: words that an earlier passage holds count a
 * third. Passages that hold the whole query keep their order.
 */
function byNovelty<Scored extends { readonly match: Match<Source> }>(
  scored: readonly Scored[],
  worth: readonly number[],
): readonly Scored[] {
  if (scored[0]?.match.tier !== 'words') return scored;
  const wanted = [...worth];
  const left = scored.slice(0, maxCompared);
  const chosen: Scored[] = [];
  while (left.length > 0 && chosen.length < maxChosen) {
    const gains = left.map(({ match }) => score(match, wanted));
    const [next] = left.splice(gains.indexOf(Math.max(...gains)), 1);
    chosen.push(next!);
    for (const [term, count] of next!.match.counts.entries()) if (count >= 1) wanted[term] = worth[term]! / 3;
  }
  return [...chosen, ...left, ...scored.slice(maxCompared)];
}

/** Computes the score of a passage. Lengths are in characters, so that unmatched text is not split into words. */
function score({ start, end, counts }: Match<Source>, worth: readonly number[]): number {
  return bm25(counts, worth, (end - start) / maxAcross);
}

const linesPerWindow = 20;
const minCharacters = 400;
const maxCharacters = 1_500;
const contextLines = 2;
const contextCharacters = 150;

/** Yields disjoint windows that cover the span: whole lines if they are short enough, else pieces of a line. */
export function* windowsOf(text: string, { start, end }: TextSpan): Generator<TextSpan> {
  for (let from = start; from < end; ) {
    const to = windowEnd(text, from, end);
    yield { start: from, end: to };
    from = to;
  }
}

function windowEnd(text: string, from: number, end: number): number {
  const limit = Math.min(end, from + maxCharacters);
  let lines = 0;
  let lastBreak = from;
  for (let at = from; at < limit; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue;
    lastBreak = at + 1;
    lines++;
    if (lines >= linesPerWindow && lastBreak - from >= minCharacters) return lastBreak;
  }
  if (limit === end) return end;
  return lastBreak > from ? lastBreak : wholeBefore(text, limit);
}

/** Returns the span with up to two lines or 150 characters more on each side, ending at line ends where possible. */
function withContext(text: string, { start, end }: TextSpan, within: TextSpan): TextSpan {
  const earliest = wholeBefore(text, Math.max(within.start, start - contextCharacters));
  const latest = wholeAfter(text, Math.min(within.end, end + contextCharacters));
  return { start: linesBack(text, start, earliest), end: linesOn(text, end, latest) };
}

/** Returns the start of the second line before `start`, or of as many as begin at or after `earliest`. */
function linesBack(text: string, start: number, earliest: number): number {
  let reached: number | undefined;
  let lines = 0;
  for (let at = start - 1; at >= earliest && lines < contextLines; at--) {
    const isStart = at === 0 || text.charCodeAt(at - 1) === 0x0a;
    if (!isStart) continue;
    reached = at;
    lines++;
  }
  const isLineStart = start === 0 || text.charCodeAt(start - 1) === 0x0a;
  return reached ?? (isLineStart ? start : earliest);
}

/** Returns the end of the second line after `end`, or of as many as end at or before `latest`. */
function linesOn(text: string, end: number, latest: number): number {
  let reached: number | undefined;
  let lines = 0;
  for (let at = end; at < latest && lines < contextLines; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue;
    reached = at + 1;
    lines++;
  }
  if (latest === text.length && lines < contextLines) return latest;
  const isLineEnd = end > 0 && text.charCodeAt(end - 1) === 0x0a;
  return reached ?? (isLineEnd ? end : latest);
}
