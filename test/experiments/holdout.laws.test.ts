/** Proves the statistics of the holdout against scripted providers with known effects: 500 experiments each, looked at after every conversation. */
import { describe, expect, it, vi } from 'vitest';
import { runSteps } from '../../src/conversation/steps.ts';
import { costData, estimateHoldout, lambdaData } from '../../src/experiment/estimate.ts';
import { openSequence, type RatioData, ratioInterval } from '../../src/experiment/sequence.ts';
import { caps, noEffect, scripts, trialsOf, truthOf } from './scripted.ts';
import { curvesPage } from './curves.ts';

// Seconds of CPU take minutes on a busy machine.
vi.setConfig({ testTimeout: 1_200_000 });

const runs = 500;
const conversations = 300;
const rate = 0.2;

/** True when the ratio is ever excluded, whether or not it is possible again later. */
function isEverExcluded({ samples, bounds }: RatioData, ratio: number): boolean {
  const sequence = openSequence(bounds(ratio));
  return samples.some(({ numerator, denominator }) => {
    sequence.add(numerator - ratio * denominator);
    const { low, high } = sequence.interval();
    return low > 0 || high < 0;
  });
}

function shareOfRuns(holds: (seed: number) => boolean): number {
  let count = 0;
  for (let seed = 1; seed <= runs; seed++) if (holds(seed)) count += 1;
  return count / runs;
}

describe.each(scripts)('an experiment with a provider that has $name', (script) => {
  const truth = truthOf(script);

  it('excludes the true effect, at any look, in at most 5 % of the runs', () => {
    const alarms = shareOfRuns((seed) =>
      isEverExcluded(costData(trialsOf(script, rate, conversations, seed), rate, caps), truth.costRatio),
    );
    expect(alarms).toBeLessThanOrEqual(0.05);
  });

  it('excludes the true number of extra requests, at any look, in at most 5 % of the runs', () => {
    const alarms = shareOfRuns((seed) =>
      isEverExcluded(lambdaData(trialsOf(script, rate, conversations, seed), rate, caps), truth.lambda),
    );
    expect(alarms).toBeLessThanOrEqual(0.05);
  });

  it('has the true effect in its interval in at least 95 % of the runs', () => {
    const covered = shareOfRuns((seed) => {
      const { low, high } = runSteps(
        ratioInterval(costData(trialsOf(script, 0.5, conversations, seed), 0.5, caps)),
      );
      return low <= truth.costRatio && truth.costRatio <= high;
    });
    expect(covered).toBeGreaterThanOrEqual(0.95);
  });
});

describe('a verdict', () => {
  const verdictAfter = (count: number, script: (typeof scripts)[number]) =>
    runSteps(estimateHoldout(trialsOf(script, 0.5, count, 7), 0.5, caps));

  it('is reached for large effects, in both directions', () => {
    expect(verdictAfter(20_000, { ...noEffect, saved: 0.4 }).verdict).toBe('pays');
    expect(verdictAfter(20_000, { ...noEffect, lambda: 2 }).verdict).toBe('costs');
  });

  it('names the number of conversations that it needs while it cannot tell', () => {
    const { verdict, needed } = verdictAfter(300, { ...noEffect, saved: 0.3 });
    expect(verdict).toBe('cannot tell');
    expect(needed).toBeGreaterThan(300);
  });
});

it('has its operating curves in the documentation', async () => {
  await expect(curvesPage()).toMatchFileSnapshot('../../docs/experiments-curves.md');
});
