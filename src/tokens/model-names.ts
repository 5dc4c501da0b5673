/**
 * The many spellings of a model's name, and tables keyed by name patterns. Pure. Gateways put vendors and regions in
 * front and dates and variants behind; a table should not have to list them all.
 */

/** Longer names are no names: nothing is looked up for them, since the client chooses how long they are. */
const LONGEST_NAME = 200;

/**
 * The names a model may be listed under, as it came first, in lower case: `vendor/model-4:free` is also `model-4`, and
 * `eu.vendor.model-4-20250514-v1:0` is also `model-4-20250514`.
 */
export function namesOf(model: string): readonly string[] {
  const name = model.trim().toLowerCase();
  if (name === '' || name.length > LONGEST_NAME) return [];
  const names = [name];
  for (const other of shorterNames(name)) if (other !== '' && !names.includes(other)) names.push(other);
  return names;
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
 * The value of the pattern that fits the model best: an exact name before any `*` glob, then the longest glob, the
 * first of equals. Patterns are compared in lower case with every spelling of the name. Undefined where nothing fits; `*` fits everything,
 * also what is no name.
 */
export function bestMatch<T>(model: string, table: Readonly<Record<string, T>>): T | undefined {
  const named = namesOf(model);
  const names = named.length > 0 ? named : [''];
  let best: { readonly weight: number; readonly value: T } | undefined;
  for (const [pattern, value] of Object.entries(table)) {
    const weight = pattern.includes('*') ? pattern.length : Number.POSITIVE_INFINITY;
    if (best !== undefined && best.weight >= weight) continue;
    const matches = matcherOf(pattern.toLowerCase());
    if (names.some(matches)) best = { weight, value };
  }
  return best?.value;
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
