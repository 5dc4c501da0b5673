/**
 * How much the model may still recall in one request: so many rounds, and so many tokens that the request never outgrows the window
 * by what memory gives back. When it is spent the model is told so once, and goes on with what it has.
 */
import type { Prepared } from '../engine/prepared.ts';

export type RecallLimits = {
  /** Rounds of recalls in one request; in one more the model is told that there are no more. */
  readonly maxRounds: number;
  /** Tokens one answer may have. */
  readonly maxTokens: number;
};

export interface RecallBudget {
  /** Tokens each of so many answers may have, or what to tell the model instead. */
  forEach(round: number, calls: number): number | string;
  /** Takes a text that the request grows by. */
  spend(text: string): void;
  /** True when the model goes on calling after it was told to stop. */
  isSpent(round: number): boolean;
}

/** Fewer tokens than this hold no more than the way to the rest. */
const leastAnswer = 200;

export function openBudget({
  prepared,
  recall,
}: {
  readonly prepared: Prepared;
  readonly recall: RecallLimits;
}): RecallBudget {
  let left = prepared.room ?? Number.POSITIVE_INFINITY;
  return {
    forEach(round, calls) {
      if (round > recall.maxRounds)
        return 'No more memory can be read in this answer. Go on with what is there.';
      const each = Math.min(recall.maxTokens, Math.floor(left / calls));
      return each < leastAnswer
        ? 'The context window has no room left to read memory. Go on with what is there.'
        : each;
    },
    spend(text) {
      left -= prepared.counter?.count(text) ?? text.length;
    },
    isSpent: (round) => round > recall.maxRounds + 1,
  };
}
