import { describe, expect, it } from 'vitest';
import { coldCache } from './cache-costs.ts';
import type { EvictionCandidate, TriggerState, KeepForRequests } from './trigger.ts';

const minute = 60_000;

const dead: readonly EvictionCandidate[] = [
  { message: 3, evicts: 'texts', tokens: 3_000, requests: 1, behind: 40_000 },
  { message: 7, evicts: 'texts', tokens: 500, requests: 1, behind: 30_000 },
  { message: 7, evicts: 'message', tokens: 200, requests: 1, behind: 30_000 },
];

function state(idleMs: number | undefined, keptMs: number | undefined, list = dead): TriggerState {
  return {
    tokens: 50_000,
    window: 200_000,
    reserved: 0,
    messages: 40,
    economy: { read: 0.1, write: 1.25, keptMs, candidates: () => list },
    idleMs,
  };
}

describe('cold-cache', () => {
  const trigger = coldCache();

  it('folds all candidates once nothing is cached any more, whatever follows them', () => {
    expect(trigger.demand(state(5 * minute, 5 * minute))).toBeUndefined();
    expect(trigger.demand(state(5 * minute + 1, 5 * minute))).toEqual({
      trigger: 'cold-cache',
      goal: { unit: 'tokens', target: 46_300 },
      atMost: undefined,
      force: false,
      only: { smaller: new Set([3]), gone: new Set([7]) },
    });
  });

  it('does not fold a prompt that is too short to be cached, or would be after the fold', () => {
    const shortest = (minCachedTokens: number) => {
      const { economy, ...rest } = state(6 * minute, 5 * minute);
      return trigger.demand({ ...rest, economy: { ...economy!, minCachedTokens } })?.goal.target;
    };
    expect([50_001, 46_301, 46_300].map(shortest)).toEqual([undefined, undefined, 46_300]);
  });

  it('does not fire when the pause, the cache lifetime or the prices are unknown', () => {
    expect(trigger.demand(state(undefined, 5 * minute))).toBeUndefined();
    expect(trigger.demand(state(60 * minute, undefined))).toBeUndefined();
    const { economy: _, ...poor } = state(60 * minute, 5 * minute);
    expect(trigger.demand(poor)).toBeUndefined();
  });

  it('prefers the configured cache lifetime', () => {
    const patient = coldCache({ idleMs: 60 * minute });
    expect(patient.demand(state(59 * minute, 5 * minute))).toBeUndefined();
    expect(patient.demand(state(61 * minute, undefined))).toBeDefined();
  });

  it('does not fire when a fold would save too little', () => {
    expect(trigger.demand(state(60 * minute, 5 * minute, dead.slice(1)))).toBeUndefined();
    expect(trigger.demand(state(60 * minute, 5 * minute, []))).toBeUndefined();
    expect(coldCache({ minTokens: 0 }).demand(state(60 * minute, minute, []))).toBeUndefined();
  });

  it('uses its own settings for how long content is kept', () => {
    const asked: KeepForRequests[] = [];
    const economy = {
      read: 0.1,
      write: 1.25,
      candidates: (keepForRequests: KeepForRequests) => {
        asked.push(keepForRequests);
        return [];
      },
    };
    const cold = { ...state(61 * minute, undefined), economy: { ...economy, keptMs: minute } };
    trigger.demand(cold);
    coldCache({ keepForRequests: 3, keepStepsForRequests: 5 }).demand(cold);
    expect(asked).toEqual([
      {
        results: 8,
        arguments: 16,
        editArguments: 16,
        steps: 20,
        edits: 20,
        commands: 20,
        recalls: 8,
        replies: 80,
      },
      {
        results: 3,
        arguments: 6,
        editArguments: 6,
        steps: 5,
        edits: 5,
        commands: 5,
        recalls: 3,
        replies: 20,
      },
    ]);
  });

  it.each([
    [{ idleMs: -1 }, 'coldCache.idleMs is -1, but must be a number of at least 0.'],
    [{ keepForRequests: 0.5 }, 'coldCache.keepForRequests is 0.5, but must be a whole number of at least 0.'],
    [
      { keepStepsForRequests: -2 },
      'coldCache.keepStepsForRequests is -2, but must be a whole number of at least 0.',
    ],
    [{ minTokens: Number.NaN }, 'coldCache.minTokens is NaN, but must be a number of at least 0.'],
  ])('refuses options out of range: %o', (options, message) => {
    expect(() => coldCache(options)).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });
});
