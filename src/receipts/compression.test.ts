import { describe, expect, it } from 'vitest';
import { compressionOf } from './receipt.ts';
import { addCompression, noCompressions, summaryOf } from './totals.ts';

const stretch = (tokensBefore: number, tokensAfter: number, target: number | undefined) =>
  compressionOf({
    id: 's1',
    level: 'subgoal',
    tokensBefore,
    tokensAfter,
    target,
    by: 'summarizer',
    problem: undefined,
  });

describe('one compression', () => {
  it('has its ratio, and a warning under 0.7 and over 1.5 times the target', () => {
    expect(stretch(1_000, 100, 10)).toEqual({
      id: 's1',
      level: 'subgoal',
      tokensBefore: 1_000,
      tokensAfter: 100,
      ratio: 10,
      target: 10,
      by: 'summarizer',
      warning: undefined,
      problem: undefined,
    });
    expect(
      [143, 142, 67, 66].map((tokensAfter) => [tokensAfter, stretch(1_000, tokensAfter, 10).warning]),
    ).toEqual([
      [143, 'under'],
      [142, undefined],
      [67, undefined],
      [66, 'over'],
    ]);
  });

  it('has no warning if no ratio was asked for', () => {
    expect(stretch(1_000, 1, undefined).warning).toBeUndefined();
  });
});

describe('sums', () => {
  it('count tokens saved, warnings, problems and authors', () => {
    const made = [
      stretch(1_000, 100, 10),
      stretch(500, 250, 10),
      { ...stretch(300, 10, 10), by: 'extractive' as const, problem: 'it threw' },
    ];
    expect(summaryOf(made.reduce(addCompression, noCompressions))).toEqual({
      count: 3,
      tokensBefore: 1_800,
      tokensAfter: 360,
      ratio: 5,
      tokensSaved: 1_440,
      under: 1,
      over: 1,
      problems: 1,
      by: { summarizer: 2, extractive: 1, both: 0, merge: 0 },
    });
  });

  it('are zero without compressions', () => {
    expect(summaryOf(noCompressions)).toEqual({ ...noCompressions, ratio: 0, tokensSaved: 0 });
  });
});
