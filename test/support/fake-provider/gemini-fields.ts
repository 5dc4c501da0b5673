/** Reading of parsed generateContent bodies. Every name has two spellings there: `functionCall` and `function_call` are the same. */
import { isObject, objectsIn } from './json.ts';
import type { JsonObject } from './script.ts';

/** A member by its camelCase name; null is the same as nothing. */
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

/** The parts of a content; one alone may stand without brackets. */
export function partsOf(content: JsonObject): readonly JsonObject[] {
  const parts = fieldOf(content, 'parts');
  return isObject(parts) ? [parts] : objectsIn(parts);
}

/** `gemini-3-pro`, `gemini-3.1-flash` and later want the signatures of their calls back. */
export function checksSignatures(model: string): boolean {
  const [, version] = /gemini-(\d+)/.exec(model) ?? [];
  return Number(version) >= 3;
}
