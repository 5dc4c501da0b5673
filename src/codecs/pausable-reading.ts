/**
 * Lets the reading of one body pause between any two of its steps. Readers are ordinary functions: they run long passes through
 * `oneStep` and `inSteps`, which remember what is done. When a slice is over, one of them throws `ReadingPaused`; the body is
 * then read again from its beginning, and every step that was done returns its result at once. So a reader must take the same
 * steps in the same order each time.
 */
import type { Span } from '../conversation/conversation.ts';
import { ScanError, parseSpan, skipSpace, skipValue } from '../conversation/json-scan.ts';

/** The progress of one reading. When `isOver` says so, `read` throws `ReadingPaused`; called again, it continues. */
export type ReadSlice = { readonly isOver: () => boolean; readonly steps: StepList };

/** The steps of a reader, or within one step of it, in order. `next` counts those that this run has taken. */
type StepList = { next: number; readonly taken: StepProgress[] };

/** `done`: the results so far. `inner`: the steps within the one that is not finished. */
type StepProgress = {
  readonly items: readonly unknown[];
  readonly done: unknown[];
  inner: StepList | undefined;
};

/** Thrown when a slice is over. */
export class ReadingPaused extends Error {}

/** The reading that runs now. Reading is synchronous, so there is one at most; undefined when it may not pause. */
let running: { readonly isOver: () => boolean; steps: StepList } | undefined;

export function openReadSlice(isOver: () => boolean): ReadSlice {
  return { isOver, steps: newSteps() };
}

function newSteps(): StepList {
  return { next: 0, taken: [] };
}

/** Runs `read`, which may pause. Throws what it throws. */
export function readPausably<T>({ isOver, steps }: ReadSlice, read: () => T): T {
  const before = running;
  steps.next = 0;
  running = { isOver, steps };
  try {
    return read();
  } finally {
    running = before;
  }
}

/** Runs a small read at once: to remember its steps would cost more than they do. */
export function readAtOnce<T>(read: () => T): T {
  const before = running;
  running = undefined;
  try {
    return read();
  } finally {
    running = before;
  }
}

/** Runs one step of a reader. */
export function oneStep<T>(run: () => T): T {
  return running ? inSteps(onlyOne, run)[0]! : run();
}

const onlyOne = [undefined];

/** Maps a list in steps. */
export function inSteps<T, Result>(
  items: readonly T[],
  map: (item: T, index: number) => Result,
): readonly Result[] {
  const reading = running;
  if (!reading) return items.map(map);
  const { steps, isOver } = reading;
  const progress = (steps.taken[steps.next++] ??= { items, done: [], inner: undefined });
  const { done } = progress;
  while (done.length < progress.items.length) {
    const inner = (progress.inner ??= newSteps());
    inner.next = 0;
    reading.steps = inner;
    const result = map(progress.items[done.length] as T, done.length);
    reading.steps = steps;
    progress.inner = undefined;
    done.push(result);
    if (isOver()) throw new ReadingPaused();
  }
  return done as Result[];
}

// Checks that bytes are one JSON value. Every byte of a value goes through `JSON.parse`, a long one piece by piece, so that the
// reading of a body can pause in between.

/** Bytes of the longest value, and about the bytes of a piece, that is parsed at once. */
const pieceBytes = 131_072;

/** Deeper values are parsed at once: depth must not exhaust the stack. */
const maxDepth = 8;

/** Throws a `ScanError` when the bytes are not JSON. */
export function checkJson(bytes: Uint8Array): void {
  checkValue(bytes, { start: 0, end: bytes.length }, 0);
}

function checkValue(bytes: Uint8Array, value: Span, depth: number): void {
  const open = bytes[value.start];
  const isLong = value.end - value.start > pieceBytes && depth < maxDepth;
  if (!isLong || (open !== OPEN_BRACKET && open !== OPEN_BRACE))
    return oneStep(() => void parseSpan(bytes, value));
  inSteps(
    oneStep(() => piecesOf(bytes, value)),
    (piece) => {
      if (piece.isValue) checkValue(bytes, piece.span, depth + 1);
      else parsePiece(bytes.subarray(piece.span.start, piece.span.end), open);
    },
  );
}

/** Some elements or members with the commas between them; or one long value, which is checked by itself. */
type JsonPiece = { readonly span: Span; readonly isValue: boolean };

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
      if (!isList) parseSpan(bytes, { start: at, end: keyEndOf(bytes, at) });
      pieces.push({ span: { start: value, end: valueEnd }, isValue: true });
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
function parsePiece(piece: Uint8Array, open: number): void {
  const list = new Uint8Array(piece.length + 2);
  list[0] = open;
  list.set(piece, 1);
  list[piece.length + 1] = open === OPEN_BRACKET ? CLOSE_BRACKET : CLOSE_BRACE;
  parseSpan(list, { start: 0, end: list.length });
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
