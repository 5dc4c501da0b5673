/**
 * Searches originals for a query, and shows the places that answer it, under a token cap. A query that stands in the texts as it is gets the lines
 * around it; other queries get the places that share most with it, ranked in rank.ts, a few lines of each. The last line names other places. Pure.
 */
import { type CountTokens, clip, longestFit, wholeBefore } from '../conversation/messages.ts';
import type { Steps } from '../conversation/steps.ts';
import { groupBy } from '../es2024.ts';
import { mentionsFor } from './mentions.ts';
import { type RankedPart, rankPlaces, word } from './rank.ts';
import { type TextSpan, contentOf, spellRange } from './text-ranges.ts';
import {
  type Passage,
  type Place,
  type Searched,
  findWhole,
  joined,
  kindOfTitle,
  sectionAt,
  textOf,
  withContext,
  worthOf,
} from './whole-matches.ts';

export type SearchOptions = {
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
  /** True for a text that the model still sees. Default: it sees none. */
  readonly isShown?: ((text: string) => boolean) | undefined;
};

/** Tokens of an answer to a query of words. */
const maxWordTokens = 1_550;

const maxOtherPlaces = 3;

/** Searches one source or more. */
export function* searchPage(
  sources: readonly Searched[],
  query: string,
  options: SearchOptions,
): Steps<string> {
  const [whole, ...others] = yield* findWhole(sources, query.trim());
  if (whole !== undefined)
    return wholePage({ sources, query, mentions: () => '' }, [whole, ...others], options);
  const places = yield* wordPlaces(sources, query);
  yield;
  const [best] = places;
  if (best === undefined) return clip(noMatch(sources, query), options.maxTokens, options.countTokens);
  const mentions = yield* mentionsFor(sources, query, options.isShown);
  return wordPage({ sources, query, mentions }, [best, ...places.slice(1)], options);
}

/** True if a search finds anything. */
export function* findsAny(sources: readonly Searched[], query: string): Steps<boolean> {
  const whole = yield* findWhole(sources, query.trim());
  return whole.length > 0 || (yield* wordPlaces(sources, query)).length > 0;
}

// Queries that stand in the texts as they are.

const maxPassages = 8;

/** Characters kept ahead of a match when its passage is too long to be shown whole. */
const beforeHit = 80;

function wholePage(search: Search, found: readonly [Passage, ...Passage[]], options: SearchOptions): string {
  const shown = found.slice(0, maxPassages).map((passage) => ({
    from: passage.from,
    ...withContext(passage.from.text, passage, passage.from.within),
  }));
  for (let count = shown.length; count > 0; count--) {
    const page = layOut(shown.slice(0, count), found, search);
    if (options.countTokens(page) <= options.maxTokens) return page;
  }
  return shortPage(search, found[0], found, options);
}

/** Shows only the surroundings of the best match, as much as fits; the rest of its passage is the next place to read. */
function shortPage(
  search: Search,
  best: Passage,
  found: readonly Passage[],
  { maxTokens, countTokens }: SearchOptions,
): string {
  const { from } = best;
  const start = wholeBefore(from.text, Math.max(best.start, best.hit - beforeHit));
  const pageTo = (end: number): string => {
    const left = end < best.end ? [{ ...best, start: end, hit: end }] : [];
    return layOut([{ from, start, end }], [...left, ...found], search);
  };
  let room = maxTokens - countTokens(pageTo(start));
  while (room > 0) {
    const page = pageTo(longestFit(from.text, { start, end: best.end }, room, countTokens));
    const over = countTokens(page) - maxTokens;
    if (over <= 0) return page;
    // Counts may have fractions: by a tiny one, this would hardly ever end.
    room -= Math.max(1, over);
  }
  return clip(from.text.slice(best.hit, best.end), maxTokens, countTokens);
}

// Queries of words.

type WordPlace = Place & {
  readonly hit: number;
  readonly limit: TextSpan;
  readonly quotes: readonly string[];
};

function* wordPlaces(sources: readonly Searched[], query: string): Steps<readonly WordPlace[]> {
  const ordered = sources.toSorted((one, other) => one.order - other.order);
  const texts = ordered.map((source) => ({ text: source.text, parts: partsOf(source) }));
  const places = yield* rankPlaces(texts, query);
  return places.map(({ text, part, start, end, quotes }) => {
    return { from: ordered[text]!, hit: start, start, end, limit: texts[text]!.parts[part]!, quotes };
  });
}

function partsOf({ sections, within, title = '' }: Searched): readonly RankedPart[] {
  if (sections.length === 0) return [{ ...within, heading: title, worth: worthOf[kindOfTitle(title)] }];
  return sections.flatMap(({ start, end, heading, kind }) => {
    const [from, to] = [Math.max(start, within.start), Math.min(end, within.end)];
    return from < to ? [{ start: from, end: to, heading: headingWords(heading), worth: worthOf[kind] }] : [];
  });
}

/** Returns a heading without the number of the message. */
function headingWords(heading: string): string {
  return heading.replace(/^\d+ of \d+ · /, '');
}

/** The number of quoted lines, far apart, that are shown first. */
const maxQuotes = 8;
/** Lines that are shown before each of them, whatever else there is room for. */
const linesBeforeQuote = 5;
/** Lines that are shown after each of them: a model quotes the beginning of what it wants. */
const linesAfterQuote = 120;
/** Lines that are shown before each of them, if there is room behind those after it. */
const linesFarBefore = 60;
/** Tokens that an answer may have more for each quote after the first. */
const tokensPerQuote = 100;

/** The number of places that are shown with lines after them when the query quotes nothing. */
const maxLonger = 3;
/** Those lines. */
const linesAfterBest = 25;

/** Shows each place, the best first, then more lines after the quoted ones, for as long as there is room. */
function wordPage(
  search: Search,
  found: readonly [WordPlace, ...WordPlace[]],
  options: SearchOptions,
): string {
  const { countTokens } = options;
  const page = (shown: readonly WordPlace[]) => layOut(shown, found, search);
  const quoted = apart(found.filter(({ quotes }) => quotes.length > 0))
    .slice(0, maxQuotes)
    .map((place) => linesBefore(place, linesBeforeQuote));
  const more = tokensPerQuote * Math.max(0, quoted.length - 1);
  const maxTokens = Math.min(options.maxTokens, maxWordTokens + more);
  let shown: readonly WordPlace[] = [];
  let left = maxTokens - lastLineTokens - countTokens(search.mentions(''));
  const put = (place: WordPlace, room = left): boolean => {
    const own = shown.find(({ hit, from }) => hit === place.hit && from === place.from);
    if (!isNews(place, own, shown)) return true;
    const before = own === undefined ? headTokens : -countTokens(textOf(own));
    const cost = countTokens(textOf(place)) + before;
    if (cost > room) return false;
    shown = own === undefined ? [...shown, place] : shown.map((one) => (one === own ? place : one));
    left -= cost;
    return true;
  };
  for (const place of quoted) put(place);
  for (const place of quoted) {
    const longer = linesAfter(place, linesAfterQuote);
    if (!put(longer)) put(fitting(longer, left + countTokens(textOf(place)), countTokens));
  }
  // A query of quotes alone asks for their place. With other words, it may be about the lines before a quote.
  if (!isQuoteOnly(search.query, quoted))
    for (const { hit, from } of quoted) {
      const place = shown.find((one) => one.hit === hit && one.from === from);
      if (place)
        put(fittingBefore(place, linesFarBefore, left / 2 + countTokens(textOf(place)), countTokens));
    }
  // Without a quote, a definition that a place begins with is likely to go on after it.
  const isIn = (place: WordPlace): boolean =>
    shown.some(({ from, start, end }) => from === place.from && place.start >= start && place.end <= end);
  if (quoted.length === 0)
    for (const place of found.slice(0, maxLonger)) if (!isIn(place)) put(linesAfter(place, linesAfterBest));
  let misfits = 0;
  for (const place of found) if (!isIn(place) && !put(place) && ++misfits === maxMisfits) break;
  for (let tries = 0; shown.length > 0; tries++) {
    const text = page(shown);
    const over = countTokens(text) - maxTokens;
    if (over <= 0) return text;
    const [only] = shown;
    if (shown.length > 1) shown = shown.slice(0, -1);
    else
      shown =
        tries > maxPlacesTried ? [] : [fitting(only!, countTokens(textOf(only!)) - over - 1, countTokens)];
    if (shown.every(({ start, end }) => start === end)) break;
  }
  return shortPage(search, found[0], found, options);
}

/** Estimated tokens of the line above a place, and of the last line of an answer. */
const headTokens = 30;
const lastLineTokens = 80;
/** Places without room that are passed over for shorter ones. */
const maxMisfits = 4;
const maxPlacesTried = 50;

/** The least share of a place, or of the lines that it grows by, that the answer does not show already. */
const minNews = 0.4;

/** False if the answer already shows most of a place, or of the lines that `own` would grow by: other versions of a file repeat it. */
function isNews(place: WordPlace, own: WordPlace | undefined, shown: readonly WordPlace[]): boolean {
  if (shown.length === 0) return true;
  const { from, start, end } = place;
  const lines =
    own === undefined
      ? contentOf(textOf(place))
      : [...contentOf(from.text.slice(start, own.start)), ...contentOf(from.text.slice(own.end, end))];
  const seen = new Set(shown.flatMap((one) => (one === own ? [] : contentOf(textOf(one)))));
  const news = lines.filter((line) => !seen.has(line));
  return news.join('').length >= minNews * lines.join('').length;
}

function linesAfter(place: WordPlace, lines: number): WordPlace {
  let { end } = place;
  for (let count = 0; count < lines && end < place.limit.end; count++) {
    const next = place.from.text.indexOf('\n', end);
    end = next < 0 ? place.limit.end : Math.min(place.limit.end, next + 1);
  }
  return { ...place, end };
}

function linesBefore(place: WordPlace, lines: number): WordPlace {
  let { start } = place;
  for (let count = 0; count < lines && start > place.limit.start; count++)
    start = Math.max(place.limit.start, place.from.text.lastIndexOf('\n', start - 2) + 1);
  return { ...place, start };
}

/** Leaves out places among the lines that follow an earlier one, and those that quote nothing new. */
function apart(places: readonly WordPlace[]): readonly WordPlace[] {
  const kept: WordPlace[] = [];
  const seen = new Set<string>();
  for (const place of places) {
    const isNear = kept
      .map((one) => linesAfter(one, linesAfterQuote))
      .some(({ from, start, end }) => from === place.from && place.start >= start && place.end <= end);
    if (!isNear && place.quotes.some((quote) => !seen.has(quote))) kept.push(place);
    for (const quote of place.quotes) seen.add(quote);
  }
  return kept;
}

/** Returns as many whole lines of the place as fit. */
function fitting(place: WordPlace, room: number, countTokens: CountTokens): WordPlace {
  const end = longestFit(place.from.text, place, room, countTokens);
  const line = end === place.end ? end : place.from.text.lastIndexOf('\n', end - 1) + 1;
  return { ...place, end: Math.max(place.start, line) };
}

/** Returns the place with as many of the lines before it as fit. */
function fittingBefore(place: WordPlace, lines: number, room: number, countTokens: CountTokens): WordPlace {
  let [few, many] = [0, lines];
  while (few < many) {
    const middle = Math.ceil((few + many) / 2);
    if (countTokens(textOf(linesBefore(place, middle))) <= room) few = middle;
    else many = middle - 1;
  }
  return linesBefore(place, few);
}

/** True if a query has little besides the lines that it quotes. */
function isQuoteOnly(query: string, quoted: readonly WordPlace[]): boolean {
  const quotes = new Set(quoted.flatMap((place) => place.quotes));
  const rest = [...quotes].reduce((left, quote) => left.replaceAll(quote, ''), query);
  return (rest.match(word) ?? []).length < minOtherWords;
}

/** Words beside its quotes that a query has, if it is about more than these. */
const minOtherWords = 3;

// The page.

/** A query, the texts that it searches, and what spells files and names which it may be about. */
type Search = {
  readonly sources: readonly Searched[];
  readonly query: string;
  readonly mentions: (answer: string) => string;
};

const maxHeading = 120;

/**
 * Creates a function that shortens headings: without the number of the message, and with the last name alone of a path that the model has in its
 * query or has read in this answer.
 */
function createShortening(query: string): (heading: string) => string {
  const paths = /[\w./@~+-]{20,}/g;
  const known = new Set(query.slice(0, 2_000).match(paths));
  return (heading) => {
    const short = headingWords(heading).replaceAll(paths, (path) => {
      if (known.has(path) && path.includes('/')) return `…${path.slice(path.lastIndexOf('/'))}`;
      known.add(path);
      return path;
    });
    return clipped(short, maxHeading);
  };
}

function clipped(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length).toWellFormed()}…` : text;
}

function noMatch(sources: readonly Searched[], query: string): string {
  const asked = JSON.stringify(query.trim().slice(0, 80).toWellFormed());
  const [only] = sources;
  if (only === undefined || only.id !== undefined)
    return `No match for ${asked} in all that was folded. Use fewer or other words.`;
  const all = { from: only, ...only.within };
  return `No match for ${asked} in ${spellPlaces([all])}. Use fewer or other words, or read them: ${only.callFor(rangeOf(all))}`;
}

/** Shows places under one line for each part of a text, in the order given, and the last line. */
function layOut(
  places: readonly Place[],
  found: readonly FoundPlace[],
  { sources, query, mentions }: Search,
): string {
  const shortened = createShortening(query);
  const groups = groupBy(joined(places), (place) => sectionAt(place) ?? place.from);
  const blocks = [...groups.values()].map((group) => {
    const [first] = group as [Place, ...Place[]];
    const { id, title } = first.from;
    const heading = sectionAt(first)?.heading ?? title;
    // A place that begins with a heading of its own needs no other.
    const isThere = heading === undefined || textOf(first).startsWith(`── ${heading}`);
    const what = isThere ? '' : ` · ${shortened(heading)}`;
    const head = `── ${id === undefined ? '' : `${id} `}${spellPlaces(group)}${what} ──\n`;
    return head + group.map((place) => textOf(place).replace(/\n?$/, '\n')).join('…\n');
  });
  const isShown = ({ from, hit }: FoundPlace) =>
    places.some((place) => place.from === from && hit >= place.start && hit < place.end);
  const answer = blocks.join('');
  const others = found.filter((place) => !isShown(place));
  return answer + mentions(answer) + lastLine(sources, others);
}

/** A place that was found. One of a query of words has the part of the text that it is in. */
type FoundPlace = Place & {
  readonly hit: number;
  readonly limit?: TextSpan;
  readonly quotes?: readonly string[];
};

/** Lines on each side of a place that the call for it reads, too: few lines are seldom worth a call. */
const linesOfCall = 60;

function widened(place: FoundPlace): Place {
  const { limit, quotes = [] } = place;
  if (limit === undefined) return place;
  return linesBefore(linesAfter({ ...place, limit, quotes }, linesOfCall), linesOfCall);
}

function lastLine(sources: readonly Searched[], others: readonly FoundPlace[]): string {
  const [[only], [next]] = [sources, others];
  const isNamed = only?.id !== undefined;
  if (next === undefined)
    return `[No other places${only && !isNamed ? ` in ${spellPlaces([{ from: only, ...only.within }])}` : ''}.]`;
  const call = next.from.callFor(rangeOf(widened(next)));
  if (next.limit !== undefined)
    return `[${others.length} other ${others.length === 1 ? 'place' : 'places'}; the next: ${call}]`;
  const named = others.slice(0, maxOtherPlaces);
  const places = isNamed
    ? named.map((place) => `${place.from.id} ${spellPlaces([place])}`).join(', ')
    : spellPlaces(named);
  const more = others.length > named.length ? ` and ${others.length - named.length} more` : '';
  return `[Other places: ${places}${more}; the next: ${call}]`;
}

/** Spells places of one text: "lines 3-5, 9", "line 3", or "characters 1-200" where they are not whole lines. */
function spellPlaces(places: readonly Place[]): string {
  const units = groupBy(places.map(rangeOf), (range) => (range.startsWith('c') ? 'characters' : 'lines'));
  const spelled = Array.from(units, ([unit, ranges]) => {
    const isOne = unit === 'lines' && ranges.length === 1 && !ranges[0]!.includes('-');
    return `${isOne ? 'line' : unit} ${ranges.map((range) => range.replace(/^c/, '')).join(', ')}`;
  });
  return spelled.join(' and ');
}

/** Returns the range as lines are spelled: without the line break at its end, except for the one that ends the text. */
function rangeOf({ from: { text }, start, end }: Place): string {
  const isBreak = end > start && end < text.length && text[end - 1] === '\n';
  return spellRange(text, { start, end: isBreak ? end - 1 : end });
}
