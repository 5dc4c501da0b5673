/**
 * The lines of a text as numbers, to be compared with those of other texts: a hash of what each says, and the number before it where it
 * stands in a listing. Small, so that it can be kept while the text itself is not.
 */
import { isOurs, isShrunk } from './markers.ts';

export type TextLines = {
  /** Of what stands behind the number. 0 for a line that is never said to be the same as another. */
  readonly hashes: Uint32Array;
  /** The number before each line; -1 for a line without. */
  readonly numbers: Int32Array;
  /** True where lines of ours say what the others mean: then they mean nothing by themselves. */
  readonly isLaidOut: boolean;
};

export function readLines(text: string): TextLines {
  const hashes: number[] = [];
  const numbers: number[] = [];
  for (let start = 0; start <= text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    const behind = behindNumber(text, start, end);
    numbers.push(behind < 0 ? -1 : numberBefore(text, start, behind));
    // The sign between number and line is part of what the line says.
    hashes.push(isApart(text, start, end) ? 0 : hashOf(text, behind < 0 ? start : behind - 1, end));
    start = end + 1;
  }
  return {
    hashes: Uint32Array.from(hashes),
    numbers: Int32Array.from(numbers),
    isLaidOut: isShrunk(text),
  };
}

/** Where the line goes on behind its number and the sign after it; -1 for a line without. */
function behindNumber(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && text.charCodeAt(at) === SPACE) at++;
  const first = at;
  while (at < end && isDigit(text.charCodeAt(at))) at++;
  const digits = at - first;
  if (digits === 0 || digits > 7 || at === end) return -1;
  const sign = text.charCodeAt(at);
  return sign === ARROW || sign === TAB ? at + 1 : -1;
}

function numberBefore(text: string, start: number, behind: number): number {
  return Number(text.slice(start, behind - 1));
}

/** Our own lines, and what clients tell the model beside a result: that is said again on purpose. */
function isApart(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start);
  if (first === BRACKET) return isOurs(text.slice(start, end));
  return first === ANGLE && /^<\/?system/.test(text.slice(start, start + 8));
}

const SPACE = 0x20;
const TAB = 0x09;
const ARROW = 0x2192;
const BRACKET = 0x5b;
const ANGLE = 0x3c;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** FNV-1a, never 0. */
function hashOf(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0 || 1;
}
