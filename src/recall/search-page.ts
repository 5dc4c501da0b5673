/**
 * Lays out the passages that answer a query, in the order of the texts and under a token cap, each with its lines; the last line
 * names other matches. Pure.
 */
import { type CountTokens, clip, longestFit, wholeBefore } from '../conversation/fit.ts';
import { type TextSpan, spellRange } from './read-original.ts';
import { findPassages, type Passage, type Source, withContext } from './passages.ts';

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
