/** Tests the figures of `leporello bench-ab` on runs with known effects. */
import { describe, expect, it } from 'vitest';
import { type Arm, type ArmRun, compare, isImpossible } from './figures.ts';

const caps = { usd: 1, steps: 50, count: 10 };

function runOf(task: number, arm: Arm, change: Partial<ArmRun> = {}): ArmRun {
  return {
    task: `task-${task}`,
    arm,
    isSolved: true,
    usd: 0.5,
    steps: 10,
    failed: 0,
    refetches: 0,
    failedEdits: 0,
    recalls: 0,
    cacheRead: 9_000,
    cacheWrite: 0,
    input: 1_000,
    models: ['m'],
    ...change,
  };
}

/** Numbers between 0 and 1 that are the same in every run. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

/** Runs of tasks whose cost is spread, and on average `effect` times as high with folding. */
function experiment(seed: number, tasks: number, effect: number): readonly ArmRun[] {
  const next = numbersFrom(seed);
  return Array.from({ length: tasks }, (_, task) => {
    const size = 0.2 + 0.4 * next();
    const usd = (factor: number): number => size * factor * (0.8 + 0.4 * next());
    return [runOf(task, 'folded', { usd: usd(effect) }), runOf(task, 'untouched', { usd: usd(1) })];
  }).flat();
}

describe('compare', () => {
  it('finds known effects inside the intervals, and raises few false alarms', () => {
    let alarms = 0;
    let missed = 0;
    for (let seed = 1; seed <= 30; seed++) {
      alarms += Number(compare(experiment(seed, 40, 1), caps).verdict !== 'cannot tell');
      const { usd } = compare(experiment(seed, 40, 0.7), caps);
      missed += Number(usd.interval.low > 0.7 || usd.interval.high < 0.7);
    }
    expect({ alarms, missed }).toEqual({ alarms: 0, missed: 0 });
    expect(compare(experiment(1, 400, 0.7), caps).verdict).toBe('cheaper');
    expect(compare(experiment(1, 400, 1.5), caps).verdict).toBe('dearer');
  });

  it('compares each arm with the other one of its task', () => {
    const runs = [
      runOf(1, 'folded', { usd: 0.25, isSolved: false, steps: 12, refetches: 2, failedEdits: 1, recalls: 3 }),
      runOf(1, 'untouched', { usd: 0.25, refetches: 1 }),
      runOf(2, 'untouched'),
      runOf(2, 'folded', { usd: 0.5 }),
      runOf(3, 'folded', { usd: 1 }),
    ];
    const compared = compare(runs, caps);
    expect(compared).toMatchObject({
      tasks: 2,
      models: ['m'],
      refused: [],
      solved: { folded: 1, untouched: 2 },
      recalls: 3,
      means: {
        folded: { steps: 11, refetches: 1, failedEdits: 0.5 },
        untouched: { steps: 10, refetches: 0.5, failedEdits: 0 },
      },
      usd: { estimate: 1 },
      usdPerSolved: { folded: { estimate: 0.75 }, untouched: { estimate: 0.375 } },
      steps: { estimate: 1.1 },
      solvedMore: { estimate: -0.5 },
      refetchesMore: { estimate: 0.5 },
      verdict: 'cannot tell',
    });
  });

  it('counts failed and 429 requests as no saving', () => {
    const cut = [
      runOf(1, 'folded', { usd: 0.1, steps: 2, failed: 1, cacheRead: 500 }),
      runOf(1, 'untouched'),
    ];
    expect(compare(cut, caps)).toMatchObject({
      failed: { folded: 1 },
      usd: { estimate: 1 },
      steps: { estimate: 1 },
    });
    const dear = [runOf(1, 'folded', { usd: 0.8, failed: 1 }), runOf(1, 'untouched', { failed: 2 })];
    expect(compare(dear, caps).usd.estimate).toBeCloseTo(1.6);
  });

  it('refuses pairs that cannot be compared, and says why', () => {
    const refusal = (folded: Partial<ArmRun>) => {
      const { tasks, refused } = compare([runOf(1, 'folded', folded), runOf(1, 'untouched')], caps);
      return [tasks, refused[0]?.reason];
    };
    expect(refusal({ cacheRead: 9_001 })).toEqual([
      0,
      'folded: 9001 tokens were read from the cache in 10 steps, more than 0 written and 1000 sent can explain: another run filled the cache',
    ]);
    expect(refusal({ usd: undefined })).toEqual([
      0,
      'folded: a request reported no usage, or its model has no known price',
    ]);
    expect(refusal({ steps: 0 })).toEqual([0, 'folded: no request was answered']);
    expect(refusal({ models: ['n'] })).toEqual([0, 'the arms used different models: n and m']);
    expect(refusal({})).toEqual([1, undefined]);
  });
});

it('a run can read in each later step what it has sent before, and no more', () => {
  const counts = { cacheWrite: 600, input: 400, steps: 3 };
  expect(isImpossible(runOf(1, 'folded', { ...counts, cacheRead: 2_000 }))).toBe(false);
  expect(isImpossible(runOf(1, 'folded', { ...counts, cacheRead: 2_001 }))).toBe(true);
  expect(isImpossible(runOf(1, 'folded', { ...counts, steps: 1, cacheRead: 1 }))).toBe(true);
  expect(isImpossible(runOf(1, 'folded', { ...counts, steps: 1, cacheRead: 0 }))).toBe(false);
});
