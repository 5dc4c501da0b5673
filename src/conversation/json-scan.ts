/**
 * Finds the spans of values in JSON bytes without parsing them: it jumps from quote to quote and counts brackets in between. It
 * checks only the structure it walks over; a value is parsed once (`parseSpan`) before it is trusted, and that is remembered by
 * its digest. Small values, such as the arguments of a call, are read with `JSON.parse`.
 */
import type { Span } from './conversation.ts';

/** One member of an object: its decoded key, the span from the key's quote to the end of the value, and the value's span. */
export type Member = {
  readonly key: string;
  readonly span: Span;
  readonly value: Span;
  /** The elements of the value, if they were asked for and it is an array. */
  readonly elements: readonly Span[] | undefined;
};

/** Thrown by the scanner and the readers; codecs turn it into `not-this-format`. */
export class ScanError extends Error {
  override readonly name = 'ScanError';
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const none: ReadonlySet<string> = new Set();

/**
 * Returns the members of the object that starts at `start` (its brace), in order, duplicates included. Elements of the arrays
 * under the keys in `lists` are found in the same pass. `known` returns the first elements of an array that were found before in
 * the same bytes.
 */
export function scanObject(
  bytes: Uint8Array,
  start: number,
  lists: ReadonlySet<string> = none,
  known?: (start: number) => readonly Span[],
): { readonly members: readonly Member[]; readonly span: Span } {
  const members: Member[] = [];
  let at = skipSpace(bytes, expectByte(bytes, start, OPEN_BRACE));
  if (bytes[at] === CLOSE_BRACE) return { members, span: { start, end: at + 1 } };
  for (;;) {
    if (bytes[at] !== QUOTE) throw new ScanError(`expected a key at byte ${at}`);
    const keyEnd = skipString(bytes, at);
    const valueStart = skipSpace(bytes, expectByte(bytes, skipSpace(bytes, keyEnd), COLON));
    const key = decodeKey(bytes, { start: at, end: keyEnd });
    const list =
      bytes[valueStart] === OPEN_BRACKET && lists.has(key)
        ? scanArray(bytes, valueStart, known?.(valueStart))
        : undefined;
    const valueEnd = list ? list.span.end : skipValue(bytes, valueStart);
    members.push({
      key,
      span: { start: at, end: valueEnd },
      value: { start: valueStart, end: valueEnd },
      elements: list?.elements,
    });
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return { members, span: { start, end: at + 1 } };
    at = skipSpace(bytes, expectByte(bytes, at, COMMA));
  }
}

/**
 * Returns the elements of the array that starts at `start` (its bracket). `known` are its first elements, if they were found
 * before.
 */
export function scanArray(
  bytes: Uint8Array,
  start: number,
  known: readonly Span[] = [],
): { readonly elements: readonly Span[]; readonly span: Span } {
  const elements = [...known];
  let at = skipSpace(bytes, elements.at(-1)?.end ?? expectByte(bytes, start, OPEN_BRACKET));
  if (bytes[at] === CLOSE_BRACKET) return { elements, span: { start, end: at + 1 } };
  if (elements.length > 0) at = skipSpace(bytes, expectByte(bytes, at, COMMA));
  for (;;) {
    const end = skipValue(bytes, at);
    elements.push({ start: at, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_BRACKET) return { elements, span: { start, end: at + 1 } };
    at = skipSpace(bytes, expectByte(bytes, at, COMMA));
  }
}

/** Returns the first elements, at most `most`, of the array that starts at `start`; the rest is not scanned. */
export function firstElements(bytes: Uint8Array, start: number, most: number): readonly Span[] {
  const elements: Span[] = [];
  let at = skipSpace(bytes, expectByte(bytes, start, OPEN_BRACKET));
  while (elements.length < most && bytes[at] !== CLOSE_BRACKET) {
    if (elements.length > 0) at = skipSpace(bytes, expectByte(bytes, at, COMMA));
    const end = skipValue(bytes, at);
    elements.push({ start: at, end });
    at = skipSpace(bytes, end);
  }
  return elements;
}

/** Parses one value in full: the only check that the bytes between two brackets really are JSON. */
export function parseSpan(bytes: Uint8Array, span: Span): unknown {
  try {
    return JSON.parse(decoder.decode(bytes.subarray(span.start, span.end)));
  } catch (cause) {
    throw new ScanError(`not JSON between bytes ${span.start} and ${span.end}`, { cause });
  }
}

/** Returns the position of the first byte at or after `at` that is not JSON white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let byte = bytes[at];
  while (byte === 32 || byte === 10 || byte === 13 || byte === 9) byte = bytes[++at];
  return at;
}

/** Nearly every key is a short plain word: those need no parser. */
function decodeKey(bytes: Uint8Array, span: Span): string {
  let key = '';
  for (let at = span.start + 1; at < span.end - 1; at++) {
    const byte = bytes[at]!;
    if (byte < 32 || byte > 126 || byte === BACKSLASH || key.length > 40)
      return parseSpan(bytes, span) as string;
    key += String.fromCharCode(byte);
  }
  return key;
}

/** Returns the position after the value that starts at `at`. Linear, without recursion, whatever the depth. */
function skipValue(bytes: Uint8Array, at: number): number {
  const first = bytes[at];
  if (first === QUOTE) return skipString(bytes, at);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipContainer(bytes, at);
  const end = skipScalar(bytes, at);
  if (end === at) throw new ScanError(`expected a value at byte ${at}`);
  return end;
}

function skipContainer(bytes: Uint8Array, start: number): number {
  const length = bytes.length;
  let depth = 0;
  let at = start;
  while (at < length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = skipString(bytes, at);
      continue;
    }
    at++;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at;
  }
  throw new ScanError(`no end to what begins at byte ${start}`);
}

/**
 * Returns the position after the closing quote. The first bytes are checked one by one, which is faster for short strings and for
 * close escaped quotes; after them it jumps to the next quote. A quote closes when an even number of backslashes precedes it.
 */
function skipString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    for (const near = at + 16; at < near; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at++;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) throw new ScanError(`no end to the string that begins at byte ${start}`);
    let back = quote - 1;
    while (back >= at && bytes[back] === BACKSLASH) back--;
    at = quote + 1;
    if ((quote - back) % 2 === 1) return at;
  }
}

function skipScalar(bytes: Uint8Array, at: number): number {
  for (;;) {
    const byte = bytes[at];
    if (byte === undefined || byte <= 32 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET)
      return at;
    at++;
  }
}

function expectByte(bytes: Uint8Array, at: number, wanted: number): number {
  if (bytes[at] === wanted) return at + 1;
  throw new ScanError(`expected '${String.fromCharCode(wanted)}' at byte ${at}`);
}

// Small values that are read with `JSON.parse`

export type JsonRecord = Readonly<Record<string, unknown>>;

/** Returns undefined for a text that is not the JSON of an object. */
export function parseRecord(json: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
