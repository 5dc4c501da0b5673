import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BilledRequest,
  type Difference,
  type EarlierRequest,
  computeMoney,
  earlierRequestOf,
} from './cost.ts';
import type { Usage } from '../conversation/conversation.ts';

/** A thousand tokens cost a cent; a tenth of it from the cache, a quarter more into the cache, five cents as output. */
const priceOf = () => ({ input: 10, cacheRead: 1, cacheWrite: 12.5, cacheWriteLong: 20, output: 50 });

const minute = 60_000;

const asItCame: BilledRequest = {
  at: 10 * minute,
  rounds: [{ input: 40_000, cacheRead: 36_000, cacheWrite: 4_000, output: 1_000 }],
  difference: undefined,
  earlier: undefined,
  continues: false,
};

/** The client's request has 94,000 tokens; a fold of three edits reduces it to 40,000. */
const replayed: Difference = {
  counted: 94_000,
  tokensBefore: 94_000,
  tokensAfter: 40_000,
  edits: 3,
  hiddenRecalls: 0,
  cacheMarks: 0,
  tokensKept: undefined,
};

/** The earlier request: 36,000 of 90,000 tokens were sent, all of them cached. */
const folded: EarlierRequest = {
  at: 8 * minute,
  prompt: 36_000,
  baseline: 90_000,
  counted: 90_000,
  edits: 3,
  hiddenRecalls: 0,
  cached: true,
  lifetimeMs: 5 * minute,
};

const money = (change: Partial<BilledRequest>) => computeMoney({ ...asItCame, ...change }, priceOf);

describe('a request that was sent unmodified', () => {
  it('costs the same as its baseline', () => {
    const bill = { uncached: 0, cacheRead: 0.036, cacheWrite: 0.05, output: 0.05, total: 0.136 };
    expect(money({})).toEqual({
      paid: bill,
      recalls: 0,
      fold: 0,
      untouched: bill,
      untouchedUsage: asItCame.rounds[0],
      net: 0,
    });
  });

  it('costs the same as its baseline, whatever was cached and however the conversation continued', () => {
    const tokens = fc.integer({ min: 0, max: 1_000_000 });
    const usage = fc
      .tuple(tokens, tokens, tokens, tokens, tokens)
      .map(([uncached, cacheRead, short, cacheWriteLong, output]): Usage => {
        const cacheWrite = short + cacheWriteLong;
        const input = uncached + cacheRead + cacheWrite;
        return { input, cacheRead, cacheWrite, ...(cacheWriteLong > 0 && { cacheWriteLong }), output };
      });
    fc.assert(
      fc.property(fc.array(usage, { minLength: 1, maxLength: 5 }), (usages) => {
        let earlier: EarlierRequest | undefined;
        for (const one of usages) {
          const request = { ...asItCame, rounds: [one], earlier } satisfies BilledRequest;
          expect(computeMoney(request, priceOf)).toMatchObject({ untouchedUsage: one, net: 0 });
          earlier = earlierRequestOf(request);
        }
      }),
    );
  });
});

describe('a request that replays a fold', () => {
  it('would have read the whole previous baseline request from the cache', () => {
    expect(money({ difference: replayed, earlier: folded, continues: true })).toEqual({
      paid: { uncached: 0, cacheRead: 0.036, cacheWrite: 0.05, output: 0.05, total: 0.136 },
      recalls: 0,
      fold: 0,
      // 94,000 tokens, 90,000 of them cached.
      untouched: { uncached: 0, cacheRead: 0.09, cacheWrite: 0.05, output: 0.05, total: 0.19 },
      untouchedUsage: { input: 94_000, cacheRead: 90_000, cacheWrite: 4_000, output: 1_000 },
      net: 0.054,
      // 0.054 of savings pay for 0.4 requests of 0.136; the request lacks 54,000 tokens.
      extraRequestsPer1000Tokens: 0.0074,
    });
  });

  it('would have read the share that was really read, whatever the clock says', () => {
    const read = (cacheRead: number, at: number) =>
      money({
        at,
        rounds: [{ input: 40_000, cacheRead, cacheWrite: 40_000 - cacheRead, output: 0 }],
        difference: replayed,
        earlier: folded,
        continues: true,
      })?.untouchedUsage;
    expect([read(0, 9 * minute), read(9_000, 9 * minute), read(36_000, 99 * minute)]).toEqual([
      { input: 94_000, cacheRead: 0, cacheWrite: 94_000, output: 0 },
      { input: 94_000, cacheRead: 22_500, cacheWrite: 71_500, output: 0 },
      { input: 94_000, cacheRead: 90_000, cacheWrite: 4_000, output: 0 },
    ]);
  });

  it('would have read everything but the new tail if the previous request is unknown', () => {
    expect(money({ difference: replayed })?.untouchedUsage).toEqual({
      input: 94_000,
      cacheRead: 90_000,
      cacheWrite: 4_000,
      output: 1_000,
    });
  });

  it('would not have read a cache if the provider has none', () => {
    const rounds = [{ input: 40_000, cacheRead: 0, cacheWrite: 0, output: 1_000 }] as const;
    const earlier = { ...folded, cached: false };
    for (const known of [earlier, undefined]) {
      expect(money({ rounds, difference: replayed, earlier: known, continues: known !== undefined })).toEqual(
        {
          paid: { uncached: 0.4, cacheRead: 0, cacheWrite: 0, output: 0.05, total: 0.45 },
          recalls: 0,
          fold: 0,
          untouched: { uncached: 0.94, cacheRead: 0, cacheWrite: 0, output: 0.05, total: 0.99 },
          untouchedUsage: { input: 94_000, cacheRead: 0, cacheWrite: 0, output: 1_000 },
          net: 0.54,
          extraRequestsPer1000Tokens: 0.0222,
        },
      );
    }
  });
});

describe('a request that folds', () => {
  const whole: EarlierRequest = { ...folded, prompt: 90_000, edits: 0 };
  /** 40,000 of 94,000 tokens are sent; the first 10,000 are unchanged. */
  const fold: Partial<BilledRequest> = {
    rounds: [{ input: 40_000, cacheRead: 10_000, cacheWrite: 30_000, output: 1_000 }],
    difference: { ...replayed, tokensKept: 10_000 },
    earlier: whole,
    continues: true,
  };

  it('pays for rewriting what the cache had', () => {
    expect(money(fold)).toEqual({
      paid: { uncached: 0, cacheRead: 0.01, cacheWrite: 0.375, output: 0.05, total: 0.435 },
      recalls: 0,
      // 40,000 minus 10,000 unchanged minus 4,000 new: 26,000 written at 12.5 instead of read at 1.
      fold: 0.299,
      untouched: { uncached: 0, cacheRead: 0.09, cacheWrite: 0.05, output: 0.05, total: 0.19 },
      untouchedUsage: { input: 94_000, cacheRead: 90_000, cacheWrite: 4_000, output: 1_000 },
      net: -0.245,
      extraRequestsPer1000Tokens: 0,
    });
  });

  it("pays the provider's price of tokens it does not read", () => {
    const write = (cacheWrite: number, cacheWriteLong: number) =>
      money({
        ...fold,
        rounds: [{ input: 40_000, cacheRead: 10_000, cacheWrite, cacheWriteLong, output: 0 }],
      })?.fold;
    // 26,000 tokens at 10, 12.5 or 20 instead of 1.
    expect([write(0, 0), write(30_000, 0), write(30_000, 30_000)]).toEqual([0.234, 0.299, 0.494]);
  });

  it('pays nothing if the cache has expired and the baseline would have been rewritten, too', () => {
    const late = { ...fold, at: whole.at + 5 * minute + 1 };
    expect(money(late)).toMatchObject({
      fold: 0,
      untouchedUsage: { input: 94_000, cacheRead: 10_000, cacheWrite: 84_000 },
    });
    const long = money({ ...late, earlier: { ...whole, lifetimeMs: 60 * minute } });
    expect(long).toMatchObject({ fold: 0.299, untouchedUsage: { cacheRead: 90_000 } });
  });

  it('would have had no cache as baseline if the client sets no cache breakpoints', () => {
    const marked = { ...replayed, tokensKept: 10_000, cacheMarks: 3 };
    expect(money({ ...fold, difference: marked })).toMatchObject({
      paid: { total: 0.435 },
      fold: 0.299,
      untouched: { uncached: 0.94, cacheRead: 0, cacheWrite: 0, output: 0.05, total: 0.99 },
      untouchedUsage: { input: 94_000, cacheRead: 0, cacheWrite: 0, output: 1_000 },
      net: 0.555,
    });
  });

  it("keeps the provider's count, however we counted", () => {
    const twice = { ...replayed, tokensBefore: 188_000, tokensAfter: 80_000, tokensKept: 20_000 };
    expect(money({ ...fold, difference: twice })?.fold).toBe(0.299);
  });

  it('pays nothing if the provider read it from the cache anyway', () => {
    const rounds = [{ input: 40_000, cacheRead: 36_000, cacheWrite: 4_000, output: 1_000 }] as const;
    expect(money({ ...fold, rounds })?.fold).toBe(0);
  });

  it('pays nothing if nothing was cached, before or now', () => {
    const rounds = [{ input: 40_000, cacheRead: 0, cacheWrite: 0, output: 0 }] as const;
    const uncached = money({ ...fold, rounds, earlier: { ...whole, cached: false } });
    expect(uncached).toMatchObject({ fold: 0, untouchedUsage: { cacheRead: 0 }, net: 0.54 });
  });

  it('is assumed to have been cached completely if the previous request is unknown', () => {
    expect(money({ ...fold, earlier: undefined, continues: false })).toMatchObject({
      // 40,000 minus 10,000 unchanged.
      fold: 0.345,
      untouchedUsage: { input: 94_000, cacheRead: 94_000 },
    });
    const rounds = [{ input: 40_000, cacheRead: 0, cacheWrite: 40_000, output: 0 }] as const;
    expect(money({ ...fold, rounds, earlier: undefined, continues: false })).toMatchObject({
      fold: 0,
      untouchedUsage: { input: 94_000, cacheRead: 0 },
    });
  });
});

describe('a request with recalls', () => {
  const rounds = [
    { input: 40_000, cacheRead: 36_000, cacheWrite: 4_000, output: 100 },
    { input: 44_000, cacheRead: 40_000, cacheWrite: 4_000, output: 2_000 },
  ] as const;

  it('pays for each further prompt and for the recall calls; the answer was needed anyway', () => {
    expect(money({ rounds })).toEqual({
      paid: { uncached: 0, cacheRead: 0.076, cacheWrite: 0.1, output: 0.105, total: 0.281 },
      // 0.04 and 0.05 for the second prompt, 0.005 for the call.
      recalls: 0.095,
      fold: 0,
      untouched: { uncached: 0, cacheRead: 0.036, cacheWrite: 0.05, output: 0.1, total: 0.186 },
      untouchedUsage: { input: 40_000, cacheRead: 36_000, cacheWrite: 4_000, output: 2_000 },
      net: -0.095,
    });
  });
});

it('has no figures without a price', () => {
  expect(computeMoney(asItCame, () => undefined)).toBeUndefined();
});

it('prices the baseline request by its own length', () => {
  const dearer = (tokens: number) => {
    const factor = tokens > 50_000 ? 2 : 1;
    return { input: 10 * factor, cacheRead: factor, cacheWrite: 12.5 * factor, output: 50 * factor };
  };
  const computed = computeMoney(
    { ...asItCame, difference: replayed, earlier: folded, continues: true },
    dearer,
  );
  expect([computed?.paid.total, computed?.untouched.total]).toEqual([0.136, 0.38]);
});
