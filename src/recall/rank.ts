/**
 * Ranks places of texts for a query of words: what a model has in hand when it does not know the value. Each window of a few lines is scored by
 * the words that it shares with the query, the rarer the better, by the lines around it and by the heading it stands under. Lines that the
 * query quotes count most, and newer texts a little more. Each text is read once, whatever the query. Pure.
 */
import { wholeBefore } from '../conversation/messages.ts';
import type { Steps } from '../conversation/steps.ts';
import { type TextSpan, withoutNumber } from './text-ranges.ts';

/** A part of a text under one heading. */
export type RankedPart = TextSpan & {
  /** The heading, with the path and the other arguments of a call. */
  readonly heading: string;
  /** How much its places are preferred: 1 for a result. */
  readonly worth: number;
};

/** Texts are ranked in the order of the conversation, the oldest first. */
export type RankedText = { readonly text: string; readonly parts: readonly RankedPart[] };

export type RankedPlace = TextSpan & {
  /** Indices of the text and of its part. */
  readonly text: number;
  readonly part: number;
  /** The lines in it that the query quotes. */
  readonly quotes: readonly string[];
};

const linesPerWindow = 5;
/** Characters of the longest line that is not cut into several. */
const maxLine = 400;
/** Characters of the shortest line that counts as quoted. */
const minQuote = 20;
/** Characters of the longest window whose score is not lowered for its length. */
const usualWindow = 250;
/** Lines on each side of a window whose words count for it, too. */
const linesAround = 20;
/** Points for the mean weight of the words in one of these lines. */
const worthAround = 5;
/** The share by which each quoted line in a window raises its score. */
const worthOfQuote = 1.2;
/** Points of a heading that has the path of the query. */
const worthOfPath = 8;
/** The share by which the newest text counts more than the oldest. */
const worthOfNewest = 0.15;
/** The share of its weight that a word loses when a place chosen before has it. */
const lossOfRepeats = 0.8;
/** The best windows, of each part and of all, that are compared with each other. */
const maxCompared = 400;
/** Places that are returned. */
const maxPlaces = 40;

/** Returns places without overlap, the best first, each different from those before it. Empty when no word of the query occurs. */
export function* rankPlaces(texts: readonly RankedText[], query: string): Steps<readonly RankedPlace[]> {
  const terms = queryTermsOf(query);
  const reader = createReader(terms, query);
  const parts: ReadPart[] = [];
  for (const [at, { text, parts: own }] of texts.entries())
    for (const [index, part] of own.entries()) parts.push(yield* reader.read(text, part, at, index));
  const worth = terms.weights.map((weight, term) => weight * rarity(reader.holding[term]!, reader.lines()));
  const headings = terms.weights.map(
    (weight, term) =>
      weight *
      rarity(
        parts.reduce((count, { heading }) => count + Number(heading.includes(term)), 0),
        parts.length,
      ),
  );
  const found: Window[] = [];
  for (const [at, part] of parts.entries()) {
    const ofHeading = part.heading.reduce((sum, term) => sum + headings[term]!, 0);
    const bonus = ofHeading + (part.hasPath ? worthOfPath : 0);
    const factor = part.worth * (1 + (worthOfNewest * at) / parts.length);
    found.push(...(yield* bestWindows(part, worth, bonus, factor, at)));
  }
  yield;
  found.sort((one, other) => other.score - one.score || other.order - one.order);
  return chosen(found.slice(0, maxCompared), parts, texts, worth);
}

/** The inverse document frequency of a term that `holding` of `all` lines have. */
function rarity(holding: number, all: number): number {
  return Math.log(1 + (all - holding + 0.5) / (holding + 0.5));
}

// Terms: words, their pieces (`readFile` is also `read` and `file`) without endings, and pairs of neighbors.

export const word = /[\p{L}\p{N}_]+/gu;

/** The most common words of English questions and of what models say before a call. */
const common = new Set(
  'a an and are as at be by do for from has have how i in is it let me now of on or that the this to was what when where which who why with'.split(
    ' ',
  ),
);

type Terms = {
  readonly index: ReadonlyMap<string, number>;
  readonly weights: readonly number[];
  readonly paths: ReadonlySet<string>;
};

/** Characters of a query that are read. */
export const maxQuery = 2_000;
/** The weight of a piece of a name, or of a word without its ending, relative to the whole word. */
const pieceWeight = 0.8;
/** The weight of a word that stands in a path of the query. */
const pathWeight = 0.5;

function queryTermsOf(query: string): Terms {
  const index = new Map<string, number>();
  const weights: number[] = [];
  const paths = new Set<string>();
  const add = (term: string, weight: number): void => {
    const at = index.get(term) ?? weights.length;
    index.set(term, at);
    weights[at] = Math.max(weight, weights[at] ?? 0);
  };
  let before: string | undefined;
  for (const chunk of query.slice(0, maxQuery).split(/\s+/)) {
    const path = pathIn(chunk);
    const weight = path === undefined ? 1 : pathWeight;
    if (path !== undefined) paths.add(path);
    // The folders of a path are in most paths, so only its last name is searched in texts.
    for (const found of (path === undefined ? chunk : lastName(path)).match(word) ?? []) {
      const lower = found.toLowerCase();
      const isTelling = lower.length > 1 || /[\p{N}\p{Lo}]/u.test(lower);
      if (isTelling && !common.has(lower)) add(lower, weight);
      for (const piece of piecesOf(found)) {
        if (piece.length > 1 && piece !== lower && !common.has(piece)) add(`~${piece}`, weight * pieceWeight);
      }
      if (before !== undefined) add(`${before} ${lower}`, weight);
      before = lower;
    }
    if (path !== undefined) before = undefined;
  }
  return { index, weights, paths };
}

/** Splits a name at underscores, capitals and digits, and takes endings off; text without spaces, such as Chinese, into pairs of characters. */
export function piecesOf(name: string): readonly string[] {
  const pieces = name.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|\p{Lo}+/gu) ?? [];
  return pieces.flatMap((piece) => {
    if (!/^\p{Lo}/u.test(piece)) return [withoutEnding(piece.toLowerCase())];
    const characters = Array.from(piece);
    return characters.length < 2 ? characters : characters.slice(1).map((one, at) => characters[at]! + one);
  });
}

function withoutEnding(name: string): string {
  if (name.length > 4 && name.endsWith('ies')) return `${name.slice(0, -3)}y`;
  const ending = /(?:ing|ed|es|s)$/.exec(name)?.[0] ?? '';
  return name.length - ending.length > 2 && !name.endsWith('ss')
    ? name.slice(0, name.length - ending.length)
    : name;
}

export function pathIn(chunk: string): string | undefined {
  const bare = chunk
    .slice(0, 300)
    .replace(/^[^\w/.~@]+/, '')
    .replace(/(?<![^\w/])[^\w/]+$/, '');
  return /^[\w./~@+-]+$/.test(bare) && /\w\/\w/.test(bare) ? bare : undefined;
}

export function lastName(path: string): string {
  return path.slice(path.replace(/(?<!\/)\/+$/, '').lastIndexOf('/') + 1);
}

// Reading: the terms of each line.

type Line = { readonly start: number; readonly terms: readonly number[]; readonly quote: string | undefined };

type ReadPart = {
  readonly text: number;
  readonly part: number;
  readonly end: number;
  readonly heading: readonly number[];
  /** True when the heading has a path of the query. */
  readonly hasPath: boolean;
  readonly worth: number;
  readonly lines: readonly Line[];
};

const noTerms: readonly number[] = [];

/** Lines that are read, or windows that are scored, in one step. */
const linesPerStep = 500;

/** Words remembered with their terms, because words repeat. */
const maxKnown = 50_000;

function createReader({ index, weights, paths }: Terms, query: string) {
  const holding = weights.map(() => 0);
  const known = new Map<string, readonly number[]>();
  const paired = new Set([...index.keys()].flatMap((term) => (term.includes(' ') ? term.split(' ') : [])));
  const mayHold = possibleLines(index);
  let lines = 0;

  function termsOfWord(found: string): readonly number[] {
    const remembered = known.get(found);
    if (remembered !== undefined) return remembered;
    const lower = found.toLowerCase();
    const names = [
      lower,
      ...piecesOf(found).flatMap((piece) => [`~${piece}`, ...(index.has(lower) ? [] : [piece])]),
    ];
    const terms = [...new Set(names.flatMap((name) => index.get(name) ?? []))];
    if (known.size >= maxKnown) known.clear();
    known.set(found, terms.length === 0 ? noTerms : terms);
    return terms.length === 0 ? noTerms : terms;
  }

  function termsIn(line: string): readonly number[] {
    let found: Set<number> | undefined;
    let before: string | undefined;
    if (!mayHold.test(line)) return noTerms;
    for (const own of line.match(word) ?? []) {
      const terms = termsOfWord(own);
      if (terms.length === 0) {
        before = undefined;
        continue;
      }
      found ??= new Set();
      for (const term of terms) found.add(term);
      const lower = own.toLowerCase();
      const pair = before === undefined ? undefined : index.get(`${before} ${lower}`);
      if (pair !== undefined) found.add(pair);
      before = paired.has(lower) ? lower : undefined;
    }
    return found === undefined ? noTerms : [...found];
  }

  /** Returns the line without its number, if the query quotes it. */
  function quoteIn(line: string): string | undefined {
    const own = withoutNumber(line);
    return own.length >= minQuote && query.includes(own) ? own : undefined;
  }

  return {
    holding,
    lines: () => lines,
    *read(text: string, part: RankedPart, at: number, partAt: number): Steps<ReadPart> {
      const read: Line[] = [];
      yield;
      for (let start = part.start; start < part.end; ) {
        if (read.length % linesPerStep === linesPerStep - 1) yield;
        const end = lineEnd(text, start, part.end);
        const line = text.slice(start, end);
        const terms = termsIn(line);
        for (const term of terms) holding[term]! += 1;
        read.push({ start, terms, quote: terms.length > 2 ? quoteIn(line) : undefined });
        start = end;
      }
      lines += read.length;
      const heading = part.heading.slice(0, maxLine);
      const hasPath =
        paths.size > 0 && heading.split(/[\s=]+/).some((chunk) => paths.has(pathIn(chunk) ?? ''));
      const { end, worth } = part;
      return { text: at, part: partAt, end, heading: termsIn(heading), hasPath, worth, lines: read };
    },
  };
}

/** Matches lines that may hold a term, because splitting a line into words takes long. Terms have only letters, digits and underscores. */
function possibleLines(index: ReadonlyMap<string, number>): RegExp {
  const needles = [...index.keys()].flatMap((term) =>
    // An ending that becomes a y, as in parties, is left out.
    term.includes(' ') ? [] : term.replace(/^~/, '').replace(/(?<=.)y$/, ''),
  );
  return new RegExp(needles.length === 0 ? '(?!)' : needles.join('|'), 'iu');
}

function lineEnd(text: string, start: number, end: number): number {
  const found = text.indexOf('\n', start);
  const line = found < 0 ? end : Math.min(end, found + 1);
  return line - start > maxLine ? wholeBefore(text, start + maxLine) : line;
}

// Windows.

type Window = {
  /** Index of the part among all parts, and of the first line in it. */
  readonly order: number;
  readonly line: number;
  readonly score: number;
};

/** Scores the windows of a part, and returns those that no window near them surpasses, at most `maxCompared`. */
function* bestWindows(
  { lines, end }: ReadPart,
  worth: readonly number[],
  bonus: number,
  factor: number,
  order: number,
): Steps<readonly Window[]> {
  const sums = [0];
  for (const { terms } of lines) sums.push(terms.reduce((sum, term) => sum + worth[term]!, sums.at(-1)!));
  const scores = new Float64Array(Math.max(1, lines.length - linesPerWindow + 1));
  const counts = new Map<number, number>();
  let [own, quoted] = [0, 0];
  const count = (line: Line | undefined, by: 1 | -1): void => {
    if (line?.quote !== undefined) quoted += by;
    for (const term of line?.terms ?? noTerms) {
      const next = (counts.get(term) ?? 0) + by;
      counts.set(term, next);
      if (next === (by === 1 ? 1 : 0)) own += by * worth[term]!;
    }
  };
  for (let at = 0; at < linesPerWindow; at++) count(lines[at], 1);
  for (let at = 0; at < scores.length; at++) {
    if (at % linesPerStep === 0) yield;
    const to = Math.min(lines.length, at + linesPerWindow);
    if (own > 1e-9) {
      const length = (lines[to]?.start ?? end) - lines[at]!.start;
      const [from, until] = [Math.max(0, at - linesAround), Math.min(lines.length, to + linesAround)];
      const around =
        (sums[until]! - sums[from]! - (sums[to]! - sums[at]!)) / Math.max(1, until - from - (to - at));
      const sum = own / (1 + Math.max(0, length / usualWindow - 1) / 2) + worthAround * around + bonus;
      scores[at] = sum * (1 + worthOfQuote * quoted) * factor;
    }
    count(lines[at], -1);
    count(lines[at + linesPerWindow], 1);
  }
  return peaksOf(scores, order);
}

function peaksOf(scores: Float64Array, order: number): readonly Window[] {
  let peaks: Window[] = [];
  for (let line = 0; line < scores.length; line++) {
    const score = scores[line]!;
    const isPeak =
      score > 0 &&
      score > (scores[line - 1] ?? 0) &&
      score > (scores[line - 2] ?? 0) &&
      score >= (scores[line + 1] ?? 0) &&
      score >= (scores[line + 2] ?? 0);
    if (!isPeak) continue;
    peaks.push({ order, line, score });
    if (peaks.length >= 4 * maxCompared)
      peaks = peaks.sort((one, other) => other.score - one.score).slice(0, maxCompared);
  }
  return peaks;
}

/** Returns the best place, then each time the one that adds most to those before it. */
function chosen(
  found: readonly Window[],
  parts: readonly ReadPart[],
  texts: readonly RankedText[],
  worth: readonly number[],
): readonly RankedPlace[] {
  const left = found.map((window) => ({ score: window.score, ...placeAt(window, parts[window.order]!) }));
  const places: RankedPlace[] = [];
  const seen = new Set<string>();
  const used = new Map<number, number>();
  const gain = ({ score, terms }: (typeof left)[number]): number => {
    let [all, repeated] = [1e-9, 0];
    for (const term of terms) {
      all += worth[term]!;
      repeated += worth[term]! * (1 - 1 / (1 + (used.get(term) ?? 0)));
    }
    return score * (1 - (lossOfRepeats * repeated) / all);
  };
  while (left.length > 0 && places.length < maxPlaces) {
    let [best, at] = [0, -1];
    for (const [index, one] of left.entries()) {
      if (one.score <= best) break;
      const own = gain(one);
      if (own > best) [best, at] = [own, index];
    }
    const [next] = left.splice(at, at < 0 ? 0 : 1);
    if (next === undefined) break;
    const { place, terms } = next;
    // The same lines in an older version of a file add nothing.
    const content = texts[place.text]!.text.slice(place.start, place.end)
      .replaceAll(/^\s*\d+→/gm, '')
      .trim();
    const overlaps = places.some(
      ({ text, start, end }) => text === place.text && start < place.end && end > place.start,
    );
    if (overlaps || seen.has(content)) continue;
    seen.add(content);
    places.push(place);
    for (const term of terms) used.set(term, (used.get(term) ?? 0) + 1);
  }
  return places;
}

function placeAt({ line }: Window, { text, part, lines, end }: ReadPart) {
  const own = lines.slice(line, line + linesPerWindow);
  const place: RankedPlace = {
    text,
    part,
    start: own[0]!.start,
    end: lines[line + linesPerWindow]?.start ?? end,
    quotes: own.flatMap(({ quote }) => quote ?? []),
  };
  return { place, terms: new Set(own.flatMap(({ terms }) => terms)) };
}
