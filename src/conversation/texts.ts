/**
 * Works on long texts: in steps that can be paused, so that other requests can run in between; decodes long literals and
 * remembers the last ones; finds how much of a text fits a number of tokens.
 */
import { openFixed } from '../caches.ts';

/** Work that can be paused: it yields between two steps, and returns its result at the end. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

// Decoding in steps

/** The place of a literal. Its identity is the key under which the text is remembered. */
type LiteralSpan = { readonly start: number; readonly end: number };

/** Bytes of the shortest literal that is decoded piece by piece and remembered. */
const minLongBytes = 65_536;

/** Bytes of a piece: about 1 ms. */
const pieceBytes = 131_072;

const remembered = openFixed<LiteralSpan, string>('long texts', { unitsOf: (text) => text.length + 1 });

/** Returns the text of a long literal if it was decoded lately. Bodies with the same bytes share the span object. */
export function rememberedText(span: LiteralSpan): string | undefined {
  return span.end - span.start < minLongBytes ? undefined : remembered.get(span);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes a JSON string literal (quotes included), and remembers the text of a long one by its span. */
export function* decodeInSteps(literal: Uint8Array, span: LiteralSpan): Steps<string> {
  const known = rememberedText(span);
  if (known !== undefined) return known;
  const pieces: string[] = [];
  for (let start = 1, end = 0; start < literal.length - 1; start = end) {
    end = pieceEnd(literal, start, Math.min(start + pieceBytes, literal.length - 1));
    const piece = decoder.decode(literal.subarray(start, end));
    pieces.push(piece.includes('\\') ? (JSON.parse(`"${piece}"`) as string) : piece);
    yield;
  }
  const text = pieces.join('');
  if (span.end - span.start >= minLongBytes) remembered.set(span, text);
  return text;
}

const BACKSLASH = 92;
const LETTER_U = 117;

/** Returns the last place up to `end` that is neither within a character nor within an escape. `start` is such a place. */
function pieceEnd(literal: Uint8Array, start: number, end: number): number {
  if (end === literal.length - 1) return end;
  let at = end;
  while (at > start && (literal[at]! & 0xc0) === 0x80) at--;
  for (let back = at - 1; back >= Math.max(start, at - 5); back--)
    if (literal[back] === LETTER_U && isEscaped(literal, start, back)) return back - 1;
  return isEscaped(literal, start, at) ? at - 1 : at;
}

/** True when an odd number of backslashes precedes a place. */
function isEscaped(literal: Uint8Array, start: number, place: number): boolean {
  let at = place;
  while (at > start && literal[at - 1] === BACKSLASH) at--;
  return (place - at) % 2 === 1;
}

// Finds how much of a text fits a number of tokens. The cost is in proportion to the part that fits, not to the text. Pure.

/** Counts the tokens of a text; one of `TokenCounter.count`. */
export type CountTokens = (text: string) => number;

const firstGuess = 3;
const fastestGrowth = 8;
/** Counting is the expensive step, so a fit within 3 % of the budget is as good as the best one. */
const closeEnough = 0.97;

/**
 * Returns an offset such that the text from `start` to it counts at most `budget` tokens, and little more would fit: `end` when
 * all of it fits, never inside a code point, `start` when not one code point fits.
 */
export function longestFit(
  text: string,
  { start, end }: { readonly start: number; readonly end: number },
  budget: number,
  countTokens: CountTokens,
): number {
  if (budget <= 0) return start;
  let good = start;
  let bad = end + 1;
  let guess = start + Math.ceil(budget * firstGuess);
  for (let tries = 1; good < end; tries++) {
    let to = wholeBefore(text, Math.min(guess, bad - 1));
    if (to <= good) to = wholeAfter(text, good + 1);
    if (to >= bad) return good;

    const tokens = countTokens(text.slice(start, to));
    if (tokens <= budget) good = to;
    else bad = to;
    const length = to - start;
    if (good === to && tokens >= budget * closeEnough) {
      const isNearEnd = bad > end && end - start < length * 1.05;
      if (!isNearEnd) return good;
      guess = end;
    } else {
      const likely = Math.floor(length * Math.min(fastestGrowth, (budget / Math.max(tokens, 1)) * 0.99));
      guess = start + likely;
      // When the tokens per character vary along the text, halving finds what the estimate does not.
      const isOutside = guess <= good || guess >= bad;
      if (bad <= end && (isOutside || tries % 3 === 0)) guess = good + Math.ceil((bad - good) / 2);
    }
  }
  return good;
}

/** Returns the beginning of the text that fits: the last resort for a text that could not be shortened otherwise. */
export function clip(text: string, maxTokens: number, countTokens: CountTokens): string {
  return text.slice(0, longestFit(text, { start: 0, end: text.length }, maxTokens, countTokens));
}

/** Returns the nearest offset at or before this one that does not split a surrogate pair. */
export function wholeBefore(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset - 1 : offset;
}

/** Returns the nearest offset at or after this one that does not split a surrogate pair. */
export function wholeAfter(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset + 1 : offset;
}

function isInsidePair(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/** Writes a value: names unchanged, so that they can be searched, and everything else quoted, since it is data. */
export function spellValue(value: string): string {
  return /^[\w./@:#~=-]+$/.test(value) ? value : JSON.stringify(value);
}
