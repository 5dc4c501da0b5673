/** Cuts a text into windows to search in, and gives a window some context to be read in. Pure, linear. */
import { wholeAfter, wholeBefore } from '../conversation/code-points.ts';
import type { Stretch } from './lines.ts';

const linesPerWindow = 20;
const leastCharacters = 400;
const mostCharacters = 1_500;
const contextLines = 2;
const contextCharacters = 150;

/** Disjoint windows that cover the stretch: whole lines where they are short enough, pieces of a line where not. */
export function* windowsOf(text: string, { start, end }: Stretch): Generator<Stretch> {
  for (let from = start; from < end; ) {
    const to = windowEnd(text, from, end);
    yield { start: from, end: to };
    from = to;
  }
}

function windowEnd(text: string, from: number, end: number): number {
  const limit = Math.min(end, from + mostCharacters);
  let lines = 0;
  let lastBreak = from;
  for (let at = from; at < limit; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue;
    lastBreak = at + 1;
    lines++;
    if (lines >= linesPerWindow && lastBreak - from >= leastCharacters) return lastBreak;
  }
  if (limit === end) return end;
  return lastBreak > from ? lastBreak : wholeBefore(text, limit);
}

/** The stretch with up to two lines or 150 characters more on each side; ends of lines are kept where they are near. */
export function withContext(text: string, { start, end }: Stretch, within: Stretch): Stretch {
  const earliest = wholeBefore(text, Math.max(within.start, start - contextCharacters));
  const latest = wholeAfter(text, Math.min(within.end, end + contextCharacters));
  return { start: linesBack(text, start, earliest), end: linesOn(text, end, latest) };
}

/** The start of the second line before `start`, or of as many as begin at or after `earliest`. */
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

/** The end of the second line after `end`, or of as many as end at or before `latest`. */
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
