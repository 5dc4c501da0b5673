/**
 * Matches the many spellings of a model's name with tables keyed by name patterns. Gateways prepend vendors and regions and
 * append dates and variants; a table should not have to list them all. Pure except for its memo.
 */

import { LRUCache } from 'lru-cache';

/** Longer names are not looked up, because the client chooses their length. */
const MAX_NAME_LENGTH = 200;

/**
 * Returns the names a model may be listed under, the full name first, in lower case: `vendor/model-4:free` is also `model-4`, and
 * `eu.vendor.model-4-20250514-v1:0` is also `model-4-20250514`.
 */
export function namesOf(model: string): readonly string[] {
  const name = nameOf(model);
  if (name === undefined) return [];
  const names = [name];
  for (const other of shorterNames(name)) if (other !== '' && !names.includes(other)) names.push(other);
  return names;
}

/** Returns the first of these names; undefined for anything that is no name. */
export function nameOf(model: string): string | undefined {
  const name = model.trim().toLowerCase();
  return name === '' || name.length > MAX_NAME_LENGTH ? undefined : name;
}

function* shorterNames(name: string): Generator<string> {
  const plain = name.replace(/\[[^\]]*\]$/, '');
  const path = plain.split('/');
  for (let from = 0; from < path.length; from++) {
    const rest = path.slice(from).join('/');
    yield rest;
    const bare = rest
      .replace(/^ft:([^:]+):.*$/, '$1')
      .replace(/^(?:[a-z-]+\.)*(?=[a-z])/, '')
      .replace(/-v\d+(?::\d+)?$/, '')
      .replace(/:[a-z-]+$/, '');
    yield bare;
    yield bare.replace('@', '-');
  }
}

/**
 * Returns the value of the pattern that fits the model best: an exact name before any `*` glob, then the longest glob, the first
 * of equals. Patterns are compared in lower case with every spelling of the name. Undefined when nothing fits; `*` fits
 * everything, even what is no name. Remembered for each table, which must not change: every request asks the same again.
 */
export function bestMatch<T>(model: string, table: Readonly<Record<string, T>>): T | undefined {
  const known = matchesOf(table);
  // A name that is too long is looked up as none, so that no client fills the memory.
  const name = model.length > MAX_NAME_LENGTH ? '' : model;
  let found = known.get(name);
  if (found === undefined) known.set(name, (found = { pattern: bestPattern(name, Object.keys(table)) }));
  return found.pattern === undefined ? undefined : table[found.pattern];
}

type PatternFit = { readonly pattern: string | undefined };

const matches = new WeakMap<object, LRUCache<string, PatternFit>>();

function matchesOf(table: object): LRUCache<string, PatternFit> {
  const known = matches.get(table) ?? new LRUCache<string, PatternFit>({ max: 200 });
  matches.set(table, known);
  return known;
}

function bestPattern(model: string, patterns: readonly string[]): string | undefined {
  const named = namesOf(model);
  const names = named.length > 0 ? named : [''];
  let best: { readonly weight: number; readonly pattern: string } | undefined;
  for (const pattern of patterns) {
    const weight = pattern.includes('*') ? pattern.length : Number.POSITIVE_INFINITY;
    if (best !== undefined && best.weight >= weight) continue;
    const isMatch = matcherOf(pattern.toLowerCase());
    if (names.some(isMatch)) best = { weight, pattern };
  }
  return best?.pattern;
}

function matcherOf(pattern: string): (name: string) => boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return (name) => name === head;
  return (name) => {
    if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length)
      return false;
    let at = head.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return at <= name.length - tail.length;
  };
}
