/** Proves the statistics of the shadow against scripted models whose next actions have known probabilities. */
import { describe, expect, it, vi } from 'vitest';
import { estimateShadow, shiftOf, stateOf } from '../../src/experiment/shadow-estimate.ts';
import { type Actions, type FoldedModel, samplesOf, whole } from './scripted-models.ts';

// Seconds of CPU take minutes on a busy machine.
vi.setConfig({ testTimeout: 1_200_000 });

const stateAfter = (model: FoldedModel, count: number, seed = 5) => stateOf(samplesOf(model, count, seed));

describe('the shadow of a fold', () => {
  it('that changes nothing is held in at most 5 % of 500 runs, looked at after every sample', () => {
    let held = 0;
    for (let seed = 1; seed <= 500; seed++) {
      const samples = samplesOf({ actions: whole }, 250, seed);
      if (samples.some((_, at) => stateOf(samples.slice(0, at + 1)) === 'harm shown')) held += 1;
    }
    expect(held / 500).toBeLessThanOrEqual(0.05);
  });

  it('that changes the next action is held', () => {
    expect(stateAfter({ actions: [0.1, 0.1, 0.8] }, 1_000)).toBe('harm shown');
  });

  it('is not held when a recall repairs it before the model acts', () => {
    expect(stateAfter({ actions: [0, 0, 1], recalls: 1 }, 1_000)).not.toBe('harm shown');
  });

  it('is not called safe when it only makes the model surer', () => {
    expect(stateAfter({ actions: [1, 0, 0] }, 4_000)).toBe('harm shown');
  });

  it('is called safe when it changes nothing, and only with enough samples', () => {
    expect(stateAfter({ actions: whole }, 40)).toBe('too few');
    expect(stateAfter({ actions: whole }, 200)).toBe('not shown');
    expect(stateAfter({ actions: whole }, 40_000)).toBe('safe');
  });

  it('says about how many comparisons a verdict needs, as long as there is none', () => {
    const needed = (model: FoldedModel, count: number) =>
      Array.from({ length: 21 }, (_, seed) => estimateShadow(samplesOf(model, count, seed + 1, true)).needed);
    const half = (counts: readonly (number | undefined)[]) =>
      counts.map((count) => count ?? Infinity).toSorted((one, other) => one - other)[10]!;
    // The curves: half of the experiments with no effect, and with a small one, have a verdict after some 1,700 comparisons.
    for (const actions of [whole, [0.5, 0.3, 0.2]]) {
      expect(half(needed({ actions }, 300))).toBeGreaterThan(400);
      expect(half(needed({ actions }, 300))).toBeLessThan(4_000);
    }
    expect(estimateShadow(samplesOf({ actions: whole }, 40, 1, true)).needed).toBeUndefined();
    expect(estimateShadow(samplesOf({ actions: [0, 0, 1] }, 1_000, 1, true)).needed).toBeUndefined();
  });

  it('has the true shift in its interval in at least 95 % of 300 runs', () => {
    const actions: Actions = [0.4, 0.4, 0.2];
    const truth = 0.04 + 0.01 + 0.01;
    let covered = 0;
    for (let seed = 1; seed <= 300; seed++) {
      const { low, high } = estimateShadow(samplesOf({ actions }, 300, seed)).shiftInterval;
      if (low <= truth && truth <= high) covered += 1;
    }
    expect(covered / 300).toBeGreaterThanOrEqual(0.95);
  });

  it('estimates a shift without bias', () => {
    const samples = samplesOf({ actions: [0.4, 0.4, 0.2] }, 200_000, 3);
    expect(samples.reduce((sum, sample) => sum + shiftOf(sample), 0) / samples.length).toBeCloseTo(0.06, 2);
  });
});
