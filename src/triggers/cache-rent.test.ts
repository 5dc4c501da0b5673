import { describe, expect, it } from 'vitest';
import { createCacheRent } from './cache-rent.ts';
import type { Dead, TriggerState, UsedFor } from './trigger.ts';

/** Reading costs a tenth, writing a quarter more. */
const cached = { read: 0.1, write: 1.25 };
const uncached = { read: 1, write: 1 };

const dead = (message: number, tokens: number, requests: number, behind: number): Dead => ({
  message,
  goes: 'texts',
  tokens,
  requests,
  behind,
});

function state(
  prices: { readonly read: number; readonly write: number },
  ...list: readonly Dead[]
): TriggerState {
  return {
    tokens: 50_000,
    window: 200_000,
    reserved: 0,
    messages: 40,
    economy: { ...prices, dead: () => list },
  };
}

describe('cache-rent', () => {
  const trigger = createCacheRent({ least: 1_000, patience: 1 });

  it('is silent where nobody knows what tokens cost', () => {
    expect(trigger.demand({ tokens: 50_000, window: 200_000, reserved: 0, messages: 40 })).toBeUndefined();
  });

  it('fires once the rent that was paid reaches the price of writing anew what stands behind', () => {
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

  it('prices what an hour in the cache costs more once, without patience', () => {
    const late = createCacheRent({ least: 1_000, patience: 9 });
    const fires = (write: number, requests: number) =>
      late.demand(state({ read: 0.1, write }, dead(5, 10_000, requests, 30_000))) !== undefined;
    // Price 9 x 1.15 x 20,000 = 207,000, and 0.75 x 20,000 = 15,000 more for an hour; rent 0.1 x 10,000 a request.
    expect([fires(1.25, 206), fires(1.25, 207)]).toEqual([false, true]);
    expect([fires(2, 221), fires(2, 222)]).toEqual([false, true]);
  });

  it('pays for recalls that read long tools once more, three for a fold, beyond the 15,000 tokens that patience covers', () => {
    // Price 1.15 x 20,000 = 23,000, and 3 x 0.1 x 69,000 = 20,700; rent 0.1 x 10,000 a request.
    const demandAt = (requests: number, ahead: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, requests, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, ahead } })?.goal.target;
    };
    expect([demandAt(22, 15_000), demandAt(23, 15_000)]).toEqual([undefined, 40_000]);
    expect([demandAt(43, 84_000), demandAt(44, 84_000)]).toEqual([undefined, 40_000]);
  });

  it('leaves alone a prompt that is too short to be cached, or would be afterwards', () => {
    const shortest = (least: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, 99, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, least } })?.goal.target;
    };
    expect([50_001, 40_001, 40_000].map(shortest)).toEqual([undefined, undefined, 40_000]);
    const { economy, ...rest } = state(uncached, dead(5, 10_000, 99, 30_000));
    expect(trigger.demand({ ...rest, economy: { ...economy!, least: 50_001 } })?.goal.target).toBe(40_000);
  });

  it('pays also for what stands ahead where the recall tool comes with the fold, once', () => {
    // Behind 23,000, and 1.15 x 20,000 ahead; what goes is written no more.
    const late = (requests: number) => {
      const { economy, ...rest } = state(cached, dead(5, 10_000, requests, 30_000));
      return trigger.demand({ ...rest, economy: { ...economy!, bringsTool: true } });
    };
    expect([late(45), late(46)?.goal]).toEqual([undefined, { unit: 'tokens', target: 40_000 }]);
    const { economy, ...rest } = state(uncached, dead(5, 10_000, 5, 30_000));
    const first = { ...rest, economy: { ...economy!, bringsTool: true } };
    expect(trigger.demand(first)).toEqual(trigger.demand({ ...first, economy: economy! }));
  });

  it('leaves alone what stands so far in front that its price is not paid yet', () => {
    const early = dead(3, 1_000, 60, 50_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, early, late))).toMatchObject({
      goal: { target: 40_000 },
      only: { smaller: new Set([30]), gone: new Set() },
    });
  });

  it('takes what stands in front with it where that pays as well', () => {
    const early = dead(3, 10_000, 60, 30_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, early, late))).toMatchObject({
      goal: { target: 30_000 },
      only: { smaller: new Set([3, 30]), gone: new Set() },
    });
  });

  it('has messages go that are to go, and makes the others smaller', () => {
    const whole: Dead = { ...dead(3, 10_000, 60, 30_000), goes: 'message' };
    const texts = dead(3, 1_000, 60, 30_000);
    const late = dead(30, 10_000, 20, 15_000);
    expect(trigger.demand(state(cached, whole, texts, late))?.only).toEqual({
      smaller: new Set([30]),
      gone: new Set([3]),
    });
  });

  it('asks for arguments twice as long as for results, and for steps longer still', () => {
    const asked: UsedFor[] = [];
    const economy = {
      ...cached,
      dead: (usedFor: UsedFor) => {
        asked.push(usedFor);
        return [];
      },
    };
    createCacheRent().demand({ ...state(cached), economy });
    expect(asked).toEqual([{ results: 4, arguments: 8, steps: 14, recalls: 14, replies: 70 }]);
  });

  it('takes reading what stands behind twice and a bit for the price where writing costs nothing extra', () => {
    expect(trigger.demand(state(uncached, dead(5, 10_000, 4, 30_000)))).toBeUndefined();
    expect(trigger.demand(state(uncached, dead(5, 10_000, 5, 30_000)))).toMatchObject({
      only: { smaller: new Set([5]), gone: new Set() },
    });
  });

  it('does nothing for a trifle', () => {
    expect(trigger.demand(state(uncached, dead(5, 1_000, 90, 1_000)))).toBeDefined();
    expect(trigger.demand(state(uncached, dead(5, 999, 90, 999)))).toBeUndefined();
  });

  it.each([
    ['a twentieth of reading all once more where that is cached', cached, 9],
    ['a sixth of it where nothing is', uncached, 33],
  ])('keeps texts until they cost %s, and whole steps not', (_, prices, requests) => {
    const small = dead(3, 250, requests, 15_250);
    const large = dead(5, 10_000, 40, 15_000);
    const step: Dead = { ...small, goes: 'message' };
    const foldOf = (...list: readonly Dead[]) => trigger.demand(state(prices, ...list))?.only;
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

  it('keeps what was recalled until the exchange has cost a seventeenth of another where nothing is cached', () => {
    const large = dead(5, 10_000, 40, 15_000);
    const of = (message: number, tokens: number, requests: number): Dead => ({
      ...dead(message, tokens, requests, 15_000 + tokens),
      goes: 'recall',
      exchange: 300,
    });
    const foldOf = (prices: typeof cached, ...list: readonly Dead[]) =>
      trigger.demand(state(prices, ...list, large))?.only?.gone;
    // 0.06 x 50,000 = 3,000.
    expect(foldOf(uncached, of(3, 60, 9), of(4, 240, 9))).toEqual(new Set());
    expect(foldOf(uncached, of(3, 60, 10), of(4, 240, 10))).toEqual(new Set([3, 4]));
    expect(foldOf(cached, of(3, 60, 1), of(4, 240, 1))).toEqual(new Set([3, 4]));
  });

  it('waits longer for the patient', () => {
    const patient = createCacheRent({ least: 1_000, patience: 2 });
    expect(patient.demand(state(cached, dead(5, 10_000, 45, 30_000)))).toBeUndefined();
    expect(patient.demand(state(cached, dead(5, 10_000, 46, 30_000)))).toBeDefined();
  });

  it.each([{ least: -1 }, { patience: Number.NaN }])('refuses %o', (options) => {
    expect(() => createCacheRent(options)).toThrow(
      `cacheRent.${Object.keys(options)[0]} is ${Object.values(options)[0]}, but must be a number of at least 0.`,
    );
  });
});
