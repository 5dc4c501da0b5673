import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultTriggers, triggerChecks, type TriggerSettings } from './default-triggers.ts';
import { messageCount, mustFit, windowFraction, tokenBudget } from './limits.ts';
import { firstDemand } from '../engine/demand.ts';
import type { Demand, Economy, EvictionCandidate, Trigger, TriggerState } from './trigger.ts';

const calm: TriggerState = { tokens: 100, window: 200_000, reserved: 8_000, messages: 3 };

const names = (triggers: readonly Trigger[]): string[] => triggers.map((trigger) => trigger.name);

/** Settings that turn on every built-in trigger, so that the laws hold for a new one, too. */
const everyTrigger: TriggerSettings = Object.fromEntries(
  Object.keys(triggerChecks).map((name) => [name, {}]),
);

/** The state after a fold that reached its goal exactly. A fold without `only` removes everything that could be evicted. */
const met = (before: TriggerState, { goal, only }: Demand): TriggerState => ({
  ...before,
  [goal.unit]: goal.target,
  economy: before.economy && {
    ...before.economy,
    candidates(keepForRequests) {
      if (!only) return [];
      const all = before.economy!.candidates(keepForRequests);
      const isFolded = ({ message }: EvictionCandidate) =>
        only.gone.has(message) || only.smaller.has(message);
      const folded = all.filter(isFolded).reduce((sum, { tokens }) => sum + tokens, 0);
      // A fold takes the newest candidates, so all of its tokens are after those that are left.
      return all.filter((one) => !isFolded(one)).map((one) => ({ ...one, behind: one.behind - folded }));
    },
  },
});

describe('must-fit', () => {
  it('fires when tokens and reserve exceed the window, and says the limit', () => {
    const trigger = mustFit();
    expect(trigger.demand({ ...calm, tokens: 192_000 })).toBe(undefined);
    expect(trigger.demand({ ...calm, tokens: 192_001 })).toEqual({
      trigger: 'must-fit',
      goal: { unit: 'tokens', target: 100_000 },
      atMost: 192_000,
      force: true,
      newest: { above: 170_000, target: 159_800 },
    });
  });

  it('frees 15 % of the space when the reserve leaves little more than the target', () => {
    expect(mustFit().demand({ ...calm, tokens: 9_000, window: 8_000, reserved: 4_000 })).toEqual({
      trigger: 'must-fit',
      goal: { unit: 'tokens', target: 3_400 },
      atMost: 4_000,
      force: true,
      newest: { above: 4_000, target: 3_760 },
    });
  });

  it('asks for zero tokens when the reserve is larger than the window', () => {
    expect(mustFit().demand({ ...calm, window: 4_000 })).toEqual({
      trigger: 'must-fit',
      goal: { unit: 'tokens', target: 0 },
      atMost: 0,
      force: true,
      newest: { above: 0, target: 0 },
    });
  });
});

describe('window-fraction', () => {
  it('fires above .85 of the window and asks for half of it', () => {
    const trigger = windowFraction();
    expect(trigger.demand({ ...calm, tokens: 170_000 })).toBe(undefined);
    expect(trigger.demand({ ...calm, tokens: 170_001 })).toEqual({
      trigger: 'window-fraction',
      goal: { unit: 'tokens', target: 100_000 },
      atMost: undefined,
      force: false,
      newest: { above: 170_000, target: 159_800 },
    });
  });
});

describe('when much of a request cannot be folded', () => {
  it('window-fraction and must-fit leave a quarter of the foldable tokens', () => {
    const state = { ...calm, tokens: 192_001 };
    const goals = [0, 15_000, 84_000, 130_000, 166_000].map((fixed) =>
      [windowFraction(), mustFit()].map((trigger) => trigger.demand({ ...state, fixed })?.goal.target),
    );
    expect(goals).toEqual([
      [100_000, 100_000],
      [100_000, 100_000],
      [105_500, 105_500],
      [140_000, 140_000],
      [167_000, 167_000],
    ]);
  });

  it('window-fraction stays above its mark rather than save a little every turn', () => {
    const demand = windowFraction().demand({ ...calm, tokens: 171_000, fixed: 166_000 });
    expect(demand?.minTokens).toBe(17_500);
  });
});

describe('below the shortest prompt that the provider caches', () => {
  const economy = { read: 0.1, write: 1.25, minCachedTokens: 4_096, candidates: () => [] };
  const demand = (tokens: number, more = {}) =>
    tokenBudget({ triggerTokens: 2_000, targetTokens: 500, bufferTokens: 0 }).demand({
      ...calm,
      tokens,
      economy,
      ...more,
    });

  it('no budget asks for a fold, and none folds below it', () => {
    expect(demand(4_095)).toBeUndefined();
    expect(demand(6_000)?.goal).toEqual({ unit: 'tokens', target: 4_096 });
    expect(demand(90_000, { fixed: 80_000 })?.goal).toEqual({ unit: 'tokens', target: 80_200 });
  });

  it('a budget does when nothing is cached anyway, and when prices are unknown', () => {
    expect(demand(4_095, { economy: { ...economy, read: 1 } })?.goal.target).toBe(500);
    expect(demand(4_095, { economy: undefined })?.goal.target).toBe(500);
  });

  it('the window triggers still do', () => {
    const small = { ...calm, window: 4_000, reserved: 0, tokens: 3_900, economy };
    expect(names(defaultTriggers().filter((trigger) => trigger.demand(small)))).toEqual(['window-fraction']);
  });
});

describe('token-budget', () => {
  it('fires a buffer before the budget is used up', () => {
    const trigger = tokenBudget();
    expect(trigger.demand({ ...calm, tokens: 109_000 })).toBe(undefined);
    expect(trigger.demand({ ...calm, tokens: 109_001, window: undefined })).toEqual({
      trigger: 'token-budget',
      goal: { unit: 'tokens', target: 40_000 },
      atMost: undefined,
      force: false,
    });
  });

  it('leaves and saves as much foldable content however large the fixed part is', () => {
    const trigger = tokenBudget();
    const firing = [0, 15_000, 24_000, 84_000, 500_000].map((fixed) => {
      const demand = (tokens: number) => trigger.demand({ ...calm, tokens, fixed });
      const above = Math.max(109_000, 85_000 + fixed);
      expect(demand(above)).toBeUndefined();
      const { target } = demand(above + 1)!.goal;
      return { fixed, above, target, foldable: target - fixed };
    });
    expect(firing).toEqual([
      { fixed: 0, above: 109_000, target: 40_000, foldable: 40_000 },
      { fixed: 15_000, above: 109_000, target: 40_000, foldable: 25_000 },
      { fixed: 24_000, above: 109_000, target: 40_000, foldable: 16_000 },
      { fixed: 84_000, above: 169_000, target: 100_000, foldable: 16_000 },
      { fixed: 500_000, above: 585_000, target: 516_000, foldable: 16_000 },
    ]);
  });

  it('does not count the fixed part when the whole request is within budget', () => {
    const state = { ...calm, tokens: 109_000 };
    Object.defineProperty(state, 'fixed', {
      get() {
        throw new Error('asked');
      },
    });
    expect(tokenBudget().demand(state)).toBeUndefined();
  });
});

describe('message-count', () => {
  it('fires above target and buffer', () => {
    const trigger = messageCount();
    expect(trigger.demand({ ...calm, messages: 25 })).toBe(undefined);
    expect(trigger.demand({ ...calm, messages: 26, window: undefined })).toEqual({
      trigger: 'message-count',
      goal: { unit: 'messages', target: 20 },
      atMost: undefined,
      force: false,
    });
  });
});

describe('the default triggers', () => {
  it('are in order of priority, without the message count', () => {
    expect(names(defaultTriggers())).toEqual([
      'must-fit',
      'window-fraction',
      'token-budget',
      'cold-cache',
      'cache-rent',
    ]);
    expect(names(defaultTriggers({ messageCount: {} }))).toEqual([
      'must-fit',
      'window-fraction',
      'token-budget',
      'message-count',
      'cold-cache',
      'cache-rent',
    ]);
  });

  it('can each be turned off', () => {
    const off: TriggerSettings = Object.fromEntries(Object.keys(triggerChecks).map((name) => [name, false]));
    expect(defaultTriggers(off)).toEqual([]);
    expect(names(defaultTriggers({ ...off, tokenBudget: {} }))).toEqual(['token-budget']);
  });

  it('fold to one low mark, whether forced or not', () => {
    const triggers = defaultTriggers({ windowFraction: { targetShare: 0.3 } });
    const targets = [171_000, 199_000].map(
      (tokens) => firstDemand(triggers, { ...calm, tokens })?.goal.target,
    );
    expect(targets).toEqual([60_000, 60_000]);
  });

  it('bring newest results below the mark of the window fraction, whether forced or not', () => {
    const triggers = defaultTriggers({ windowFraction: { triggerShare: 0.6 } });
    const marks = [121_000, 199_000].map((tokens) => firstDemand(triggers, { ...calm, tokens })?.newest);
    expect(marks).toEqual([
      { above: 120_000, target: 112_800 },
      { above: 120_000, target: 112_800 },
    ]);
  });

  it('use the most urgent one when several fire', () => {
    const triggers = defaultTriggers({ messageCount: {} });
    const speaks = (state: Partial<TriggerState>) => firstDemand(triggers, { ...calm, ...state })?.trigger;
    expect(speaks({ tokens: 195_000, messages: 99 })).toBe('must-fit');
    expect(speaks({ tokens: 180_000, messages: 99 })).toBe('window-fraction');
    expect(speaks({ tokens: 120_000, messages: 99 })).toBe('token-budget');
    expect(speaks({ messages: 99 })).toBe('message-count');
    expect(speaks({})).toBe(undefined);
  });
});

describe('options out of range', () => {
  it.each([
    [
      () => mustFit({ targetShare: 1 }),
      'mustFit.targetShare is 1, but must be a number above 0 and below 1.',
    ],
    [
      () => windowFraction({ triggerShare: 85 }),
      'windowFraction.triggerShare is 85, but must be a number above 0 and at most 1.',
    ],
    [
      () => windowFraction({ triggerShare: 0.4 }),
      'windowFraction.targetShare is 0.5, but must be below 0.4 (windowFraction.triggerShare).',
    ],
    [
      () => tokenBudget({ triggerTokens: Number.NaN }),
      'tokenBudget.triggerTokens is NaN, but must be a whole number of at least 2.',
    ],
    [
      () => tokenBudget({ bufferTokens: -1 }),
      'tokenBudget.bufferTokens is -1, but must be a whole number of at least 0.',
    ],
    [
      () => tokenBudget({ targetTokens: 109_000 }),
      'tokenBudget.targetTokens is 109000, but must be below 109000 (tokenBudget.triggerTokens minus tokenBudget.bufferTokens).',
    ],
    [
      () => tokenBudget({ bufferTokens: 110_000 }),
      'tokenBudget.bufferTokens is 110000, but must be below 109999 (tokenBudget.triggerTokens minus 1).',
    ],
    [
      () => tokenBudget({ trigger: 60_000, target: 5 } as object),
      'tokenBudget.trigger is not an option. Did you mean tokenBudget.triggerTokens? Known options: triggerTokens, targetTokens, bufferTokens.\ntokenBudget.target is not an option. Did you mean tokenBudget.targetTokens? Known options: triggerTokens, targetTokens, bufferTokens.',
    ],
    [
      () => messageCount({ bufferMessages: 0 }),
      'messageCount.bufferMessages is 0, but must be a whole number of at least 1.',
    ],
    [
      () => messageCount({ targetMessages: 2.5 }),
      'messageCount.targetMessages is 2.5, but must be a whole number of at least 1.',
    ],
  ])('are refused with the key, the value and what is allowed: %#', (create, message) => {
    expect(create).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });
});

describe('laws', () => {
  /**
   * Unused messages at the beginning of a request, with `after` tokens of other content after each. There are no unused texts: `cache-rent`
   * leaves small ones until they have cost a share of the whole request, and a fold makes the request smaller, so it may fire for them.
   */
  const unused = fc.array(
    fc.record({
      tokens: fc.integer({ min: 1, max: 30_000 }),
      after: fc.integer({ min: 100, max: 30_000 }),
      requests: fc.integer({ min: 1, max: 500 }),
    }),
    { maxLength: 12 },
  );
  const prices = fc.constantFrom({ read: 0.1, write: 1.25 }, { read: 0.5, write: 1 }, { read: 1, write: 1 });
  type Unused = Pick<EvictionCandidate, 'tokens' | 'requests'> & { readonly after: number };
  const economyOf = (parts: readonly Unused[], price: Pick<Economy, 'read' | 'write'>) => {
    const behindOf = (from: number) =>
      parts.slice(from).reduce((sum, { tokens, after }) => sum + tokens + after, 0);
    const evicts = 'message' as const;
    const candidates = parts.map((part, message) => ({
      ...part,
      message,
      evicts,
      behind: behindOf(message),
    }));
    return { ...price, keptMs: 300_000, candidates: () => candidates, tokens: behindOf(0) };
  };
  const state: fc.Arbitrary<TriggerState> = fc
    .record({
      more: fc.nat(2_000_000),
      window: fc.option(fc.integer({ min: 1, max: 2_000_000 }), { nil: undefined }),
      reserved: fc.nat(300_000),
      messages: fc.nat(5_000),
      economy: fc.option(fc.tuple(unused, prices), { nil: undefined }),
      idleMs: fc.option(fc.nat(600_000), { nil: undefined }),
    })
    .map(({ more, economy, ...rest }) => {
      const known = economy && economyOf(...economy);
      return { ...rest, economy: known, tokens: more + (known?.tokens ?? 0) };
    });
  const share = fc.double({ min: 0.01, max: 0.99, noNaN: true });
  const triggers: fc.Arbitrary<readonly Trigger[]> = fc
    .record({
      fraction: fc.tuple(share, share),
      budget: fc.record({
        target: fc.integer({ min: 1, max: 500_000 }),
        gap: fc.integer({ min: 1, max: 500_000 }),
        buffer: fc.nat(10_000),
      }),
      messages: fc.record({
        targetMessages: fc.integer({ min: 1, max: 100 }),
        bufferMessages: fc.integer({ min: 1, max: 100 }),
      }),
    })
    .filter(({ fraction: [one, other] }) => one !== other)
    .map(({ fraction, budget: { target, gap, buffer }, messages }) =>
      defaultTriggers({
        ...everyTrigger,
        messageCount: messages,
        windowFraction: { triggerShare: Math.max(...fraction), targetShare: Math.min(...fraction) },
        tokenBudget: { triggerTokens: target + buffer + gap, targetTokens: target, bufferTokens: buffer },
      }),
    );

  it('a trigger whose goal is met does not fire again, and its goal is below what made it fire', () => {
    const fired = new Set<string>();
    fc.assert(
      fc.property(triggers, state, (list, before) => {
        for (const trigger of list) {
          const demand = trigger.demand(before);
          if (demand === undefined) continue;
          fired.add(trigger.name);
          const used = demand.goal.unit === 'tokens' ? before.tokens : before.messages;
          expect(demand.goal.target).toBeLessThan(used);
          expect(trigger.demand(met(before, demand))).toBe(undefined);
          if (demand.atMost === undefined) continue;
          expect(demand.goal.target).toBeLessThanOrEqual(demand.atMost);
          expect(trigger.demand({ ...before, tokens: demand.atMost })).toBe(undefined);
        }
      }),
    );
    expect([...fired].toSorted()).toEqual(names(defaultTriggers(everyTrigger)).toSorted());
  });

  it('meeting one demand after another ends within as many rounds as there are triggers', () => {
    fc.assert(
      fc.property(triggers, state, (list, before) => {
        let now = before;
        for (let round = 0; round < list.length; round++) {
          const demand = firstDemand(list, now);
          if (demand !== undefined) now = met(now, demand);
        }
        expect(firstDemand(list, now)).toBe(undefined);
      }),
    );
  });

  it('the first demand is that of the first trigger of the list that fires', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(defaultTriggers(everyTrigger).slice()), state, (list, now) => {
        const fired = list.filter((trigger) => trigger.demand(now) !== undefined);
        expect(firstDemand(list, now)).toEqual(fired[0]?.demand(now));
      }),
    );
  });

  it('without a known window neither window trigger fires', () => {
    fc.assert(
      fc.property(triggers, state, (list, now) => {
        const speaks = firstDemand(list, { ...now, window: undefined })?.trigger;
        expect(['must-fit', 'window-fraction']).not.toContain(speaks);
      }),
    );
  });
});
