/** Finds the word that was most likely meant. Pure. */

/**
 * Returns the known word that is most like this one, or the new name of a renamed setting. Undefined when none is close: more than a
 * third of its letters differ, and more than one.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const newName = newNameOf(word, known);
  if (newName !== undefined) return newName;
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

/** Settings by their old names, as a key and as the end of a variable's name. */
const renamedSettings: Readonly<Record<string, string>> = {
  stepsUsedFor: 'keepStepsForRequests',
  STEPS_USED_FOR: 'KEEP_STEPS_FOR_REQUESTS',
  usedFor: 'keepForRequests',
  USED_FOR: 'KEEP_FOR_REQUESTS',
  patience: 'minPayback',
  PATIENCE: 'MIN_PAYBACK',
  least: 'minTokens',
  LEAST: 'MIN_TOKENS',
};

function newNameOf(word: string, known: readonly string[]): string | undefined {
  return Object.entries(renamedSettings)
    .filter(([old]) => word.endsWith(old))
    .map(([old, now]) => word.slice(0, -old.length) + now)
    .find((name) => known.includes(name));
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
