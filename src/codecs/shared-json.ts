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
  isRecord,
  listSplices,
  parseSpan,
  scanArray,
  scanObject,
  skipSpace,
} from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import type { Block, Span } from '../conversation/conversation.ts';
import { inSteps } from '../conversation/steps.ts';
import { elementsAt, startsWith } from './read-body.ts';

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

// Values from `JSON.parse`, for checks that must not depend on our own reader

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
  if (startsWith(bytes, value, '{'))
    return markedForMs(bytes, scanObject(bytes, value.start).members, inside);
  if (!startsWith(bytes, value, '[')) return undefined;
  return longestOf(
    inSteps(elementsAt(bytes, value), (block) =>
      startsWith(bytes, block, '{')
        ? markedForMs(bytes, scanObject(bytes, block.start).members, inside)
        : undefined,
    ),
  );
}

/** Returns for how many milliseconds a mark keeps the prompt cached; undefined without a mark. */
export function markMs(control: unknown): number | undefined {
  if (control === undefined) return undefined;
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
  let longest: number | undefined;
  for (const { markedForMs: ms } of blocks)
    if (ms !== undefined && (longest === undefined || ms > longest)) longest = ms;
  return longest;
}
