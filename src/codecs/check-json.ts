/**
 * Parses a JSON value, or only checks that it is one. Every byte goes through `JSON.parse`, those of a long value piece by piece,
 * so that other requests can run in between.
 */
import type { Span } from '../conversation/conversation.ts';
import { ScanError, parseSpan, skipSpace, skipValue } from '../conversation/json-scan.ts';
import { inSteps, oneStep } from './pausable.ts';

/** Bytes of the longest value, and about the bytes of a piece, that is parsed at once. */
const pieceBytes = 131_072;

/** Deeper values are parsed at once: depth must not exhaust the stack. */
const maxDepth = 8;

/** Throws a `ScanError` when the bytes are not JSON. */
export function checkJson(bytes: Uint8Array): void {
  parseValue(bytes, { start: 0, end: bytes.length }, 0, 'check only');
}

/** Returns the same value as `JSON.parse`, for bytes without white space around it. Throws a `ScanError` when they are not JSON. */
export function parseJson(bytes: Uint8Array): unknown {
  return parseValue(bytes, { start: 0, end: bytes.length }, 0, 'keep');
}

/** Returns undefined when the value is not to be kept. */
function parseValue(bytes: Uint8Array, value: Span, depth: number, mode: 'keep' | 'check only'): unknown {
  const open = bytes[value.start];
  const keeps = mode === 'keep';
  const isLong = value.end - value.start > pieceBytes && depth < maxDepth;
  if (!isLong || (open !== OPEN_BRACKET && open !== OPEN_BRACE))
    return oneStep(() => {
      const parsed = parseSpan(bytes, value);
      return keeps ? parsed : undefined;
    });
  const pieces = oneStep(() => piecesOf(bytes, value));
  const parsed = inSteps(pieces, ({ span, key, isValue }) => {
    if (!isValue) return keeps ? parsePiece(bytes, span, open) : void parsePiece(bytes, span, open);
    const one = parseValue(bytes, span, depth + 1, mode);
    return keeps ? (open === OPEN_BRACKET ? [one] : withMember({}, key!, one)) : undefined;
  });
  if (!keeps) return undefined;
  return oneStep(() => (open === OPEN_BRACKET ? joinedLists(parsed) : joinedObjects(parsed)));
}

function joinedLists(lists: readonly unknown[]): unknown[] {
  const all: unknown[] = [];
  for (const list of lists as readonly unknown[][]) for (const one of list) all.push(one);
  return all;
}

function joinedObjects(objects: readonly unknown[]): object {
  const all = {};
  for (const object of objects as readonly object[])
    for (const [key, value] of Object.entries(object)) withMember(all, key, value);
  return all;
}

/** Sets a member as `JSON.parse` does, whatever its name. */
function withMember(object: object, key: string, value: unknown): object {
  return Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Some elements or members with the commas between them; or one long value, which is checked by itself. */
type JsonPiece = { readonly span: Span; readonly isValue: boolean; readonly key?: string };

/** Cuts a list or an object at commas. Throws a `ScanError` when there is anything but pieces and commas in it. */
function piecesOf(bytes: Uint8Array, { start, end }: Span): readonly JsonPiece[] {
  const isList = bytes[start] === OPEN_BRACKET;
  const close = end - 1;
  if (bytes[close] !== (isList ? CLOSE_BRACKET : CLOSE_BRACE)) throw notJson(start, end);
  const pieces: JsonPiece[] = [];
  let at = skipSpace(bytes, start + 1);
  let first = at;
  while (at < close) {
    const value = isList ? at : valueOfMember(bytes, at);
    const valueEnd = skipValue(bytes, value);
    const isLong = valueEnd - value > pieceBytes;
    if (isLong) {
      const key = isList ? '' : (parseSpan(bytes, { start: at, end: keyEndOf(bytes, at) }) as string);
      pieces.push({ span: { start: value, end: valueEnd }, isValue: true, key });
    } else if (
      pieces.length === 0 ||
      first === at ||
      valueEnd - first > pieceBytes ||
      pieces.at(-1)!.isValue
    ) {
      pieces.push({ span: { start: at, end: valueEnd }, isValue: false });
      first = at;
    } else pieces[pieces.length - 1] = { span: { start: first, end: valueEnd }, isValue: false };
    const next = skipSpace(bytes, valueEnd);
    if (next === close) return pieces;
    if (bytes[next] !== COMMA) throw notJson(start, end);
    at = skipSpace(bytes, next + 1);
    if (at >= close) throw notJson(start, end);
  }
  return pieces;
}

function keyEndOf(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw notJson(at, at + 1);
  return skipValue(bytes, at);
}

/** Returns where the value of the member at `at` begins. */
function valueOfMember(bytes: Uint8Array, at: number): number {
  const colon = skipSpace(bytes, keyEndOf(bytes, at));
  if (bytes[colon] !== COLON) throw notJson(at, colon);
  return skipSpace(bytes, colon + 1);
}

/** Parses elements or members as a list or an object of their own. */
function parsePiece(bytes: Uint8Array, { start, end }: Span, open: number): unknown {
  const wrapped = new Uint8Array(end - start + 2);
  wrapped[0] = open;
  wrapped.set(bytes.subarray(start, end), 1);
  wrapped[wrapped.length - 1] = open === OPEN_BRACKET ? CLOSE_BRACKET : CLOSE_BRACE;
  return parseSpan(wrapped, { start: 0, end: wrapped.length });
}

function notJson(start: number, end: number): ScanError {
  return new ScanError(`not JSON between bytes ${start} and ${end}`);
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
