/**
 * Lays out the passages that answer a query, in the order of the text and under a token cap, each with its place in the
 * spelling of `lines`; the last line names where else it matches. Pure.
 */
import { clip, longestFit } from '../conversation/fit.ts';
import { wholeBefore } from '../conversation/code-points.ts';
import { spellRange } from './lines.ts';
import type { Stretch } from './lines.ts';
import type { PageOptions } from './page.ts';
import { findPassages } from './passages.ts';
import type { Passage } from './passages.ts';
import { withContext } from './windows.ts';

const mostPassages = 8;
const mostOtherPlaces = 3;

/** Characters kept in front of a hit where its passage is too long to be shown whole. */
const beforeHit = 80;

export function searchPage(text: string, within: Stretch, query: string, options: PageOptions): string {
  const { maxTokens, countTokens, callFor } = options;
  const found = findPassages(text, within, query);
  const place = spellRange(text, within);
  const best = found[0];
  if (best === undefined) {
    const asked = JSON.stringify(query.trim().slice(0, 80).toWellFormed());
    const page = `No match for ${asked} in lines ${place}. Use fewer or other words, or read them: ${callFor(place)}`;
    return clip(page, maxTokens, countTokens);
  }

  const strong = found.filter(({ isStrong }) => isStrong).slice(0, mostPassages);
  for (let count = strong.length; count > 0; count--) {
    const shown = joined(strong.slice(0, count).map((passage) => withContext(text, passage, within)));
    const page = layOut(text, within, shown, found, options);
    if (countTokens(page) <= maxTokens) return page;
  }
  return shortPage(text, within, best, found, options);
}

/** Only the neighbourhood of the best hit, as much of it as fits; what is left of its passage is the next place to read. */
function shortPage(
  text: string,
  within: Stretch,
  best: Passage,
  found: readonly Passage[],
  options: PageOptions,
): string {
  const { maxTokens, countTokens } = options;
  const start = wholeBefore(text, Math.max(best.start, best.hit - beforeHit));
  const pageTo = (end: number): string => {
    const left = end < best.end ? [{ ...best, start: end, hit: end }] : [];
    return layOut(text, within, [{ start, end }], [...left, ...found], options);
  };
  let room = maxTokens - countTokens(pageTo(start));
  while (room > 0) {
    const page = pageTo(longestFit(text, { start, end: best.end }, room, countTokens));
    const over = countTokens(page) - maxTokens;
    if (over <= 0) return page;
    room -= over;
  }
  return clip(text.slice(best.hit, best.end), maxTokens, countTokens);
}

function layOut(
  text: string,
  within: Stretch,
  shown: readonly Stretch[],
  found: readonly Passage[],
  { callFor }: PageOptions,
): string {
  const blocks = shown.map((stretch) => {
    const shownText = text.slice(stretch.start, stretch.end);
    const closing = shownText.endsWith('\n') ? '' : '\n';
    return `[lines ${spellRange(text, withoutLastBreak(text, stretch))}]\n${shownText}${closing}`;
  });
  const others = found.filter(({ hit }) => !shown.some(({ start, end }) => hit >= start && hit < end));
  return blocks.join('') + lastLine(text, within, others, callFor);
}

function lastLine(
  text: string,
  within: Stretch,
  others: readonly Passage[],
  callFor: PageOptions['callFor'],
): string {
  const places = others
    .slice(0, mostOtherPlaces)
    .map((other) => spellRange(text, withoutLastBreak(text, other)));
  if (places[0] === undefined) return `[No other matches in lines ${spellRange(text, within)}.]`;
  const more = others.length > places.length ? ` and ${others.length - places.length} more` : '';
  return `[More in lines ${places.join(', ')}${more}. To read on: ${callFor(places[0])}]`;
}

/** In the order of the text, those that overlap or touch made one. */
function joined(stretches: readonly Stretch[]): readonly Stretch[] {
  const result: Stretch[] = [];
  for (const next of stretches.toSorted((one, other) => one.start - other.start)) {
    const last = result.at(-1);
    if (last === undefined || next.start > last.end) result.push(next);
    else result[result.length - 1] = { start: last.start, end: Math.max(last.end, next.end) };
  }
  return result;
}

/** As lines are spelled: without the break behind them, but for the one that ends the text. */
function withoutLastBreak(text: string, { start, end }: Stretch): Stretch {
  const isBreak = end > start && end < text.length && text[end - 1] === '\n';
  return { start, end: isBreak ? end - 1 : end };
}
