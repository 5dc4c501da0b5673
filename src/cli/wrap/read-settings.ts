/** Reads the settings files of other programs, and values in them: JSON with comments, and the texts of TOML. Never throws. */
import { readFileSync } from 'node:fs';
import { isRecord } from '../../conversation/json-scan.ts';

export type SettingsObject = Readonly<Record<string, unknown>>;

/** Returns the text of a file; undefined if there is none or it cannot be read. */
export function readSettings(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Parses a JSON object, also with comments and trailing commas; undefined for anything else. */
export function parsedJson(text: string | undefined): SettingsObject | undefined {
  if (text === undefined) return undefined;
  const plain = text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*.*?\*\//gs, '$1')
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, '$1');
  try {
    const value: unknown = JSON.parse(plain);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inside, key) => (isRecord(inside) ? inside[key] : undefined), value);
}

/** Returns the text at a path; undefined if there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, path);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

/** Returns the object at a path; undefined if there is none. */
export function objectAt(value: unknown, ...path: readonly string[]): SettingsObject | undefined {
  const found = valueAt(value, path);
  return isRecord(found) ? found : undefined;
}

/** Returns `one` with the entries of `other`, which win; objects in both are merged. */
export function mergedJson(one: SettingsObject, other: SettingsObject): SettingsObject {
  const entries = Object.entries(other).map(([key, value]) => {
    const before = one[key];
    return [key, isRecord(before) && isRecord(value) ? mergedJson(before, value) : value] as const;
  });
  return { ...one, ...Object.fromEntries(entries) };
}

/** Returns the texts of a TOML file by their dotted keys, such as `model_providers.own.base_url`. Other values are left out. */
export function tomlTexts(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let table = '';
  for (const line of text.split('\n')) {
    const [, name] = /^\s*\[([^\]]+)\]/.exec(line) ?? [];
    if (name !== undefined) table = `${name.replaceAll(/["'\s]/g, '')}.`;
    const [, key, value] = /^\s*([\w.-]+)\s*=\s*["']([^"']*)["']/.exec(line) ?? [];
    if (key !== undefined && value !== undefined) found.set(table + key, value);
  }
  return found;
}
