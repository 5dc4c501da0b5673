/**
 * Reads parts of a body: its beginning, or the places of very many messages. The beginning serves requests that are sent without being read whole:
 * a client's bypass, or a fold that exceeded its deadline. It is found in one scan that parses almost nothing.
 */
import type { Conversation, Span } from '../conversation/conversation.ts';
import {
  type Member,
  ScanError,
  concatBytes,
  firstElements,
  parseSpan,
  scanObject,
  skipSpace,
  skipValue,
} from '../conversation/json-scan.ts';
import { type Steps, oneStep, openSlices, runInSlices } from '../conversation/steps.ts';
import type { Codec, ReadContext, SeenList } from './codec.ts';

const encoder = new TextEncoder();

/** Bytes of the longest body that is scanned, and of the largest field that is read; of all fields, four times as many are read at most. */
const [maxBodyBytes, maxFieldBytes] = [16 * 1024 * 1024, 256 * 1024];
/** A body with more members is not read. The user's first words come within so many messages, after the system's. */
const [maxMembers, maxElements] = [500, 16];

/**
 * Returns the beginning of the conversation; its spans are not those of `body`. Undefined for a body of another format. Other requests run
 * while a long body is scanned.
 */
export async function readBeginning(
  codec: Pick<Codec, 'read'>,
  body: Uint8Array,
  reading: ReadContext,
): Promise<Conversation | undefined> {
  if (body.length > maxBodyBytes) return undefined;
  try {
    const members = await runInSlices(membersOf(body), openSlices());
    let left = 4 * maxFieldBytes;
    const fields = members.flatMap((member) => {
      const field = fieldOf(body, member);
      left -= field?.length ?? 0;
      return field && left >= 0 ? [field] : [];
    });
    return codec.read(objectOf(fields), reading);
  } catch {
    // The reader of the whole body reports what is wrong with it.
    return undefined;
  }
}

/** Finds the top-level members of a body in steps. Checks only what it walks over. */
function* membersOf(body: Uint8Array): Steps<readonly Member[]> {
  const members: Member[] = [];
  let at = skipSpace(body, 0);
  if (body[at] !== OPEN_BRACE) throw new ScanError('not an object');
  while (body[at] !== CLOSE_BRACE) {
    if (members.length === maxMembers) throw new ScanError('too many members');
    const start = skipSpace(body, at + 1);
    if (body[start] === CLOSE_BRACE && members.length === 0) return members;
    if (body[start] !== QUOTE) throw new ScanError('a key is missing');
    const key = { start, end: skipValue(body, start) };
    const colon = skipSpace(body, key.end);
    if (body[colon] !== COLON) throw new ScanError('a colon is missing');
    const value = skipSpace(body, colon + 1);
    const end = yield* endOfValue(body, value);
    members.push({
      key: parseSpan(body, key) as string,
      span: { start, end },
      value: { start: value, end },
      elements: undefined,
    });
    at = skipSpace(body, end);
    if (body[at] !== COMMA && body[at] !== CLOSE_BRACE) throw new ScanError('a comma is missing');
  }
  return members;
}

/** Bytes that are scanned in one step. */
const stepBytes = 256 * 1024;

/** Returns the position after the value that starts at `start`. */
function* endOfValue(body: Uint8Array, start: number): Steps<number> {
  if (!startsLong(body[start])) return skipValue(body, start);
  const state = { at: start, depth: 0, inString: false };
  for (;;) {
    const end = endWithin(body, state, Math.min(body.length, state.at + stepBytes));
    if (end !== undefined) return end;
    if (state.at >= body.length) throw new ScanError('a value has no end');
    yield;
  }
}

/** True if a value that begins with this byte may be long. */
function startsLong(byte: number | undefined): boolean {
  return byte === QUOTE || byte === OPEN_BRACE || byte === OPEN_BRACKET;
}

type ScanState = { at: number; depth: number; inString: boolean };

/** Scans on until `until`. Returns the position after the value if it ends before. */
function endWithin(body: Uint8Array, state: ScanState, until: number): number | undefined {
  let { at, depth, inString } = state;
  for (; at < until; at++) {
    const byte = body[at];
    if (inString) {
      // The byte after a backslash ends nothing.
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    else continue;
    if (depth === 0 && !inString && byte !== BACKSLASH) return at + 1;
  }
  state.at = at;
  state.depth = depth;
  state.inString = inString;
  return undefined;
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Returns the first elements of the list that starts at `start`, as far as they end within `until`. */
function firstFittingElements(body: Uint8Array, start: number, until: number): readonly Span[] {
  const elements: Span[] = [];
  let at = skipSpace(body, start + 1);
  while (elements.length < maxElements && body[at] !== CLOSE_BRACKET) {
    if (elements.length > 0) at = skipSpace(body, at + 1);
    const end = startsLong(body[at])
      ? endWithin(body, { at, depth: 0, inString: false }, until)
      : skipValue(body, at);
    if (end === undefined || end > until) return elements;
    elements.push({ start: at, end });
    at = skipSpace(body, end);
    if (body[at] !== COMMA && body[at] !== CLOSE_BRACKET) throw new ScanError('a comma is missing');
  }
  return elements;
}

/** Returns a member as it is; a list is cut after its first elements. Undefined when it is too long. */
function fieldOf(body: Uint8Array, { span, value }: Member): Uint8Array | undefined {
  if (body[value.start] !== OPEN_BRACKET)
    return value.end - value.start > maxFieldBytes ? undefined : body.subarray(span.start, span.end);
  const end =
    firstFittingElements(body, value.start, value.start + maxFieldBytes).at(-1)?.end ?? value.start + 1;
  return concatBytes([body.subarray(span.start, end), encoder.encode(']')]);
}

function objectOf(fields: readonly Uint8Array[]): Uint8Array {
  const comma = encoder.encode(',');
  const joined = fields.flatMap((field, index) => (index > 0 ? [comma, field] : [field]));
  return concatBytes([encoder.encode('{'), ...joined, encoder.encode('}')]);
}

// The elements of a long list

/** Bytes of the largest body that is scanned in one step, and elements that are scanned in one: a few ms if they are small. */
export const maxScannedBytes = 1_000_000;
const elementsPerStep = 10_000;

/** The list of messages: where it starts, what is known of it, and its elements from the last known one on. */
export type KnownList = Readonly<{ start: number; seen: SeenList | undefined; elements: readonly Span[] }>;

/** Thrown when the list is found: what comes before it is scanned again with the rest. */
class ListFound extends Error {}

/** Scans the elements of the first list in steps. Undefined for a body without a list. */
export function elementsInSteps(
  body: Uint8Array,
  lists: ReadonlySet<string>,
  look: (start: number) => KnownList,
): KnownList | undefined {
  const list = oneStep(() => {
    let found: KnownList | undefined;
    try {
      scanObject(body, skipSpace(body, 0), lists, (start) => {
        found = look(start);
        throw new ListFound();
      });
    } catch (error) {
      if (!(error instanceof ListFound)) throw error;
    }
    return found;
  });
  if (!list) return undefined;
  for (let { elements } = list; ; ) {
    const before = elements;
    elements = oneStep(() => firstElements(body, list.start, before.length + elementsPerStep, before));
    if (elements.length < before.length + elementsPerStep) return { ...list, elements };
  }
}
