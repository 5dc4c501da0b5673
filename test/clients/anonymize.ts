/**
 * Makes a fixture from a recorded request body: it replaces texts of others by generated words and ids by ids of the same shape, and keeps
 * only a few of many tools. Keys and their order, numbers and white space keep their bytes. Pure and idempotent: a fixture does not change.
 */
import type { Span } from '../../src/conversation/conversation.ts';
import { decodeLiteral } from '../../src/conversation/messages.ts';
import {
  type Splice,
  applySplices,
  literalBytes,
  scanArray,
  scanObject,
  skipSpace,
} from '../../src/conversation/json-scan.ts';
import { toolsToDrop } from './anonymize-tools.ts';
import { ownPaths, ownText } from './anonymize-words.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export function anonymize(body: Uint8Array): Uint8Array {
  return rewritten(applySplices(body, toolsToDrop(body)), newIds());
}

/** Returns the strings in a body with their keys, including those in JSON inside a string. */
export function stringsIn(
  value: unknown,
  key = '',
): readonly { readonly key: string; readonly text: string }[] {
  if (typeof value === 'string') {
    const inner = parsedJson(value);
    return inner === undefined ? [{ key, text: value }] : stringsIn(inner, key);
  }
  if (Array.isArray(value)) return value.flatMap((one) => stringsIn(one, key));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => stringsIn(inner, name));
}

/** Returns true for a text that a vendor could have written: one with a space, or one at a key for prose. */
export function isProse(key: string, text: string): boolean {
  return text !== '' && (/\s/.test(text) || proseKeys.has(key));
}

/** Numbers the ids of each kind; equal ids get equal numbers. */
type Ids = (kind: string, id: string) => number;

function newIds(): Ids {
  const known = new Map<string, number>();
  const counts = new Map<string, number>();
  return (kind, id) => {
    const before = known.get(`${kind} ${id}`);
    if (before !== undefined) return before;
    const next = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, next);
    known.set(`${kind} ${id}`, next);
    return next;
  };
}

function rewritten(body: Uint8Array, ids: Ids): Uint8Array {
  return applySplices(body, splicesIn(body, { start: skipSpace(body, 0), end: body.length }, '', ids));
}

function splicesIn(body: Uint8Array, span: Span, key: string, ids: Ids): readonly Splice[] {
  const bytes = body.subarray(span.start, span.end);
  switch (String.fromCharCode(body[span.start] ?? 0)) {
    case '{':
      return scanObject(body, span.start).members.flatMap((member) =>
        splicesIn(body, member.value, member.key, ids),
      );
    case '[':
      return scanArray(body, span.start).elements.flatMap((one) => splicesIn(body, one, key, ids));
    case '"': {
      const text = decodeLiteral(bytes);
      const own = ownString(key, text, ids);
      return own === text ? [] : [{ span, bytes: literalBytes(own) }];
    }
    default: {
      const own = ownNumber(decoder.decode(bytes));
      return own === undefined ? [] : [{ span, bytes: encoder.encode(own) }];
    }
  }
}

const proseKeys: ReadonlySet<string> = new Set([
  'content',
  'definition',
  'description',
  'input',
  'instructions',
  'output',
  'system',
  'text',
  'thinking',
]);

function ownString(key: string, text: string, ids: Ids): string {
  if (parsedJson(text) !== undefined) return decoder.decode(rewritten(encoder.encode(text), ids));
  if (isProse(key, text)) return ownText(text);
  return ownPaths(ownIds(text, ids)).replace(/\b\d+\.\d+\.\d+\b/g, '1.0.0');
}

/** Parses a text that is a JSON object or list; undefined for others. */
function parsedJson(text: string): unknown {
  if (!/^[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Replaces generated ids by numbers of the same length. Ids of the scripted provider (`call_0_1`) stay. */
function ownIds(text: string, ids: Ids): string {
  if (isSeal(text)) return text;
  return text
    .replace(/[\da-f]{8}-[\da-f]{4}-([\da-f])[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g, (id, version: string) => {
      const number = `${ids('uuid', id)}`.padStart(12, '0');
      return `00000000-0000-${version}000-8000-${number}`;
    })
    .replace(/(?<![A-Za-z\d])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16,}/g, (id) =>
      `${ids('word', id)}`.padStart(id.length, '0'),
    );
}

/** Returns true for a seal of the scripted provider, which is base64 of its own words. */
function isSeal(text: string): boolean {
  return /^[A-Za-z\d+/]{8,}={0,2}$/.test(text) && /^(?:sealed|signature)\b/.test(atob(padded(text)));
}

function padded(text: string): string {
  const bare = text.replace(/=+$/, '');
  return bare.length % 4 === 1 ? '' : bare.padEnd(Math.ceil(bare.length / 4) * 4, '=');
}

/** Replaces a time in seconds or milliseconds since 1970 by one with as many digits; undefined for other numbers. */
function ownNumber(spelled: string): string | undefined {
  const [, whole, fraction = ''] = /^(1[5-9]\d{8}|1[5-9]\d{11})(\.\d+)?$/.exec(spelled) ?? [];
  return whole && `17${'0'.repeat(whole.length - 2)}${fraction.replaceAll(/\d/g, '5')}`;
}
