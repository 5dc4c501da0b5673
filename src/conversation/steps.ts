/**
 * Runs long work on one body in steps, so that other requests of the same thread can run in between. The work is a generator, or an
 * ordinary function that can pause. Steps are run in slices of about 10 ms, with a pause between two slices.
 */
import type { Span } from './conversation.ts';
import { type JsonRecord, ScanError, isRecord, parseSpan, skipSpace, skipValue } from './json-scan.ts';

// Generators and slices

/** Work that can be paused: it yields between two steps, and returns its result at the end. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  return runInSlices(steps, undefined) as T;
}

export type Slices = {
  /** True when the running slice has used up its time. */
  readonly isOver: () => boolean;
  /** Lets other requests run, if the slice has used up its time. */
  readonly pause: () => Promise<void> | undefined;
};

/** Runs the steps, and lets other requests run before a step for which no time is left. Without a pause, it returns the result without a promise. */
export function runInSlices<T>(steps: Steps<T>, slices: Slices | undefined): T | Promise<T> {
  while (!slices?.isOver()) {
    const step = steps.next();
    if (step.done) return step.value;
  }
  return afterPause(steps, slices);
}

async function afterPause<T>(steps: Steps<T>, slices: Slices): Promise<T> {
  await slices.pause();
  const step = steps.next();
  return step.done ? step.value : runInSlices(steps, slices);
}

/** Milliseconds of one slice. */
const sliceMs = 10;

/** Starts the first slice. */
export function openSlices(): Slices {
  let startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > sliceMs;
  const startNext = async (): Promise<void> => {
    await nextTurn();
    startedAt = performance.now();
  };
  return { isOver, pause: () => (isOver() ? startNext() : undefined) };
}

/** Resolves in the next turn of the event loop, after everything that has arrived meanwhile was handled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

// Functions that pause, such as reading, writing and checking a body. They are ordinary functions that do long work through `oneStep` and
// `inSteps`, which remember the results of finished steps. When a slice is over, one of the two throws `Paused`. Later the function is run
// again from its beginning, and every finished step returns its result at once. So a function must take the same steps in the same order
// each time: if it skips a step because it finds the result in a memo of its own, its other steps get wrong results.

/** The progress of a function that may pause. It throws `Paused` when `isOver` returns true, and continues when it is run again. */
export type PausableRun = { readonly isOver: () => boolean; readonly steps: StepList };

/** The steps of a function, or the inner steps of one step, in order. `next` is the index of the next step in this run. */
type StepList = { next: number; readonly taken: StepProgress[] };

/** The progress of one pass over a list. `done`: the results so far. `inner`: the steps within the item that is not finished. */
type StepProgress = {
  readonly items: readonly unknown[];
  readonly done: unknown[];
  inner: StepList | undefined;
};

/** Thrown when a slice is over. */
export class Paused extends Error {}

/** A run in progress. `startedAt`: when the function was run again; `newAt`: when it began its first new step. Both in milliseconds. */
type Running = { readonly isOver: () => boolean; steps: StepList; readonly startedAt: number; newAt: number };

/** The current run; undefined when nothing may pause. Runs are synchronous, so there is at most one. */
let running: Running | undefined;

export function openRun(isOver: () => boolean): PausableRun {
  return { isOver, steps: newSteps() };
}

function newSteps(): StepList {
  return { next: 0, taken: [] };
}

/** Runs a function that may pause. Throws what it throws. */
export function runPausably<T>({ isOver, steps }: PausableRun, run: () => T): T {
  const before = running;
  steps.next = 0;
  running = { isOver, steps, startedAt: performance.now(), newAt: 0 };
  try {
    return run();
  } finally {
    running = before;
  }
}

/** Runs a small function without pauses: remembering its steps would cost more than the steps. */
export function runAtOnce<T>(run: () => T): T {
  const before = running;
  running = undefined;
  try {
    return run();
  } finally {
    running = before;
  }
}

/** Runs one step of a function that may pause. */
export function oneStep<T>(run: () => T): T {
  return running ? inSteps(onlyOne, run)[0]! : run();
}

const onlyOne = [undefined];

/** Maps a list; each item is a step. */
export function inSteps<T, Result>(
  items: readonly T[],
  map: (item: T, index: number) => Result,
): readonly Result[] {
  const run = running;
  if (!run) return items.map(map);
  const { steps, isOver } = run;
  const progress = (steps.taken[steps.next++] ??= { items, done: [], inner: undefined });
  const { done } = progress;
  while (done.length < progress.items.length) {
    if (run.newAt === 0 && progress.inner === undefined) run.newAt = performance.now();
    const inner = (progress.inner ??= newSteps());
    inner.next = 0;
    run.steps = inner;
    try {
      done.push(map(progress.items[done.length] as T, done.length));
      progress.inner = undefined;
    } finally {
      run.steps = steps;
    }
    if (isOver() && hasGained(run)) throw new Paused();
  }
  return done as Result[];
}

/**
 * Maps bytes piece by piece; each piece is a step. A piece reaches `overlap` bytes into the next one, so that nothing shorter is cut.
 * `length`: the bytes of a full piece without those.
 */
export function inPieces<Result>(
  bytes: Uint8Array,
  overlap: number,
  map: (piece: Uint8Array, length: number) => Result,
): readonly Result[] {
  const starts = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) => at * pieceBytes);
  return inSteps(starts, (start) => map(bytes.subarray(start, start + pieceBytes + overlap), pieceBytes));
}

/** False while a run has spent more time on repeated steps than on new ones: a pause would then cost more than it gains. */
function hasGained({ startedAt, newAt }: Running): boolean {
  const repeatedMs = newAt - startedAt;
  return repeatedMs < 2 || performance.now() - newAt >= repeatedMs;
}

/** Runs a function that may pause, and lets other requests run while it does. Throws or rejects with what it throws. */
export function runInPauses<T>(slices: Slices | undefined, run: () => T): T | Promise<T> {
  return slices ? runInSlices(repeatedly(openRun(slices.isOver), run), slices) : run();
}

function* repeatedly<T>(progress: PausableRun, run: () => T): Steps<T> {
  for (;;) {
    try {
      return runPausably(progress, run);
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
      yield;
    }
  }
}

// JSON in pieces. Every byte goes through `JSON.parse`, but a long value is parsed or checked piece by piece, so that other requests
// can run in between.

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

const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses a body for checks that must not depend on our own reader. Returns undefined for a body that is no JSON object. A body of more
 * than a megabyte is cut into pieces first.
 */
export function parsedBody(body: Uint8Array): JsonRecord | undefined {
  try {
    const value = body.length > maxUncutBytes ? parseJson(trimmed(body)) : parseWhole(body);
    return isRecord(value) ? value : undefined;
  } catch (error) {
    if (error instanceof Paused) throw error;
    return undefined;
  }
}

const maxUncutBytes = 1_000_000;

function parseWhole(body: Uint8Array): unknown {
  return oneStep(() => JSON.parse(strictDecoder.decode(body)) as unknown);
}

function trimmed(body: Uint8Array): Uint8Array {
  let end = body.length;
  while (end > 0 && [9, 10, 13, 32].includes(body[end - 1]!)) end--;
  return body.subarray(skipSpace(body, 0), end);
}

/** Parses a value. Returns undefined with `check only`. */
function parseValue(bytes: Uint8Array, value: Span, depth: number, mode: 'keep' | 'check only'): unknown {
  const open = bytes[value.start];
  const keeps = mode === 'keep';
  const isLong = value.end - value.start > pieceBytes && depth < maxDepth;
  if (isLong && open === QUOTE) {
    const texts = inSteps(literalPieces(bytes, value), (span) => parsePiece(bytes, span, open));
    return keeps ? oneStep(() => texts.join('')) : undefined;
  }
  if (!isLong || (open !== OPEN_BRACKET && open !== OPEN_BRACE))
    return oneStep(() => {
      const parsed = parseSpan(bytes, value);
      return keeps ? parsed : undefined;
    });
  const pieces = piecesInSteps(bytes, value);
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
function piecesInSteps(bytes: Uint8Array, value: Span): readonly JsonPiece[] {
  const all: JsonPiece[] = [];
  for (let from: number | undefined = skipSpace(bytes, value.start + 1); from !== undefined; ) {
    const at: number = from;
    const { pieces, next } = oneStep(() => piecesFrom(bytes, value, at));
    all.push(...pieces);
    from = next;
  }
  return all;
}

/** Bytes that are cut into pieces in one step. */
const cutBytes = 1_000_000;

/** Cuts the next elements or members. `next`: the place of the first one after them; undefined at the end. */
function piecesFrom(
  bytes: Uint8Array,
  { start, end }: Span,
  from: number,
): { readonly pieces: readonly JsonPiece[]; readonly next?: number } {
  const isList = bytes[start] === OPEN_BRACKET;
  const close = end - 1;
  if (bytes[close] !== (isList ? CLOSE_BRACKET : CLOSE_BRACE)) throw notJson(start, end);
  const pieces: JsonPiece[] = [];
  let at = from;
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
    if (next === close) return { pieces };
    if (bytes[next] !== COMMA) throw notJson(start, end);
    at = skipSpace(bytes, next + 1);
    if (at >= close) throw notJson(start, end);
    if (at - from > cutBytes) return { pieces, next: at };
  }
  return { pieces };
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

/** Cuts the text of a string literal into pieces, each of which is the text of a string literal. */
function literalPieces(bytes: Uint8Array, { start, end }: Span): readonly Span[] {
  if (bytes[end - 1] !== QUOTE) throw notJson(start, end);
  const literal = bytes.subarray(start, end);
  const pieces: Span[] = [];
  for (let from = 1, to = 1; from < literal.length - 1; from = to) {
    to = literalPieceEnd(literal, from, Math.min(from + pieceBytes, literal.length - 1));
    pieces.push({ start: start + from, end: start + to });
  }
  return pieces;
}

/**
 * Returns the last place of a string literal up to `end` that is neither within a character nor within an escape. `start` is such a place.
 * In bytes that are no UTF-8 it may be within what stands for a character.
 */
export function literalPieceEnd(literal: Uint8Array, start: number, end: number): number {
  if (end === literal.length - 1) return end;
  let at = end;
  while (at > end - 4 && (literal[at]! & 0xc0) === 0x80) at--;
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

/** Parses elements, members or a piece of text as a list, an object or a text of their own. */
function parsePiece(bytes: Uint8Array, { start, end }: Span, open: number): unknown {
  const wrapped = new Uint8Array(end - start + 2);
  wrapped[0] = open;
  wrapped.set(bytes.subarray(start, end), 1);
  wrapped[wrapped.length - 1] =
    open === OPEN_BRACKET ? CLOSE_BRACKET : open === OPEN_BRACE ? CLOSE_BRACE : QUOTE;
  return parseSpan(wrapped, { start: 0, end: wrapped.length });
}

function notJson(start: number, end: number): ScanError {
  return new ScanError(`not JSON between bytes ${start} and ${end}`);
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const LETTER_U = 117;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
