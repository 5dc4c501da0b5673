/**
 * Provides the JSON helpers that all wire formats share, for requests, responses and stream events. An edit leaves every other
 * byte unchanged.
 */
import {
  type JsonRecord,
  type Splice,
  type Member,
  ScanError,
  applySplices,
  concatBytes,
  endOfCharacters,
  endOfDigits,
  isRecord,
  listSplices,
  parseRecord,
  parseSpan,
  scanArray,
  scanObject,
  skipSpace,
} from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import type { Block, Span } from '../conversation/conversation.ts';
import type { StreamEvent, StreamRelay } from './codec.ts';
import { inSteps } from '../conversation/steps.ts';
import { elementsAt, objectAt, startsWith } from './read-body.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Replaces top-level members of a JSON object, or removes them (`undefined`). Members that are not there are ignored. */
export function setMembers(
  json: Uint8Array,
  values: Readonly<Record<string, Uint8Array | undefined>>,
): Uint8Array {
  const { members, span } = scanObject(json, skipSpace(json, 0));
  const gone = (index: number) =>
    Object.hasOwn(values, members[index]!.key) && values[members[index]!.key] === undefined;
  const splices: Splice[] = [
    ...listSplices(
      members.map((member) => member.span),
      span.end - 1,
      gone,
    ),
  ];
  for (const { key, value } of members) {
    const bytes = Object.hasOwn(values, key) ? values[key] : undefined;
    if (bytes) splices.push({ span: value, bytes });
  }
  return applySplices(json, splices);
}

/** Does the same as `setMembers`, and adds members that are not there at the end. */
export function withMembers(json: Uint8Array, values: Readonly<Record<string, Uint8Array>>): Uint8Array {
  const changed = setMembers(json, values);
  const { members, span } = scanObject(changed, skipSpace(changed, 0));
  const there = new Set(members.map((member) => member.key));
  const added = Object.entries(values).filter(([key]) => !there.has(key));
  const insertions = added.map(([key, bytes]) => ({
    before: members.length,
    bytes: concatBytes([encoder.encode(`${JSON.stringify(key)}:`), bytes]),
  }));
  const spans = members.map((member) => member.span);
  return applySplices(
    changed,
    listSplices(spans, span.end - 1, () => false, insertions),
  );
}

/** Joins JSON values to a JSON array. */
export function jsonList(items: readonly Uint8Array[]): Uint8Array {
  const comma = encoder.encode(',');
  const joined = items.flatMap((item, index) => (index > 0 ? [comma, item] : [item]));
  return concatBytes([encoder.encode('['), ...joined, encoder.encode(']')]);
}

/** Returns the bytes of a top-level member's value; the last one of several with this key, as JSON parsers do. */
export function memberBytes(json: Uint8Array, key: string): Uint8Array | undefined {
  const member = scanObject(json, skipSpace(json, 0)).members.findLast((candidate) => candidate.key === key);
  return member && json.subarray(member.value.start, member.value.end);
}

/** An element of an array, as bytes and as a value. */
export type JsonElement = { readonly bytes: Uint8Array; readonly value: unknown };

/** Returns the elements of a JSON array; none for any other value. */
export function elementsOf(array: Uint8Array): readonly JsonElement[] {
  if (array[0] !== '['.charCodeAt(0)) return [];
  return scanArray(array, 0).elements.map((span) => ({
    bytes: array.subarray(span.start, span.end),
    value: parseSpan(array, span),
  }));
}

/** Returns the bytes of a member that is an object; those of an empty object for anything else. */
export function objectBytes(json: Uint8Array, key: string): Uint8Array {
  const bytes = memberBytes(json, key);
  return bytes?.[0] === '{'.charCodeAt(0) ? bytes : encoder.encode('{}');
}

/** Spells one server-sent event. Line breaks in the provider's JSON become further data lines. */
export function eventBytes(event: string | undefined, data: Uint8Array | string): Uint8Array {
  const text = typeof data === 'string' ? data : decoder.decode(data);
  const lines = text.split(/\r\n|[\r\n]/).map((line) => `data: ${line}\n`);
  return encoder.encode(`${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`);
}

/**
 * Adds two usage objects of one provider in its own terms: numbers are added, lists joined, objects added member by member; of
 * anything else the later value is kept.
 */
export function addUsage(earlier: unknown, later: unknown): unknown {
  if (later === undefined || later === null) return earlier;
  if (typeof earlier === 'number' && typeof later === 'number') return earlier + later;
  if (Array.isArray(earlier) && Array.isArray(later))
    return [...(earlier as unknown[]), ...(later as unknown[])];
  if (isRecord(earlier) && isRecord(later)) {
    const keys = new Set([...Object.keys(earlier), ...Object.keys(later)]);
    return Object.fromEntries([...keys].map((key) => [key, addUsage(earlier[key], later[key])]));
  }
  return later;
}

export function recordAt(value: unknown, key: string): Readonly<Record<string, unknown>> {
  const found = isRecord(value) ? value[key] : undefined;
  return isRecord(found) ? found : {};
}

export function numberAt(value: unknown, key: string): number {
  const found = isRecord(value) ? value[key] : undefined;
  return typeof found === 'number' ? found : 0;
}

/** Returns a number of tokens. Some servers report -1 for "unknown", and JSON has numbers beyond every limit: both are 0 here. */
export function tokensAt(value: unknown, key: string): number {
  const found = numberAt(value, key);
  return found > 0 && Number.isFinite(found) ? found : 0;
}

export function stringIn(value: unknown, key: string): string | undefined {
  const found = isRecord(value) ? value[key] : undefined;
  return typeof found === 'string' ? found : undefined;
}

/** Parses a response. Throws `bad-response` when it is not JSON. */
export function parseResponse(body: Uint8Array): unknown {
  try {
    return parseSpan(body, { start: 0, end: body.length });
  } catch (cause) {
    if (!(cause instanceof ScanError)) throw cause;
    throw new LeporelloError('bad-response', 'The upstream response is not JSON.', { cause });
  }
}

// Text deltas of a stream. Most of them equal an earlier one but for a few characters of text and a number, so they are compared with a
// pattern instead of parsed, and skipped. Before the next event is parsed, the skipped deltas are parsed as one, with the texts of all.

/** A relay that is given the JSON of each event. */
export type ParsedRelay = Omit<StreamRelay, 'take' | 'skip'> & {
  take(event: StreamEvent, data: JsonRecord | undefined): readonly Uint8Array[];
  /** True while events are passed on unchanged. */
  isPlain(): boolean;
  /** Returns the key of the text in a text delta. Several in a row mean the same as the newest with all their texts. Undefined for other events. */
  textKeyOf(data: JsonRecord): string | undefined;
  /** A regular expression for the keys of other strings and numbers in which deltas differ. Only their newest values count. */
  readonly newestKeys: string;
  /** False if the relay does not need the texts. */
  readonly keepsText: boolean;
};

/** After so many patterns in a row that matched no event, no more are made for the stream. */
const maxUnusedPatterns = 8;

/** Returns a relay that skips a text delta that equals an earlier one but for its text. */
export function skippingDeltas(relay: ParsedRelay): StreamRelay {
  /** The newest delta that was parsed, until a pattern is made of it. */
  let example: { readonly event: StreamEvent; readonly textKey: string } | undefined;
  let pattern: ReturnType<typeof createPattern>;
  let unusedPatterns = 0;
  const readSkipped = (): void => {
    const skipped = pattern?.takeSkipped();
    if (skipped === undefined) return;
    unusedPatterns = 0;
    relay.take(skipped, parseRecord(skipped.data));
  };
  return {
    ...relay,
    take(event) {
      readSkipped();
      const data = parseRecord(event.data);
      const passed = relay.take(event, data);
      const textKey = data && unusedPatterns < maxUnusedPatterns ? relay.textKeyOf(data) : undefined;
      if (textKey !== undefined && passed[0] === event.raw) example = { event, textKey };
      return passed;
    },
    skip(bytes, from) {
      if (!relay.isPlain()) return from;
      if (example !== undefined) {
        unusedPatterns += 1;
        pattern = createPattern(example.event, example.textKey, relay);
        example = undefined;
      }
      return pattern?.skip(bytes, from) ?? from;
    },
    end() {
      readSkipped();
      return relay.end();
    },
    usage() {
      readSkipped();
      return relay.usage();
    },
  };
}

/** Matches an event whose data is one line of JSON: the lines before it, the JSON, and the line ends after it. */
const oneLine = /^((?:(?!data)[a-z]+:[ -~]*\r?\n)*data: ?)(\{[^\r\n]*\})(\n\n|\r\n\r\n)$/;
/** Decodes each byte to one character, so that places in the text are places in the bytes. */
const byteDecoder = new TextDecoder('latin1');
const pieceDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Makes a pattern of a delta; returns undefined if the delta is spelled in a way that is not compared. */
function createPattern({ raw, event }: StreamEvent, textKey: string, { newestKeys, keepsText }: ParsedRelay) {
  const [, head, json, lineEnds] = oneLine.exec(byteDecoder.decode(raw)) ?? [];
  if (head === undefined || json === undefined || lineEnds === undefined) return undefined;
  const keys = new RegExp(`"(?:(${textKey})|${newestKeys})" ?: ?`, 'g');
  const parts = partsOf(raw, raw.length - lineEnds.length, keys);
  // A key that is spelled with escapes is not found, so nothing but the values may have escapes.
  const isClear = parts.every(({ same }) => !same.includes(BACKSLASH));
  if (!isClear || parts.filter(({ value }) => value === 'text').length !== 1) return undefined;
  let newest: (Span & { readonly bytes: Uint8Array; readonly text: Span }) | undefined;
  let texts = '';
  return {
    /** Returns the end of the delta at `from`; `from` if it differs in other values. */
    skip(bytes: Uint8Array, from: number): number {
      let text = { start: from, end: from };
      let at = from;
      for (const { same, value } of parts) {
        if (!hasAt(bytes, at, same)) return from;
        at += same.length;
        const end = endOf(value, bytes, at);
        if (end < 0) return from;
        if (value === 'text') text = { start: at, end };
        at = end;
      }
      if (keepsText) texts += pieceDecoder.decode(bytes.subarray(text.start, text.end));
      newest = { bytes, start: from, end: at, text };
      return at;
    },
    /** Returns all skipped deltas as one; undefined when there are none. */
    takeSkipped(): StreamEvent | undefined {
      if (newest === undefined) return undefined;
      const { bytes, start, end, text } = newest;
      const before = pieceDecoder.decode(bytes.subarray(start + head.length, text.start));
      const after = pieceDecoder.decode(bytes.subarray(text.end, end - lineEnds.length));
      const skipped = { raw: bytes.subarray(start, end), event, data: before + texts + after };
      newest = undefined;
      texts = '';
      return skipped;
    },
  };
}

/** A value in which deltas differ: the characters of a string, a number, spaces with which some servers pad events, or nothing at the end. */
type DeltaValue = 'text' | 'string' | 'number' | 'spaces' | 'end';

/** Splits an event before each value that may differ. The first group of `keys` is the key of the text, `end` the end of the JSON. */
function partsOf(raw: Uint8Array, end: number, keys: RegExp) {
  const parts: { readonly same: Uint8Array; readonly value: DeltaValue }[] = [];
  let at = 0;
  const add = (value: DeltaValue, from: number): void => {
    parts.push({ same: raw.slice(at, from), value });
    at = endOf(value, raw, from);
  };
  // In a text that quotes such a member, the quotes are escaped, so it is not found.
  for (const { 0: found, 1: isText, index } of byteDecoder.decode(raw).matchAll(keys)) {
    const from = index + found.length;
    if (raw[from] === QUOTE) add(isText === undefined ? 'string' : 'text', from + 1);
    else if (endOf('number', raw, from) > 0) add('number', from);
  }
  add('spaces', raw.subarray(0, end - 1).findLastIndex((byte) => byte !== SPACE) + 1);
  add('end', raw.length);
  return parts;
}

const SPACE = 32;
const QUOTE = 34;
const BACKSLASH = 92;

/** Returns the end of a value; -1 if there is no such value. */
function endOf(value: DeltaValue, bytes: Uint8Array, from: number): number {
  if (value === 'end') return from;
  if (value === 'number') return endOfDigits(bytes, from);
  if (value !== 'spaces') return endOfCharacters(bytes, from);
  let at = from;
  while (bytes[at] === SPACE) at++;
  return at;
}

function hasAt(bytes: Uint8Array, from: number, part: Uint8Array): boolean {
  for (let at = 0; at < part.length; at++) if (bytes[from + at] !== part[at]) return false;
  return true;
}

// Recalls of a reply

/** The calls in a `ModelReply`: those of the recall tool, and those for the client. */
type CallsOfReply = { readonly recalls: readonly unknown[]; readonly calls: readonly unknown[] };

/** True when the model waits only for recalls: the client has nothing to run. */
export function awaitsRecall({ recalls, calls }: CallsOfReply): boolean {
  return recalls.length > 0 && calls.length === 0;
}

/** True when the model made recalls together with calls that the client runs. */
export function recallsWithCalls({ recalls, calls }: CallsOfReply): boolean {
  return recalls.length > 0 && calls.length > 0;
}

// Cache lifetimes that clients ask for. The Messages API has marks,
// `"cache_control":{"type":"ephemeral","ttl":"1h"}`; servers of Chat Completions that pass requests on to its models take these
// marks too. Chat Completions and Responses have fields.

export const markKey = 'cache_control';

/** A mark keeps the prompt cached for five minutes, in milliseconds, unless it asks for an hour. */
export const usualMarkMs = 5 * 60_000;
const longMarkMs = 60 * 60_000;

/** Members that hold further blocks: the content of a message or result, and the wrapper of a tool definition. */
const holders: ReadonlySet<string> = new Set(['content', 'function']);

/**
 * Returns for how many milliseconds the marks of a message, block or tool keep it cached, those on blocks inside included: the
 * longest of several; undefined without a mark.
 */
export function markedForMs(bytes: Uint8Array, members: readonly Member[], inside = 2): number | undefined {
  return longestOf(
    members.map((member) => {
      if (member.key === markKey) return markMs(parseSpan(bytes, member.value));
      return holders.has(member.key) && inside > 0
        ? blocksMarkedForMs(bytes, member.value, inside - 1)
        : undefined;
    }),
  );
}

/** Returns the same for a block, or for a list of blocks or tools. Any other value holds no mark. */
export function blocksMarkedForMs(bytes: Uint8Array, value: Span, inside = 1): number | undefined {
  if (startsWith(bytes, value, '{')) return markedForMs(bytes, objectAt(bytes, value.start), inside);
  if (!startsWith(bytes, value, '[')) return undefined;
  return longestOf(
    inSteps(elementsAt(bytes, value), (block) =>
      startsWith(bytes, block, '{') ? markedForMs(bytes, objectAt(bytes, block.start), inside) : undefined,
    ),
  );
}

/** Returns for how many milliseconds a mark keeps the prompt cached; undefined without a mark. */
export function markMs(control: unknown): number | undefined {
  if (control === undefined || control === null) return undefined;
  const isLong = typeof control === 'object' && control !== null && 'ttl' in control && control.ttl === '1h';
  return isLong ? longMarkMs : usualMarkMs;
}

/** True when marks that keep this long cost more to write: entries that are kept for an hour do. */
export function writesLong(keptMs: number | undefined): boolean {
  return keptMs !== undefined && keptMs >= longMarkMs;
}

const minuteMs = 60_000;

/** The documented values: `prompt_cache_options.ttl` is 30m or 12h, `prompt_cache_retention` is in_memory or 24h. */
const retentions: Readonly<Record<string, number | undefined>> = {
  '30m': 30 * minuteMs,
  '12h': 12 * 60 * minuteMs,
  '24h': 24 * 60 * minuteMs,
};

/**
 * Returns for how many milliseconds the fields of a Chat Completions or Responses request ask to keep its prompt; undefined
 * without such a field. Longer retention costs no more to write, according to the vendor's guide to prompt caching.
 */
export function retentionMs(fields: Readonly<Record<string, unknown>>): number | undefined {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = fields;
  const asked = [retention, isRecord(options) ? options['ttl'] : undefined];
  return longestOf(asked.map((value) => (typeof value === 'string' ? retentions[value] : undefined)));
}

export function longestOf(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (longest, time) => (longest === undefined || (time !== undefined && time > longest) ? time : longest),
    undefined,
  );
}

/** Returns the longest time for which the client marked any of these blocks, in milliseconds; undefined without a mark. */
export function longestMark(blocks: readonly Block[]): number | undefined {
  return longestOf(blocks.map((block) => block.markedForMs));
}
