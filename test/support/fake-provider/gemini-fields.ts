/** Reads parsed generateContent bodies. Every name has two spellings: `functionCall` and `function_call` are the same. */
import { isObject, objectsIn } from './json.ts';
import type { JsonObject } from './script.ts';

/** Returns a member by its camelCase name; null means absent. */
export function fieldOf(object: JsonObject | undefined, name: string): unknown {
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return object?.[name] ?? object?.[snake] ?? undefined;
}

export function objectAt(object: JsonObject | undefined, name: string): JsonObject | undefined {
  const value = fieldOf(object, name);
  return isObject(value) ? value : undefined;
}

export function textAt(object: JsonObject | undefined, name: string): string | undefined {
  const value = fieldOf(object, name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the parts of a content; a single part may be given without brackets. */
export function partsOf(content: JsonObject): readonly JsonObject[] {
  const parts = fieldOf(content, 'parts');
  return isObject(parts) ? [parts] : objectsIn(parts);
}

/** True for `gemini-3-pro`, `gemini-3.1-flash` and later: they require the signatures of their calls. */
export function checksSignatures(model: string): boolean {
  const [, version] = /gemini-(\d+)/.exec(model) ?? [];
  return Number(version) >= 3;
}
