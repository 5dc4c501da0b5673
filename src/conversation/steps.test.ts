import { describe, expect, it } from 'vitest';
import {
  Paused,
  inSteps,
  oneStep,
  openRun,
  runAtOnce,
  runInPauses,
  runInSlices,
  runPausably,
  runSteps,
} from './steps.ts';

/** Runs to the end with a pause after every step, and counts the pauses. */
function runWithPauses<T>(run: () => T): { readonly result: T; readonly pauses: number } {
  const progress = openRun(() => true);
  for (let pauses = 0; ; pauses++) {
    try {
      return { result: runPausably(progress, run), pauses };
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
    }
  }
}

/** Returns slices that have time for this many entries of the log each. */
function slicesOf(entries: number) {
  const log: string[] = [];
  let from = 0;
  const pause = async (): Promise<void> => {
    from = log.push('pause');
  };
  return { log, slices: { isOver: () => log.length - from >= entries, pause } };
}

describe('steps in slices', () => {
  function* named(name: string, log: string[]) {
    log.push(`${name}1`);
    yield;
    log.push(`${name}2`);
    return name;
  }

  it('pause before each step that the slice has no time for, also before the first one', async () => {
    const { log, slices } = slicesOf(1);
    expect([await runInSlices(named('a', log), slices), await runInSlices(named('b', log), slices)]).toEqual([
      'a',
      'b',
    ]);
    expect(log).toEqual(['a1', 'pause', 'a2', 'pause', 'b1', 'pause', 'b2']);
  });

  it('give their result at once when there is no pause', () => {
    const { log, slices } = slicesOf(5);
    expect([runInSlices(named('a', log), slices), runInSlices(named('b', log), undefined)]).toEqual([
      'a',
      'b',
    ]);
    expect(runSteps(named('c', log))).toBe('c');
    expect(log).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'c2']);
  });
});

describe('a function that may pause', () => {
  it('runs each step once, nested ones too, and gives the same result', () => {
    const runs: string[] = [];
    const run = () => {
      const first = oneStep(() => runs.push('first'));
      const lists = inSteps(['a', 'b'], (name) => {
        const inner = inSteps([1, 2], (item) => {
          runs.push(`${name}${item}`);
          return item * 10;
        });
        return [name, ...inner];
      });
      return [first, ...lists];
    };
    expect(runWithPauses(run)).toEqual({ result: [1, ['a', 10, 20], ['b', 10, 20]], pauses: 7 });
    expect(runs).toEqual(['first', 'a1', 'a2', 'b1', 'b2']);
  });

  it('does not pause outside a run, nor in a part that runs at once', () => {
    expect(inSteps([1, 2], (item) => item + 1)).toEqual([2, 3]);
    expect(runWithPauses(() => runAtOnce(() => inSteps([1, 2], (item) => item)))).toEqual({
      result: [1, 2],
      pauses: 0,
    });
  });

  it('takes several new steps in a row when it takes long to come back to them', () => {
    const busy = (ms: number) => {
      for (const until = performance.now() + ms; performance.now() < until; );
    };
    const { pauses } = runWithPauses(() => {
      oneStep(() => busy(1));
      // This is no step, so it is repeated after every pause.
      busy(20);
      return inSteps(Array.from({ length: 1_000 }), () => busy(0.05));
    });
    expect(pauses).toBeLessThan(20);
  });

  it('throws what a step throws', async () => {
    const { slices } = slicesOf(0);
    const run = () => {
      oneStep(() => 1);
      return oneStep(() => {
        throw new RangeError('no');
      });
    };
    await expect(runInPauses(slices, run)).rejects.toThrow(RangeError);
  });
});
