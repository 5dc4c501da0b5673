/** Finds which messages hold a value, once for a value: later calls use the same paths and names again and again. Pure but for its memo. */
import { placeOf, type Value } from './needs.ts';

/** Returns the indices of the texts before `before` that hold the value, in order. */
export function createOccurrences(
  texts: readonly string[],
): (value: Value, before: number) => readonly number[] {
  // One search through one long text is far quicker than many through short ones; the separator stands in no value.
  const joined = texts.join('\u0000');
  const starts: number[] = [];
  let start = 0;
  for (const text of texts) {
    starts.push(start);
    start += text.length + 1;
  }
  const known = new Map<string, readonly number[]>();

  function find(value: Value): readonly number[] {
    const found: number[] = [];
    let at = placeOf(joined, value, 0);
    let index = 0;
    while (at >= 0) {
      index = indexAt(starts, at, index);
      found.push(index);
      const next = starts[index + 1];
      at = next === undefined ? -1 : placeOf(joined, value, next);
    }
    return found;
  }

  return function occurrencesOf(value, before) {
    const key = `${value.kind} ${value.text}`;
    let found = known.get(key);
    if (found === undefined) known.set(key, (found = find(value)));
    return found.filter((index) => index < before);
  };
}

/** The text that holds a position of the joined text; none before `least` does. */
function indexAt(starts: readonly number[], at: number, least: number): number {
  let low = least;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
