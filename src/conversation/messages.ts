/**
 * Decodes the texts of messages, fits texts to a number of tokens, and hashes prefixes of conversations. Results are remembered by
 * message, so that a growing conversation costs only its new messages.
 */
import type { Media, Part, Span, Conversation, Message } from './conversation.ts';
import { type Notes, openFixed, openNotes } from '../caches.ts';
import { type Steps, literalPieceEnd, runSteps } from './steps.ts';
import { type Member, concatBytes, parseSpan } from './json-scan.ts';

// The texts of a message

/** Returns the bytes of a span that is relative to a block. A view, not a copy. */
export function bytesOf(body: Uint8Array, block: { readonly span: Span }, span: Span): Uint8Array {
  return body.subarray(block.span.start + span.start, block.span.start + span.end);
}

/** Decodes a JSON string literal (quotes included). */
export function decodeLiteral(literal: Uint8Array): string {
  const text = decoder.decode(literal);
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}

/** Returns the text of one literal of a block. */
export function textOf(body: Uint8Array, block: { readonly span: Span }, span: Span): string {
  return rememberedText(span) ?? decodeLiteral(bytesOf(body, block, span));
}

/** Returns the same as `textOf`, and remembers the text unless it is short: the next pass needs it, too. */
export function textToKeep(body: Uint8Array, block: { readonly span: Span }, span: Span): string {
  return rememberedText(span) ?? remember(span, decodeLiteral(bytesOf(body, block, span)));
}

/** Returns the same as `textOf`, in steps. */
export function textInSteps(body: Uint8Array, block: { readonly span: Span }, span: Span): Steps<string> {
  return decodeInSteps(bytesOf(body, block, span), span);
}

/** Returns the arguments of a call as JSON text in any format; empty for a call without arguments. */
export function inputOf(
  body: Uint8Array,
  block: { readonly span: Span },
  call: Part & { readonly type: 'tool-call' },
): string {
  const bytes = bytesOf(body, block, call.input);
  return bytes[0] === 0x22 ? textToKeep(body, block, call.input) : decoder.decode(bytes);
}

/** Returns the literals of a part that hold text for the model; empty for parts without text. */
export function textsOf(part: Part): readonly Span[] {
  switch (part.type) {
    case 'text':
    case 'tool-result':
    case 'reasoning':
      return part.texts;
    case 'tool-call':
    case 'media':
    case 'tool-definition':
    case 'opaque':
      return [];
  }
}

/** Returns the images, documents and sounds of a part. */
export function mediaOf(part: Part): readonly Media[] {
  return part.type === 'tool-result' ? part.media : part.type === 'media' ? [part.media] : [];
}

/** Returns the texts in a JSON value, down to a depth. */
export function textsDeepIn(value: unknown, depth: number): readonly string[] {
  if (typeof value === 'string') return [value];
  if (depth === 0 || typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((inner) => textsDeepIn(inner, depth - 1));
}

/**
 * Cuts a text into pieces of about `units` UTF-16 units, never within a character: the contents of their literals, one after the other,
 * are that of the whole text. So a long text can be spelled in steps.
 */
export function piecesOfText(text: string, units: number): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = Math.min(start + units, text.length);
    if (isPair(text.charCodeAt(end - 1), text.charCodeAt(end))) end++;
    pieces.push(text.slice(start, end));
  }
  return pieces;
}

/** True for the two halves of a character. `NaN`, after the end of a text, is none. */
function isPair(one: number, other: number): boolean {
  return one >= 0xd800 && one <= 0xdbff && other >= 0xdc00 && other <= 0xdfff;
}

// Decoding in steps

/** The place of a literal. Its identity is the key under which the text is remembered. */
type LiteralSpan = { readonly start: number; readonly end: number };

/** Bytes of the shortest literal that is decoded piece by piece and remembered. */
const minLongBytes = 65_536;

/** Bytes of a piece: about 1 ms. */
const pieceBytes = 131_072;

const remembered = openFixed<LiteralSpan, string>('long texts', { unitsOf: (text) => text.length + 1 });

/** The shorter texts of one request, also of a large one: each of its passes needs them again. */
const newest = openFixed<LiteralSpan, string>('newest texts', { unitsOf: (text) => text.length + 1 });

/** Bytes of the shortest literal whose text is remembered: a shorter one is decoded as fast as it is found. */
const minKeptBytes = 256;

/** Returns the text of a literal if it was decoded lately. Bodies with the same bytes share the span object. */
export function rememberedText(span: LiteralSpan): string | undefined {
  return textsLike(span)?.get(span);
}

function remember(span: LiteralSpan, text: string): string {
  textsLike(span)?.set(span, text);
  return text;
}

function textsLike({ start, end }: LiteralSpan): typeof newest | undefined {
  const bytes = end - start;
  return bytes < minKeptBytes ? undefined : bytes < minLongBytes ? newest : remembered;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Throws a `ScanError` when a block of these parts is not JSON. Its long texts are decoded, which checks them, and remembered: they are counted next.
 * The rest is parsed with empty texts in their places.
 */
export function checkBlock(bytes: Uint8Array, parts: readonly Part[]): void {
  const rest: Uint8Array[] = [];
  let from = 0;
  for (const part of parts)
    for (const span of part.type === 'tool-call' ? [part.input] : textsOf(part)) {
      if (span.start < from || span.end - span.start < minKeptBytes || bytes[span.start] !== 0x22) continue;
      remember(span, parseSpan(bytes, span) as string);
      rest.push(bytes.subarray(from, span.start + 1));
      from = span.end - 1;
    }
  const json = from === 0 ? bytes : concatBytes([...rest, bytes.subarray(from)]);
  parseSpan(json, { start: 0, end: json.length });
}

/** Decodes a JSON string literal (quotes included), and remembers the text by its span. */
export function* decodeInSteps(literal: Uint8Array, span: LiteralSpan): Steps<string> {
  const known = rememberedText(span);
  if (known !== undefined) return known;
  const pieces: string[] = [];
  for (let start = 1, end = 0; start < literal.length - 1; start = end) {
    end = literalPieceEnd(literal, start, Math.min(start + pieceBytes, literal.length - 1));
    const piece = decoder.decode(literal.subarray(start, end));
    pieces.push(piece.includes('\\') ? (JSON.parse(`"${piece}"`) as string) : piece);
    yield;
  }
  const text = remember(span, pieces.join(''));
  yield;
  return text;
}

// Texts that fit a number of tokens. The cost is in proportion to the part that fits, not to the text. Pure.

/** Counts the tokens of a text; one of `TokenCounter.count`. */
export type CountTokens = (text: string) => number;

const firstGuess = 3;
const fastestGrowth = 8;
/** Share of the budget that a fit must use. Counting is expensive, so the search for a better fit ends there. */
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

// Prefix hashes. A prefix is identified by a chain of digests over what the messages say, h(j) = H(h(j-1), canonical(message
// j)), tenant first. The same prefix has the same hash in every later request and every instance, so folds need no session id
// and branches cannot mix.

type Digest = (bytes: Uint8Array) => string;

const encoder = new TextEncoder();
const lineEnd = encoder.encode('\n');
const comma = encoder.encode(',');

/**
 * Returns the links of a conversation: element j is the hash of messages 0 to j-1, so there is one more than there are messages.
 * `root` names the tenant and the format: prefixes of different roots never share a link. Links of the prefix that an earlier
 * call saw are not computed again.
 */
export function prefixLinks({ messages }: Conversation, root: string, digest: Digest): readonly string[] {
  let known: KnownLinks | undefined;
  let from = messages.length;
  for (; from > 0; from--) {
    known = chains.get(messages[from - 1]!);
    if (known?.root === root) break;
  }
  const before = from > 0 ? known?.links : undefined;
  // A longer list belongs to another branch, which continued it.
  const links =
    before?.length === from + 1 ? before : (before?.slice(0, from + 1) ?? [digest(encoder.encode(root))]);
  for (let at = from; at < messages.length; at++) {
    links.push(digest(encoded(`${links[at]}\n${messages[at]!.canonical}`)));
  }
  rememberAt(chains, messages, from, { root, links });
  return links.slice(0, messages.length + 1);
}

/** Holds the bytes of a text or the pieces of a message while they are hashed. */
const hashed = new Uint8Array(65_536);

/** Returns the bytes of a text, which are valid until the next call. */
function encoded(text: string): Uint8Array {
  if (text.length * 3 > hashed.length) return encoder.encode(text);
  return hashed.subarray(0, encoder.encodeInto(text, hashed).written);
}

type KnownLinks = { readonly root: string; readonly links: string[] };

/** Links by message. Conversations that only append share one list, which later turns make longer. */
const chains = openNotes<Message, KnownLinks>('message');

/** The number of newest messages under which values are remembered: clients often rewrite the last few. */
const rememberedMessages = 8;

/** Remembers a value under the newest of the messages from `from` on. */
export function rememberAt<T>(
  known: Notes<Message, T>,
  messages: readonly Message[],
  from: number,
  value: T,
): void {
  for (let at = Math.max(from, messages.length - rememberedMessages); at < messages.length; at++)
    known.set(messages[at]!, value);
}

/**
 * Returns the canonical digest of a message: of its role and what each part says, byte for byte, without the members that clients
 * move. `pieces` are the bytes that the codec found significant, in order.
 */
export function canonicalDigest(role: string, pieces: readonly Uint8Array[], digest: Digest): string {
  return digest(joinedInto(hashed, [roleBytes(role), ...pieces]));
}

/** The bytes of the few roles there are. Other roles are encoded each time. */
const knownRoles = new Map(
  ['system', 'user', 'assistant', 'tool', 'tools', 'functions'].map((role) => [role, encoder.encode(role)]),
);

function roleBytes(role: string): Uint8Array {
  return knownRoles.get(role) ?? encoder.encode(role);
}

/** Joins pieces with a line end between two. */
export function joinedPieces(pieces: readonly Uint8Array[]): Uint8Array {
  return joinedInto(noRoom, pieces);
}

const noRoom = new Uint8Array(0);

/** Returns the joined pieces, in `room` if they fit. */
function joinedInto(room: Uint8Array, pieces: readonly Uint8Array[]): Uint8Array {
  const length = pieces.reduce((sum, piece) => sum + piece.length + 1, -1);
  const joined = length <= room.length ? room.subarray(0, length) : new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    if (at > 0) joined.set(lineEnd, at++);
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}

/** Returns the bytes of an object's members in order, without the ignored keys. */
export function significantBytes(
  bytes: Uint8Array,
  members: readonly Member[],
  ignored: ReadonlySet<string>,
): Uint8Array {
  const still = members.filter((member) => !ignored.has(member.key));
  return concatBytes(still.flatMap(({ span }) => [bytes.subarray(span.start, span.end), comma]));
}

// Values remembered by message

/** Returns the values of all messages, in their order. A later turn may have made the list longer. `before`: the value of the message in front. */
export type PerMessage<T> = (
  messages: readonly Message[],
  valueOf: (message: Message, before: T | undefined) => T,
) => readonly T[];

/** Creates a function that computes each value once. `lists`: the values by message. Conversations that only append share one list. */
export function perMessage<T>(lists: Notes<Message, T[]> = openNotes('message')): PerMessage<T> {
  return function valuesOf(messages, valueOf) {
    let known: T[] | undefined;
    let from = messages.length;
    while (from > 0 && (known = lists.get(messages[from - 1]!)) === undefined) from--;
    if (known && from === messages.length) return known;
    // Another branch may have continued from the same message.
    const values = known?.length === from ? known : (known?.slice(0, from) ?? []);
    for (let index = from; index < messages.length; index++)
      values.push(valueOf(messages[index]!, values[index - 1]));
    rememberAt(lists, messages, from, values);
    return values;
  };
}

/** Remembers the result for an object as long as the object is alive, as `openNotes` does. */
export function memoized<Key extends object, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const known = openNotes<Key, { readonly made: Made }>();
  return (key) => {
    const before = known.get(key);
    if (before) return before.made;
    const made = make(key);
    known.set(key, { made });
    return made;
  };
}

/** Messages that a simple pass handles in one step. */
export const messagesPerStep = 4_096;

/** Remembers the result of `make` for an object, as `memoized` does. `inSteps` makes it in steps, `now` makes it at once. */
export function memoizedInSteps<Key extends object, Made>(
  make: (key: Key) => Steps<Made>,
): { readonly now: (key: Key) => Made; readonly inSteps: (key: Key) => Steps<Made> } {
  const known = openNotes<Key, { readonly made: Made }>();
  function* inSteps(key: Key): Steps<Made> {
    const before = known.get(key);
    if (before) return before.made;
    const made = yield* make(key);
    known.set(key, { made });
    yield;
    return made;
  }
  const now = (key: Key): Made => {
    const before = known.get(key);
    return before ? before.made : runSteps(inSteps(key));
  };
  return { now, inSteps };
}
