/** The arguments of a call, read as an object. Pure, never throws. */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Undefined for what is no JSON, or no object. */
export function argumentsIn(json: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
