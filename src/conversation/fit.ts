/** Finds how much of a text fits a number of tokens. The cost is in proportion to the part that fits, not to the text. Pure. */

/** Counts the tokens of a text; one of `TokenCounter.count`. */
export type CountTokens = (text: string) => number;

const firstGuess = 3;
const fastestGrowth = 8;
/** Counting is the expensive step, so a fit within 3 % of the budget is as good as the best one. */
const closeEnough = 0.97;

/**
 * Returns an offset such that the text from `start` to it counts at most `budget` tokens, and little more would fit: `end` when
 * all of it fits, never inside a code point, `start` when not one code point fits.
 */
export function longestFit(
  text: string,
  { start, end }: { readonly start: number; readonly end: number },
  budget: number,
  countTokens: CountTokens,
): number {
  if (budget <= 0) return start;
  let good = start;
  let bad = end + 1;
  let guess = start + Math.ceil(budget * firstGuess);
  for (let tries = 1; good < end; tries++) {
    let to = wholeBefore(text, Math.min(guess, bad - 1));
    if (to <= good) to = wholeAfter(text, good + 1);
    if (to >= bad) return good;

    const tokens = countTokens(text.slice(start, to));
    if (tokens <= budget) good = to;
    else bad = to;
    const length = to - start;
    if (good === to && tokens >= budget * closeEnough) {
      const isNearEnd = bad > end && end - start < length * 1.05;
      if (!isNearEnd) return good;
      guess = end;
    } else {
      const likely = Math.floor(length * Math.min(fastestGrowth, (budget / Math.max(tokens, 1)) * 0.99));
      guess = start + likely;
      // When the tokens per character vary along the text, halving finds what the estimate does not.
      const isOutside = guess <= good || guess >= bad;
      if (bad <= end && (isOutside || tries % 3 === 0)) guess = good + Math.ceil((bad - good) / 2);
    }
  }
  return good;
}

/** Returns the beginning of the text that fits: the last resort for a text that could not be shortened otherwise. */
export function clip(text: string, maxTokens: number, countTokens: CountTokens): string {
  return text.slice(0, longestFit(text, { start: 0, end: text.length }, maxTokens, countTokens));
}

/** Returns the nearest offset at or before this one that does not split a surrogate pair. */
export function wholeBefore(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset - 1 : offset;
}

/** Returns the nearest offset at or after this one that does not split a surrogate pair. */
export function wholeAfter(text: string, offset: number): number {
  return isInsidePair(text, offset) ? offset + 1 : offset;
}

function isInsidePair(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
