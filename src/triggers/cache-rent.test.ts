import { describe, expect, it } from 'vitest';
import { cacheRent } from './cache-costs.ts';
import type { Economy, EvictionCandidate, TriggerState, KeepForRequests } from './trigger.ts';

/** Reading costs a tenth, writing a quarter more. */
const cached = { read: 0.1, write: 1.25 };
const uncached = { read: 1, write: 1 };

const dead = (message: number, tokens: number, requests: number, behind: number): EvictionCandidate => ({
  message,
  evicts: 'texts',
  tokens,
  requests,
  behind,
});

function state(
  prices: { readonly read: number; readonly write: number },
  ...list: readonly EvictionCandidate[]
): TriggerState {
  return {
    tokens: 50_000,
    window: 200_000,
    reserved: 0,
    messages: 40,
    economy: { ...prices, candidates: () => list },
  };
}

describe('cache-rent', () => {
  const trigger = cacheRent({ minTokens: 1_000, minPayback: 1 });

  it('does not fire when the prices of tokens are unknown', () => {
    expect(trigger.demand({ tokens: 50_000, window: 200_000, reserved: 0, messages: 40 })).toBeUndefined();
  });

  it('fires once the rent paid reaches the price of rewriting the cache after the fold', () => {
    // Price 1.15 x 20,000 = 23,000; rent 0.1 x 10,000 a request.
    expect(trigger.demand(state(cached, dead(5, 10_000, 22, 30_000)))).toBeUndefined();
    expect(trigger.demand(state(cached, dead(5, 10_000, 23, 30_000)))).toEqual({
      trigger: 'cache-rent',
      goal: { unit: 'tokens', target: 40_000 },
      atMost: undefined,
      force: false,
      only: { smaller: new Set([5]), gone: new Set() },
    });
  });

  it('looks for no candidates while the limit of the rent is below the price of a fold', () => {
    const fires = (rent: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, 99, 30_000));
      const mayPay: Economy['mayPay'] = (_, pays) => pays({ rent, tokens: 10_000, behind: 10_000 });
      return trigger.demand({ ...rest, economy: { ...economy!, mayPay } }) !== undefined;
    };
    // Price 1.15 x 10,000 = 11,500.
    expect([fires(114_999), fires(115_001)]).toEqual([false, true]);
  });

  it('counts the extra price of an hour in the cache once, without minPayback', () => {
    const late = cacheRent({ minTokens: 1_000, minPayback: 9 });
    const fires = (write: number, requests: number) =>
      late.demand(state({ read: 0.1, write }, dead(5, 10_000, requests, 30_000))) !== undefined;
    // Price 9 x 1.15 x 20,000 = 207,000, and 0.75 x 20,000 = 15,000 more for an hour; rent 0.1 x 10,000 a request.
    expect([fires(1.25, 206), fires(1.25, 207)]).toEqual([false, true]);
    expect([fires(2, 221), fires(2, 222)]).toEqual([false, true]);
  });

  it('adds three recalls a fold that read long tools again, beyond the 15,000 tokens that minPayback covers', () => {
    // Price 1.15 x 20,000 = 23,000, and 3 x 0.1 x 69,000 = 20,700; rent 0.1 x 10,000 a request.
    const demandAt = (requests: number, ahead: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, requests, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, ahead } })?.goal.target;
    };
    expect([demandAt(22, 15_000), demandAt(23, 15_000)]).toEqual([undefined, 40_000]);
    expect([demandAt(43, 84_000), demandAt(44, 84_000)]).toEqual([undefined, 40_000]);
  });

  it('does not fold a prompt that is too short to be cached, or would be after the fold', () => {
    const shortest = (minCachedTokens: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, 99, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, minCachedTokens } })?.goal.target;
    };
    expect([50_001, 40_001, 40_000].map(shortest)).toEqual([undefined, undefined, 40_000]);
    const { economy, ...rest } = state(uncached, dead(5, 10_000, 99, 30_000));
    expect(trigger.demand({ ...rest, economy: { ...economy!, minCachedTokens: 50_001 } })?.goal.target).toBe(
      40_000,
    );
  });

  it('adds the price of rewriting everything ahead when the fold brings the recall tool', () => {
    // 23,000 for the content after it, and 1.15 x 20,000 for the content ahead. Removed content is not written again.
    const late = (requests: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, requests, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, bringsTool: true } });
    };
    expect([late(45), late(46)?.goal]).toEqual([undefined, { unit: 'tokens', target: 40_000 }]);
    const { economy, ...rest } = state(uncached, dead(5, 10_000, 5, 30_000));
    const first = { ...rest, economy: { ...economy!, bringsTool: true } };
    expect(trigger.demand(first)).toEqual(trigger.demand({ ...first, economy: economy! }));
  });

  it('keeps content so far ahead that its price is not paid yet', () => {
    const early = dead(3, 1_000, 60, 50_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, early, late))).toMatchObject({
      goal: { target: 40_000 },
      only: { smaller: new Set([30]), gone: new Set() },
    });
  });

  it('also folds content further ahead when that pays', () => {
    const early = dead(3, 10_000, 60, 30_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, early, late))).toMatchObject({
      goal: { target: 30_000 },
      only: { smaller: new Set([3, 30]), gone: new Set() },
    });
  });

  it('removes candidates that are whole messages, and makes the others smaller', () => {
    const whole: EvictionCandidate = { ...dead(3, 10_000, 60, 30_000), evicts: 'message' };
    const texts = dead(3, 1_000, 60, 30_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, whole, texts, late))?.only).toEqual({
      smaller: new Set([30]),
      gone: new Set([3]),
    });
  });

  it('keeps steps longer than their results: those that edit longest, and those of commands less, where the provider caches', () => {
    const asked: KeepForRequests[] = [];
    const candidates = (keepForRequests: KeepForRequests) => {
      asked.push(keepForRequests);
      return [];
    };
    for (const prices of [cached, uncached])
      cacheRent().demand({ ...state(prices), economy: { ...prices, candidates } });
    const edited = { editArguments: 12, edits: 22, commands: 5 };
    const alike = { editArguments: 8, edits: 12, commands: 12 };
    expect(asked).toEqual([
      { results: 4, arguments: 8, steps: 14, ...edited, recalls: 14, replies: 70 },
      { results: 4, arguments: 8, steps: 12, ...alike, recalls: 3, replies: 70 },
    ]);
  });

  it('takes almost three reads of everything after it as the price when writing costs nothing extra', () => {
    expect(trigger.demand(state(uncached, dead(5, 10_000, 5, 30_000)))).toBeUndefined();
    expect(trigger.demand(state(uncached, dead(5, 10_000, 6, 30_000)))).toMatchObject({
      only: { smaller: new Set([5]), gone: new Set() },
    });
  });

  it('does not fire when a fold would save too little', () => {
    expect(trigger.demand(state(uncached, dead(5, 1_000, 90, 1_000)))).toBeDefined();
    expect(trigger.demand(state(uncached, dead(5, 999, 90, 999)))).toBeUndefined();
  });

  it.each([
    ['a twentieth of reading all once more where that is cached', cached, 9],
    ['a sixth of it where nothing is', uncached, 33],
  ])('keeps texts until they cost %s, and whole steps not', (_, prices, requests) => {
    const small = dead(3, 250, requests, 15_250);
    const large = dead(5, 10_000, 40, 15_000);
    const step: EvictionCandidate = { ...small, evicts: 'message' };
    const foldOf = (...list: readonly EvictionCandidate[]) => trigger.demand(state(prices, ...list))?.only;
    expect([
      foldOf(small, large),
      foldOf({ ...small, requests: requests + 1 }, large),
      foldOf(step, large),
    ]).toEqual([
      { smaller: new Set([5]), gone: new Set() },
      { smaller: new Set([3, 5]), gone: new Set() },
      { smaller: new Set([5]), gone: new Set([3]) },
    ]);
  });

  it('keeps recalled content until its exchange has cost a seventeenth of another one, when nothing is cached', () => {
    const large = dead(5, 10_000, 40, 15_000);
    const of = (message: number, tokens: number, requests: number): EvictionCandidate => ({
      ...dead(message, tokens, requests, 15_000 + tokens),
      evicts: 'recall',
      exchange: 300,
    });
    const foldOf = (prices: typeof cached, ...list: readonly EvictionCandidate[]) =>
      trigger.demand(state(prices, ...list, large))?.only?.gone;
    // 0.06 x 50,000 = 3,000.
    expect(foldOf(uncached, of(3, 60, 9), of(4, 240, 9))).toEqual(new Set());
    expect(foldOf(uncached, of(3, 60, 10), of(4, 240, 10))).toEqual(new Set([3, 4]));
    expect(foldOf(cached, of(3, 60, 1), of(4, 240, 1))).toEqual(new Set([3, 4]));
  });

  it('waits longer when minPayback is higher', () => {
    const patient = cacheRent({ minTokens: 1_000, minPayback: 2 });
    expect(patient.demand(state(cached, dead(5, 10_000, 45, 30_000)))).toBeUndefined();
    expect(patient.demand(state(cached, dead(5, 10_000, 46, 30_000)))).toBeDefined();
  });

  it.each([{ minTokens: -1 }, { minPayback: Number.NaN }])('refuses %o', (options) => {
    expect(() => cacheRent(options)).toThrow(
      `cacheRent.${Object.keys(options)[0]} is ${Object.values(options)[0]}, but must be a number of at least 0.`,
    );
  });
});
