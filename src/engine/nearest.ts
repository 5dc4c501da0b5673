/** Finds the word that was most likely meant. Pure. */

/** The nearest of the known words, or undefined when none is near: more than a third of its letters are wrong, and more than one. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    const most = Math.max(1, Math.floor(candidate.length / 3));
    if (distance <= most && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { word: candidate, distance };
    }
  }
  return best?.word;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(one: string, other: string): number {
  let before: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          previous[j]! + 1,
          row[j - 1]! + 1,
          previous[j - 1]! + (same ? 0 : 1),
          swapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = previous;
    previous = row;
  }
  return previous[other.length]!;
}
