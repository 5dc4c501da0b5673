/**
 * What one summary came to, and the sums of many: tokens in, tokens out, the ratio that was asked for and the one that came. Data for
 * receipts, metrics and logs; holds counts, names and ids, never content. Pure.
 */

/** One stretch that was compressed. */
export type Compression = {
  /** What stands for it now: the id of a sub-goal, a phase, an overview, a memory. */
  readonly id: string;
  /** What kind of stretch: `history` and `items` in requests; `subgoal`, `phase`, `overview` in trajectories. */
  readonly level: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** `tokensBefore` for one token of `tokensAfter`. */
  readonly ratio: number;
  /** The ratio that was asked for; undefined where none was, as in a light merge. */
  readonly target: number | undefined;
  /** Whose words they are: the summarizer's, those of the local extractive one, both, or lines merged and not summarised. */
  readonly by: SummaryBy;
  /** The ratio is under 0.7 or over 1.5 times the target: too little was saved, or too much may be lost. */
  readonly warning: 'under' | 'over' | undefined;
  /** Why the summarizer's own words were not taken as they came; undefined where they were, or nobody was asked. */
  readonly problem: string | undefined;
};

export type SummaryBy = 'summarizer' | 'extractive' | 'both' | 'merge';

/** Sums over compressions, in the form of plain data. */
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

/** Fills in the ratio and the warning. */
export function compressionOf(made: Omit<Compression, 'ratio' | 'warning'>): Compression {
  const ratio = made.tokensBefore / Math.max(made.tokensAfter, 1);
  return { ...made, ratio, warning: warningOf(ratio, made.target) };
}

/** The same counts corrected by what is known of how far they are off; the ratios stay. */
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

/** The sums with what is read off them. The ratio is that of the sums, so that large stretches weigh more. */
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
