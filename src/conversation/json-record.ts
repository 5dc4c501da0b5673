/** The arguments of a call, read as an object. Pure, never throws. */

export type JsonRecord = Readonly<Record<string, unknown>>;

/** Undefined for what is no JSON, or no object. */
export function argumentsIn(json: string): JsonRecord | undefined {
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
