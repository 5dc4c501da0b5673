import { describe, expect, it } from 'vitest';
import { type BilledRequest, earlierRequestOf, type Difference, baselineUsageOf } from './cost.ts';

/** A counter that counts twice as much as the provider, without correction. */
const difference: Difference = {
  counted: 200_000,
  tokensBefore: 200_000,
  tokensAfter: 80_000,
  edits: 3,
  hiddenRecalls: 1,
  cacheMarks: 0,
  tokensKept: undefined,
};

const earlier = {
  at: 0,
  prompt: 35_000,
  baseline: 90_000,
  counted: 180_000,
  edits: 3,
  hiddenRecalls: 1,
  cached: true,
  lifetimeMs: 300_000,
} as const;

/** The provider counts 40,000 tokens for the sent request. */
const lengthOf = (change: Partial<BilledRequest>): number =>
  baselineUsageOf({
    at: 60_000,
    rounds: [{ input: 40_000, cacheRead: 30_000, cacheWrite: 10_000, output: 10 }],
    difference,
    earlier,
    continues: true,
    ...change,
  }).input;

describe('the length of the baseline request', () => {
  it("grows with the provider's count as long as the fold is the same", () => {
    expect(lengthOf({})).toBe(95_000);
  });

  it('grows in proportion to our counts when more is folded or put back', () => {
    const changes = [{ tokensKept: 10_000, edits: 9 }, { edits: 9 }, { hiddenRecalls: 2 }];
    for (const change of changes)
      expect(lengthOf({ difference: { ...difference, ...change } })).toBe(100_000);
  });

  it('is the sent length plus the difference of our counts without an earlier request; too large counts save less', () => {
    const unknown = [
      { earlier: undefined },
      { continues: false },
      { earlier: { ...earlier, edits: 0, counted: undefined } },
    ];
    for (const change of unknown) expect(lengthOf(change)).toBe(100_000);
    // The provider counts half of the expected tokens, so half of the 120,000 folded tokens count. Twice as much does not increase it.
    const twice = { ...difference, tokensBefore: 50_000, tokensAfter: 20_000 };
    expect(lengthOf({ earlier: undefined, difference: twice })).toBe(70_000);
  });

  it('is the sent length minus the recall tool if nothing else was changed', () => {
    expect(lengthOf({ difference: undefined })).toBe(40_000);
    const offered = { ...difference, tokensBefore: 39_800, tokensAfter: 40_000, edits: 0, hiddenRecalls: 0 };
    expect(lengthOf({ difference: offered })).toBe(39_800);
  });

  it('does not continue from a history that the client has rewritten', () => {
    const rewritten = { ...difference, counted: 80_000, tokensBefore: 80_000, edits: 0, hiddenRecalls: 0 };
    expect(lengthOf({ difference: rewritten, continues: false })).toBe(40_000);
  });
});

describe('the facts remembered of a request', () => {
  const request: BilledRequest = {
    at: 60_000,
    rounds: [
      { input: 40_000, cacheRead: 0, cacheWrite: 0, output: 100 },
      { input: 44_000, cacheRead: 40_000, cacheWrite: 0, output: 2_000 },
    ],
    difference,
    earlier,
    continues: true,
  };

  it('are its prompt as sent and as baseline, how it was changed, and whether the provider caches', () => {
    expect(earlierRequestOf(request)).toEqual({
      at: 60_000,
      prompt: 40_000,
      baseline: 95_000,
      counted: 200_000,
      edits: 3,
      hiddenRecalls: 1,
      cached: true,
      lifetimeMs: 300_000,
    });
  });

  it('include the longer cache lifetime once something was written with it', () => {
    const rounds = [{ input: 10, cacheRead: 0, cacheWrite: 10, cacheWriteLong: 10, output: 1 }] as const;
    const long = earlierRequestOf({ ...request, rounds });
    expect([long.cached, long.lifetimeMs]).toEqual([true, 3_600_000]);
    expect(earlierRequestOf({ ...request, earlier: long }).lifetimeMs).toBe(3_600_000);
  });
});
