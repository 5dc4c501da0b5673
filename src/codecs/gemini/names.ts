/**
 * Handles the two spellings of every name in this format: proto JSON takes `functionCall` and `function_call` alike. Members are
 * looked up by the camelCase name; the bytes keep their spelling.
 */
import type { Span } from '../../conversation/conversation.ts';
import { type Member, isRecord, scanObject } from '../../conversation/json-scan.ts';
import { isNull, startsWith } from '../read-body.ts';

export type NamedMembers = ReadonlyMap<string, Member>;

/** Spells `function_call` as `functionCall`. */
function camelCase(key: string): string {
  return key.includes('_') ? key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : key;
}

/** Returns both spellings of a camelCase name. */
export function spellings(name: string): readonly [string, string] {
  return [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
}

/**
 * Returns the members by camelCase name, without those that are null (null means the same as absent). Of several with one name
 * the last counts, as in `JSON.parse`; `repeats` says that there are several, in whatever spellings: the content of such an
 * object is never edited.
 */
export function byName(
  bytes: Uint8Array,
  members: readonly Member[],
): { readonly named: NamedMembers; readonly repeats: boolean } {
  const named = new Map(members.map((member) => [camelCase(member.key), member]));
  const repeats = named.size < members.length;
  for (const [name, member] of named) if (isNull(bytes, member.value)) named.delete(name);
  return { named, repeats };
}

/** Returns the members of the object at a place; undefined when there is no object. */
export function namedMembers(bytes: Uint8Array, span: Span | undefined): NamedMembers | undefined {
  return span && startsWith(bytes, span, '{')
    ? byName(bytes, scanObject(bytes, span.start).members).named
    : undefined;
}

/** True for an object in which a name occurs twice. */
export function repeatsName(bytes: Uint8Array, span: Span | undefined): boolean {
  return (
    span !== undefined &&
    startsWith(bytes, span, '{') &&
    byName(bytes, scanObject(bytes, span.start).members).repeats
  );
}

/** Returns the value of a member of a parsed object, in either spelling. */
export function valueOf(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined;
  const [camel, snake] = spellings(name);
  return value[camel] ?? value[snake];
}

export function stringOf(value: unknown, name: string): string | undefined {
  const found = valueOf(value, name);
  return typeof found === 'string' ? found : undefined;
}

export function numberOf(value: unknown, name: string): number | undefined {
  const found = valueOf(value, name);
  return typeof found === 'number' ? found : undefined;
}
