/**
 * Decodes long texts piece by piece, so that other requests can run in between, and remembers the last ones: several passes over a
 * request need the same text.
 */
import { LRUCache } from 'lru-cache';
import type { Steps } from './steps.ts';

/** The place of a literal. Its identity is the key under which the text is remembered. */
type LiteralSpan = { readonly start: number; readonly end: number };

/** Bytes of the shortest literal that is decoded piece by piece and remembered. */
export const minLongBytes = 65_536;

/** UTF-16 units of all texts that are remembered: those of one large request. */
const maxRemembered = 16_000_000;

/** Bytes of a piece: about 1 ms. */
const pieceBytes = 131_072;

const remembered = new LRUCache<LiteralSpan, string>({
  maxSize: maxRemembered,
  sizeCalculation: (text) => text.length + 1,
});

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
