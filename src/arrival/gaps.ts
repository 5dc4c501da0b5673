/** Where lines or rows are left out, a marker stands in their place; one or two of them are no longer than the marker. */

const SMALLEST = 4;

/** `kept` and, of `length` places, all that lie in gaps too small to tell of. */
export function withoutSmallGaps(kept: ReadonlySet<number>, length: number): ReadonlySet<number> {
  const all = new Set(kept);
  let last = -1;
  for (let at = 0; at <= length; at++) {
    if (at < length && !kept.has(at)) continue;
    if (at - last - 1 < SMALLEST) for (let gone = last + 1; gone < at; gone++) all.add(gone);
    last = at;
  }
  return all;
}
