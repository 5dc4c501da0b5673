/**
 * Lets long synchronous functions over one body pause between two of their steps: reading, writing and checking it. They stay ordinary
 * functions, which run long passes through `oneStep` and `inSteps`; these remember what is done. When a slice is over, one of them
 * throws `Paused`. The function is then run again from its beginning, and every step that was done returns its result at once. So
 * it must take the same steps in the same order each time: a function that remembers its results elsewhere, and then skips its
 * steps, would take the results of others.
 */
import type { Slices } from '../conversation/incremental.ts';

/** The progress of one run. When `isOver` says so, the function throws `Paused`; run again, it continues. */
export type PausableRun = { readonly isOver: () => boolean; readonly steps: StepList };

/** The steps of a function, or within one step of it, in order. `next` counts those that were taken since its beginning. */
type StepList = { next: number; readonly taken: StepProgress[] };

/** `done`: the results so far. `inner`: the steps within the one that is not finished. */
type StepProgress = {
  readonly items: readonly unknown[];
  readonly done: unknown[];
  inner: StepList | undefined;
};

/** Thrown when a slice is over. */
export class Paused extends Error {}

/** The run of now. It is synchronous, so there is one at most; undefined when nothing may pause. */
let running: { readonly isOver: () => boolean; steps: StepList } | undefined;

export function openRun(isOver: () => boolean): PausableRun {
  return { isOver, steps: newSteps() };
}

function newSteps(): StepList {
  return { next: 0, taken: [] };
}

/** Runs a function that may pause. Throws what it throws. */
export function runPausably<T>({ isOver, steps }: PausableRun, run: () => T): T {
  const before = running;
  steps.next = 0;
  running = { isOver, steps };
  try {
    return run();
  } finally {
    running = before;
  }
}

/** Runs a small function at once: to remember its steps would cost more than they do. */
export function runAtOnce<T>(run: () => T): T {
  const before = running;
  running = undefined;
  try {
    return run();
  } finally {
    running = before;
  }
}

/** Runs one step. */
export function oneStep<T>(run: () => T): T {
  return running ? inSteps(onlyOne, run)[0]! : run();
}

const onlyOne = [undefined];

/** Maps a list in steps. */
export function inSteps<T, Result>(
  items: readonly T[],
  map: (item: T, index: number) => Result,
): readonly Result[] {
  const run = running;
  if (!run) return items.map(map);
  const { steps, isOver } = run;
  const progress = (steps.taken[steps.next++] ??= { items, done: [], inner: undefined });
  const { done } = progress;
  while (done.length < progress.items.length) {
    const inner = (progress.inner ??= newSteps());
    inner.next = 0;
    run.steps = inner;
    try {
      done.push(map(progress.items[done.length] as T, done.length));
      progress.inner = undefined;
    } finally {
      run.steps = steps;
    }
    if (isOver()) throw new Paused();
  }
  return done as Result[];
}

/** Runs a function that may pause, and lets other requests run while it does. Rejects with what it throws. */
export async function runInPauses<T>(slices: Slices | undefined, run: () => T): Promise<T> {
  if (!slices) return run();
  const progress = openRun(slices.isOver);
  for (;;) {
    try {
      return runPausably(progress, run);
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
      await slices.pause();
    }
  }
}
