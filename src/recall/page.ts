/**
 * Lays out a stretch of a text under a token cap: the text, then one line that says which part it is and how to call for
 * the rest. Following the calls to their end and joining what came (pieces in lines by `\n`, pieces in characters as they
 * are) gives back exactly the stretch. Pure.
 */
import { clip, longestFit } from '../conversation/fit.ts';
import type { CountTokens } from '../conversation/fit.ts';
import { countLines, spellPlace, spellRange, unitOf } from './lines.ts';
import type { Stretch, Unit } from './lines.ts';

export type PageOptions = {
  readonly maxTokens: number;
  readonly countTokens: CountTokens;
  /** The arguments, as JSON, of the call that reads the range given in the spelling of `lines`. */
  readonly callFor: (lines: string) => string;
};

/** A whole text that fits comes back as it is, without a last line; every other page has one. */
export function pageOf(text: string, wanted: Stretch, options: PageOptions): string {
  const { maxTokens, countTokens } = options;
  const isWhole = wanted.start === 0 && wanted.end === text.length;
  if (isWhole && longestFit(text, wanted, maxTokens, countTokens) === wanted.end) return text;

  const total = { lines: countLines(text), characters: text.length };
  const likely = lastLine(
    text,
    wanted.start,
    { end: wanted.end, unit: 'characters', rest: wanted },
    total,
    options,
  );
  let room = maxTokens - countTokens(likely);
  while (room > 0) {
    const cut = cutAt(text, wanted, longestFit(text, wanted, room, countTokens));
    if (cut.rest !== undefined && cut.rest.start === wanted.start) break;
    const page = `${text.slice(wanted.start, cut.end)}\n${lastLine(text, wanted.start, cut, total, options)}`;
    const over = countTokens(page) - maxTokens;
    if (over <= 0) return page;
    room = Math.min(room - over, cut.rest === undefined ? room : Math.ceil(room * 0.99));
  }
  return clip('[The cap on what one call may return is too small to read this.]', maxTokens, countTokens);
}

type Cut = { readonly end: number; readonly unit: Unit; readonly rest: Stretch | undefined };

/** Ends the page behind a line where there is one, else behind a code point. */
function cutAt(text: string, wanted: Stretch, fitting: number): Cut {
  if (fitting >= wanted.end) return { end: wanted.end, unit: unitOf(text, wanted), rest: undefined };
  const before = text.lastIndexOf('\n', Math.min(fitting, wanted.end - 2));
  if (before < wanted.start) {
    return { end: fitting, unit: 'characters', rest: { start: fitting, end: wanted.end } };
  }
  const rest = { start: before + 1, end: wanted.end };
  // A page that began within a line has to keep the break it ends with: nothing else would say it was there.
  const beganWithLine = wanted.start === 0 || text[wanted.start - 1] === '\n';
  return beganWithLine ? { end: before, unit: 'lines', rest } : { end: before + 1, unit: 'characters', rest };
}

function lastLine(
  text: string,
  start: number,
  cut: Cut,
  total: Readonly<Record<Unit, number>>,
  { callFor }: PageOptions,
): string {
  const place = spellPlace(text, { start, end: cut.end }, cut.unit);
  const noun = cut.unit === 'characters' ? 'Characters' : place.includes('-') ? 'Lines' : 'Line';
  const rest = cut.rest === undefined ? '' : ` For the rest: ${callFor(spellRange(text, cut.rest))}`;
  return `[${noun} ${place} of ${total[cut.unit]}.${rest}]`;
}
