/** Plain reading of a whole body with `JSON.parse`, for checks that must not trust what the readers of this house see in it. */
import { type JsonRecord, isRecord } from '../conversation/json-record.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for what is no JSON object. */
export function parsedBody(body: Uint8Array): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(body));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The objects of a list; anything else in it counts as an empty object. */
export function objectsOf(list: unknown): readonly JsonRecord[] {
  return Array.isArray(list) ? list.map((item) => (isRecord(item) ? item : {})) : [];
}

/** A member that is a text with at least one character. */
export function wordAt(object: JsonRecord, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** True for a text or a list that holds something. */
export function isFilled(value: unknown): boolean {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}
