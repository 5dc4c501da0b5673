/**
 * Finds the spans of values in JSON bytes without parsing them, and changes the bytes by splices. The scan jumps from quote to quote and
 * counts brackets in between. It checks only the structure it walks over; a value is parsed once (`parseSpan`) before it is
 * trusted, and that is remembered by its digest. Small values, such as the arguments of a call, are read with `JSON.parse`.
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
  const elements = firstElements(bytes, start, Number.POSITIVE_INFINITY, known);
  const end = skipSpace(bytes, elements.at(-1)?.end ?? start + 1);
  return { elements, span: { start, end: end + 1 } };
}

/** Returns the first elements of an array, at most `most`; the rest is not scanned. `known`: as in `scanArray`. */
export function firstElements(
  bytes: Uint8Array,
  start: number,
  most: number,
  known: readonly Span[] = [],
): readonly Span[] {
  const elements = [...known];
  let at = skipSpace(bytes, elements.at(-1)?.end ?? expectByte(bytes, start, OPEN_BRACKET));
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
export function skipValue(bytes: Uint8Array, at: number): number {
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

const escapes = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/;

/** Returns the place of the quote that ends the string whose characters begin at `from`; -1 when they are not the rest of a JSON string. */
export function endOfCharacters(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte < 32) return -1;
    if (byte !== BACKSLASH) continue;
    const escape = escapes.exec(String.fromCharCode(...bytes.subarray(at, at + 6)));
    if (escape === null) return -1;
    at += escape[0].length - 1;
  }
  return -1;
}

/** Returns the end of the digits at `from`; -1 when they are no JSON number. */
export function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at]! >= 48 && bytes[at]! <= 57) at++;
  return at === from || (bytes[from] === 48 && at > from + 1) ? -1 : at;
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

/** Returns the objects of a list; anything else in it counts as an empty object. */
export function objectsOf(list: unknown): readonly JsonRecord[] {
  return Array.isArray(list) ? list.map((item) => (isRecord(item) ? item : {})) : [];
}

/** Returns a member that is a text of at least one character. */
export function wordAt(object: JsonRecord, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** True for a text or a list that is not empty. */
export function isFilled(value: unknown): boolean {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}

// Splices: the only way a body is changed. Bytes that no splice covers are copied unchanged.

/** Replaces the span by `bytes`; an empty span inserts. */
export type Splice = { readonly span: Span; readonly bytes: Uint8Array };

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);
const comma = encoder.encode(',');

/**
 * Applies splices in order of position; several at one empty span keep their order. Returns `body` itself when there are none.
 * Overlapping splices are a bug of the caller and throw a RangeError.
 */
export function applySplices(body: Uint8Array, splices: readonly Splice[]): Uint8Array {
  if (splices.length === 0) return body;
  const ordered = inOrder(splices);
  let grown = body.length;
  for (const { span, bytes } of ordered) grown += bytes.length - (span.end - span.start);
  const out = new Uint8Array(grown);
  let from = 0;
  let to = 0;
  for (const { span, bytes } of ordered) {
    if (span.start < from) throw new RangeError(`splices overlap at byte ${span.start}`);
    out.set(body.subarray(from, span.start), to);
    to += span.start - from;
    out.set(bytes, to);
    to += bytes.length;
    from = span.end;
  }
  out.set(body.subarray(from), to);
  return out;
}

/** Returns splices in order of position. Those of a request that continues another one are in order already. */
export function inOrder(splices: readonly Splice[]): readonly Splice[] {
  for (let at = 1; at < splices.length; at++) {
    const { span: before } = splices[at - 1]!;
    const { span } = splices[at]!;
    if (before.start > span.start || (before.start === span.start && before.end > span.end))
      return splices.toSorted(
        ({ span: one }, { span: other }) => one.start - other.start || one.end - other.end,
      );
  }
  return splices;
}

/** Returns a text as the bytes of a JSON string literal; lone surrogates stay, as escapes. */
export function literalBytes(text: string): Uint8Array {
  return encoder.encode(JSON.stringify(text));
}

/** Returns the bytes of a text as they stand in a literal, without the quotes. */
export function literalContent(text: string): Uint8Array {
  return literalBytes(text).subarray(1, -1);
}

/** Returns a value as compact JSON bytes. */
export function jsonBytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** An element to insert ahead of element `before` (the number of elements: at the end). */
export type Insertion = { readonly before: number; readonly bytes: Uint8Array };

/**
 * Returns splices that drop and insert elements of one bracketed list (array elements or object members), commas included. `end`
 * is the position of the closing bracket: insertions go there in a list without elements.
 */
export function listSplices(
  elements: readonly Span[],
  end: number,
  dropped: (index: number) => boolean,
  insertions: readonly Insertion[] = [],
): readonly Splice[] {
  const runs = runsOf(elements.length, dropped);
  const keptAny = runs.reduce((kept, { first, last }) => kept - (last + 1 - first), elements.length) > 0;
  return [
    ...groupInsertions(insertions, runs).map(({ before, bytes }) =>
      insertionSplice(elements, end, before, bytes, keptAny),
    ),
    ...runs.map((run) => ({ span: droppedSpan(elements, run), bytes: nothing })),
  ];
}

/** Neighboring elements of a list. */
type ElementRun = { readonly first: number; readonly last: number };

/** Returns the runs of dropped elements. It looks at each once, because there may be very many. */
function runsOf(count: number, dropped: (index: number) => boolean): readonly ElementRun[] {
  const runs: { first: number; last: number }[] = [];
  for (let index = 0; index < count; index++) {
    if (!dropped(index)) continue;
    const run = runs.at(-1);
    if (run?.last === index - 1) run.last = index;
    else runs.push({ first: index, last: index });
  }
  return runs;
}

/** Returns the span of a run of dropped elements, with the one comma that belongs to it. */
function droppedSpan(elements: readonly Span[], { first, last }: ElementRun): Span {
  const before = elements[first - 1];
  const after = elements[last + 1];
  if (before) return { start: before.end, end: elements[last]!.end };
  return { start: elements[first]!.start, end: after ? after.start : elements[last]!.end };
}

function insertionSplice(
  elements: readonly Span[],
  end: number,
  before: number,
  items: readonly Uint8Array[],
  keptAny: boolean,
): Splice {
  const previous = elements[before - 1];
  const at = previous ? previous.end : (elements[0]?.start ?? end);
  const joined = items.map((item, index) => {
    const lead = previous || index > 0 ? comma : nothing;
    const trail = !previous && keptAny && index === items.length - 1 ? comma : nothing;
    return [lead, item, trail];
  });
  return { span: { start: at, end: at }, bytes: concatBytes(joined.flat()) };
}

/** Insertions ahead of a dropped run go ahead of the whole run, next to a kept neighbor. */
function groupInsertions(insertions: readonly Insertion[], runs: readonly ElementRun[]) {
  const groups = new Map<number, Uint8Array[]>();
  let run = 0;
  for (const { before, bytes } of insertions.toSorted((a, b) => a.before - b.before)) {
    while (run < runs.length && runs[run]!.last < before - 1) run++;
    const anchor = Math.min(before, runs[run]?.first ?? before);
    const group = groups.get(anchor);
    if (group) group.push(bytes);
    else groups.set(anchor, [bytes]);
  }
  return [...groups].map(([before, bytes]) => ({ before, bytes }));
}

export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
