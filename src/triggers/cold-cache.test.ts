import { describe, expect, it } from 'vitest';
import { createColdCache } from './cold-cache.ts';
import type { Dead, TriggerState, UsedFor } from './trigger.ts';

const minute = 60_000;

const dead: readonly Dead[] = [
  { message: 3, goes: 'texts', tokens: 3_000, requests: 1, behind: 40_000 },
  { message: 7, goes: 'texts', tokens: 500, requests: 1, behind: 30_000 },
  { message: 7, goes: 'message', tokens: 200, requests: 1, behind: 30_000 },
];

function state(idleMs: number | undefined, keptMs: number | undefined, list = dead): TriggerState {
  return {
    tokens: 50_000,
    window: 200_000,
    reserved: 0,
    messages: 40,
    economy: { read: 0.1, write: 1.25, keptMs, dead: () => list },
    idleMs,
  };
}

describe('cold-cache', () => {
  const trigger = createColdCache();

  it('takes all that is dead once nothing is cached any more, whatever stands behind it', () => {
    expect(trigger.demand(state(5 * minute, 5 * minute))).toBeUndefined();
    expect(trigger.demand(state(5 * minute + 1, 5 * minute))).toEqual({
      trigger: 'cold-cache',
      goal: { unit: 'tokens', target: 46_300 },
      atMost: undefined,
      force: false,
      only: { smaller: new Set([3]), gone: new Set([7]) },
    });
  });

  it('leaves alone a prompt that is too short to be cached, or would be afterwards', () => {
    const shortest = (least: number) => {
      const { economy, ...rest } = state(6 * minute, 5 * minute);
      return trigger.demand({ ...rest, economy: { ...economy!, least } })?.goal.target;
    };
    expect([50_001, 46_301, 46_300].map(shortest)).toEqual([undefined, undefined, 46_300]);
  });

  it('is silent where nobody knows how long the pause was, how long prompts are kept, or what tokens cost', () => {
    expect(trigger.demand(state(undefined, 5 * minute))).toBeUndefined();
    expect(trigger.demand(state(60 * minute, undefined))).toBeUndefined();
    const { economy: _, ...poor } = state(60 * minute, 5 * minute);
    expect(trigger.demand(poor)).toBeUndefined();
  });

  it('believes the user first', () => {
    const patient = createColdCache({ idleMs: 60 * minute });
    expect(patient.demand(state(59 * minute, 5 * minute))).toBeUndefined();
    expect(patient.demand(state(61 * minute, undefined))).toBeDefined();
  });

  it('leaves alone what is too little to be worth a fold', () => {
    expect(trigger.demand(state(60 * minute, 5 * minute, dead.slice(1)))).toBeUndefined();
    expect(trigger.demand(state(60 * minute, 5 * minute, []))).toBeUndefined();
    expect(createColdCache({ least: 0 }).demand(state(60 * minute, minute, []))).toBeUndefined();
  });

  it('has ages of its own', () => {
    const asked: UsedFor[] = [];
    const economy = {
      read: 0.1,
      write: 1.25,
      dead: (usedFor: UsedFor) => {
        asked.push(usedFor);
        return [];
      },
    };
    const cold = { ...state(61 * minute, undefined), economy: { ...economy, keptMs: minute } };
    trigger.demand(cold);
    createColdCache({ usedFor: 3, stepsUsedFor: 5 }).demand(cold);
    expect(asked).toEqual([
      { results: 8, arguments: 16, steps: 20, recalls: 8, replies: 80 },
      { results: 3, arguments: 6, steps: 5, recalls: 3, replies: 20 },
    ]);
  });

  it.each([
    [{ idleMs: -1 }, 'coldCache.idleMs is -1, but must be a number of at least 0.'],
    [{ usedFor: 0.5 }, 'coldCache.usedFor is 0.5, but must be a whole number of at least 0.'],
    [{ stepsUsedFor: -2 }, 'coldCache.stepsUsedFor is -2, but must be a whole number of at least 0.'],
    [{ least: Number.NaN }, 'coldCache.least is NaN, but must be a number of at least 0.'],
  ])('refuses options out of range: %o', (options, message) => {
    expect(() => createColdCache(options)).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });
});
