/**
 * Describes one summary, and the totals of many: tokens before and after, the ratio asked for and the ratio reached. Data for receipts,
 * metrics and logs; holds counts, names and ids, never content. Pure.
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

/** Totals over compressions, as plain data. */
export type CompressionTotals = {
  readonly count: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly under: number;
  readonly over: number;
  readonly problems: number;
  readonly by: Readonly<Record<SummaryBy, number>>;
};

export const noCompressions: CompressionTotals = {
  count: 0,
  tokensBefore: 0,
  tokensAfter: 0,
  under: 0,
  over: 0,
  problems: 0,
  by: { summarizer: 0, extractive: 0, both: 0, merge: 0 },
};

/** Builds a compression: adds the ratio and the warning. */
export function compressionOf(made: Omit<Compression, 'ratio' | 'warning'>): Compression {
  const ratio = made.tokensBefore / Math.max(made.tokensAfter, 1);
  return { ...made, ratio, warning: warningOf(ratio, made.target) };
}

/** Returns the compressions with token counts scaled by a correction factor; the ratios stay. */
export function scaledCompressions(
  compressions: readonly Compression[],
  slope: number,
): readonly Compression[] {
  return compressions.map((one) => ({
    ...one,
    tokensBefore: Math.round(one.tokensBefore * slope),
    tokensAfter: Math.round(one.tokensAfter * slope),
  }));
}

export function addedCompressions(one: CompressionTotals, other: CompressionTotals): CompressionTotals {
  return {
    count: one.count + other.count,
    tokensBefore: one.tokensBefore + other.tokensBefore,
    tokensAfter: one.tokensAfter + other.tokensAfter,
    under: one.under + other.under,
    over: one.over + other.over,
    problems: one.problems + other.problems,
    by: {
      summarizer: one.by.summarizer + other.by.summarizer,
      extractive: one.by.extractive + other.by.extractive,
      both: one.by.both + other.by.both,
      merge: one.by.merge + other.by.merge,
    },
  };
}

export function addCompression(totals: CompressionTotals, made: Compression): CompressionTotals {
  return {
    count: totals.count + 1,
    tokensBefore: totals.tokensBefore + made.tokensBefore,
    tokensAfter: totals.tokensAfter + made.tokensAfter,
    under: totals.under + Number(made.warning === 'under'),
    over: totals.over + Number(made.warning === 'over'),
    problems: totals.problems + Number(made.problem !== undefined),
    by: { ...totals.by, [made.by]: totals.by[made.by] + 1 },
  };
}

/** Returns the totals with their ratio and the tokens saved. The ratio is that of the sums, so large compressions weigh more. */
export function summaryOf(
  totals: CompressionTotals,
): CompressionTotals & { readonly ratio: number; readonly tokensSaved: number } {
  const { tokensBefore, tokensAfter } = totals;
  return {
    ...totals,
    ratio: tokensBefore / Math.max(tokensAfter, 1),
    tokensSaved: tokensBefore - tokensAfter,
  };
}

function warningOf(ratio: number, target: number | undefined): Compression['warning'] {
  if (target === undefined) return undefined;
  if (ratio < 0.7 * target) return 'under';
  return ratio > 1.5 * target ? 'over' : undefined;
}
