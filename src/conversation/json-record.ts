/** Reads JSON objects, such as the arguments of a call. Pure, never throws. */

export type JsonRecord = Readonly<Record<string, unknown>>;

/** Returns undefined for a text that is not the JSON of an object. */
export function parseRecord(json: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
