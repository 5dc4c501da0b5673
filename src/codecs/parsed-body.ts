/** Reads a whole body with `JSON.parse`, for checks that must not depend on our own reader. */
import { type JsonRecord, isRecord } from '../conversation/json-record.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined for a body that is no JSON object. */
export function parsedBody(body: Uint8Array): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
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
