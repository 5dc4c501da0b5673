import { describe, expect, it } from 'vitest';
import { type AnsweredRequest, asEarlier, type Difference, untouchedUsageOf } from './baseline-cost.ts';

/** A counter that counts twice what the provider counts, and was never corrected. */
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
  untouched: 90_000,
  counted: 180_000,
  edits: 3,
  hiddenRecalls: 1,
  cached: true,
  lifetimeMs: 300_000,
} as const;

/** The provider counts 40,000 tokens of what was sent. */
const lengthOf = (change: Partial<AnsweredRequest>): number =>
  untouchedUsageOf({
    at: 60_000,
    rounds: [{ input: 40_000, cacheRead: 30_000, cacheWrite: 10_000, output: 10 }],
    difference,
    earlier,
    continues: true,
    ...change,
  }).input;

describe('the length of the untouched request', () => {
  it('grows by what the provider counts more, as long as the same is folded away', () => {
    expect(lengthOf({})).toBe(95_000);
  });

  it('grows in the share in which counts grow, where more is folded away or more was put back', () => {
    const changes = [{ tokensKept: 10_000, edits: 9 }, { edits: 9 }, { hiddenRecalls: 2 }];
    for (const change of changes)
      expect(lengthOf({ difference: { ...difference, ...change } })).toBe(100_000);
  });

  it('is the length sent and what counts differ by, where nobody knows the request before; too large counts save less', () => {
    const unknown = [
      { earlier: undefined },
      { continues: false },
      { earlier: { ...earlier, edits: 0, counted: undefined } },
    ];
    for (const change of unknown) expect(lengthOf(change)).toBe(100_000);
    // The provider counts half of what was expected: half of the 120,000 that were folded away. Twice as much does not make it more.
    const twice = { ...difference, tokensBefore: 50_000, tokensAfter: 20_000 };
    expect(lengthOf({ earlier: undefined, difference: twice })).toBe(70_000);
  });

  it('is the length sent where nothing was changed, but for the tool that was offered', () => {
    expect(lengthOf({ difference: undefined })).toBe(40_000);
    const offered = { ...difference, tokensBefore: 39_800, tokensAfter: 40_000, edits: 0, hiddenRecalls: 0 };
    expect(lengthOf({ difference: offered })).toBe(39_800);
  });

  it('does not go on from what a client has rewritten', () => {
    const rewritten = { ...difference, counted: 80_000, tokensBefore: 80_000, edits: 0, hiddenRecalls: 0 };
    expect(lengthOf({ difference: rewritten, continues: false })).toBe(40_000);
  });
});

describe('what is remembered of a request', () => {
  const request: AnsweredRequest = {
    at: 60_000,
    rounds: [
      { input: 40_000, cacheRead: 0, cacheWrite: 0, output: 100 },
      { input: 44_000, cacheRead: 40_000, cacheWrite: 0, output: 2_000 },
    ],
    difference,
    earlier,
    continues: true,
  };

  it('is what its first prompt was and would have been, how it was changed, and whether the provider caches', () => {
    expect(asEarlier(request)).toEqual({
      at: 60_000,
      prompt: 40_000,
      untouched: 95_000,
      counted: 200_000,
      edits: 3,
      hiddenRecalls: 1,
      cached: true,
      lifetimeMs: 300_000,
    });
  });

  it('is how long the cache lasts, once something was written for longer', () => {
    const rounds = [{ input: 10, cacheRead: 0, cacheWrite: 10, cacheWriteLong: 10, output: 1 }] as const;
    const long = asEarlier({ ...request, rounds });
    expect([long.cached, long.lifetimeMs]).toEqual([true, 3_600_000]);
    expect(asEarlier({ ...request, earlier: long }).lifetimeMs).toBe(3_600_000);
  });
});
