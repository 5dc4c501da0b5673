/**
 * Describes one summary: tokens before and after, the ratio asked for and the ratio reached. Data for receipts, metrics and logs; holds
 * counts, names and ids, never content. Pure.
 */

/** Part of a conversation that was compressed. */
export type Compression = {
  /** The id of what replaces it: a sub-goal, a phase, an overview or an original. */
  readonly id: string;
  /** The kind of content: `history` (a summary), `items` (a list), or `subgoal`, `phase`, `overview`. */
  readonly level: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** `tokensBefore` divided by `tokensAfter`. */
  readonly ratio: number;
  /** The ratio that was asked for; undefined if none was, as in a light merge. */
  readonly target: number | undefined;
  /** The writer of the text: the summarizer, the local extractive summarizer, both, or none (lines merged, not summarized). */
  readonly by: SummaryBy;
  /** `under`: the ratio is below 0.7 times the target, too little was saved. `over`: above 1.5 times, too much may be lost. */
  readonly warning: 'under' | 'over' | undefined;
  /** Why the summarizer's text was not used unchanged; undefined if it was, or if no summarizer was asked. */
  readonly problem: string | undefined;
};

export type SummaryBy = 'summarizer' | 'extractive' | 'both' | 'merge';

/** Builds a compression: adds the ratio and the warning. */
export function compressionOf(made: Omit<Compression, 'ratio' | 'warning'>): Compression {
  const ratio = made.tokensBefore / Math.max(made.tokensAfter, 1);
  return { ...made, ratio, warning: warningOf(ratio, made.target) };
}

function warningOf(ratio: number, target: number | undefined): Compression['warning'] {
  if (target === undefined) return undefined;
  if (ratio < 0.7 * target) return 'under';
  return ratio > 1.5 * target ? 'over' : undefined;
}
