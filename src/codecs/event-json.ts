/** Edits and reads the JSON of responses and stream events, and of bodies that are checked. An edit leaves every other byte unchanged. */
import {
  type JsonRecord,
  ScanError,
  type Splice,
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
import { parseJson } from './check-json.ts';
import { Paused, oneStep } from './pausable.ts';

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

// Bodies that are read with `JSON.parse`, for checks that must not depend on our own reader

const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined for a body that is no JSON object. A body of more than a megabyte is cut into pieces first. */
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
