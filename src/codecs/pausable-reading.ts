/**
 * Lets the reading of one body pause between any two of its steps. Readers are ordinary functions: they run long passes through
 * `oneStep` and `inSteps`, which remember what is done. When a slice is over, one of them throws `ReadingPaused`; the body is
 * then read again from its beginning, and every step that was done returns its result at once. So a reader must take the same
 * steps in the same order each time.
 */

/** The progress of one reading. When `isOver` says so, `read` throws `ReadingPaused`; called again, it continues. */
export type ReadSlice = { readonly isOver: () => boolean; readonly steps: StepList };

/** The steps of a reader, or within one step of it, in order. `next` counts those that this run has taken. */
type StepList = { next: number; readonly taken: StepProgress[] };

/** `done`: the results so far. `inner`: the steps within the one that is not finished. */
type StepProgress = {
  readonly items: readonly unknown[];
  readonly done: unknown[];
  inner: StepList | undefined;
};

/** Thrown when a slice is over. */
export class ReadingPaused extends Error {}

/** The reading that runs now. Reading is synchronous, so there is one at most; undefined when it may not pause. */
let running: { readonly isOver: () => boolean; steps: StepList } | undefined;

export function openReadSlice(isOver: () => boolean): ReadSlice {
  return { isOver, steps: newSteps() };
}

function newSteps(): StepList {
  return { next: 0, taken: [] };
}

/** Runs `read`, which may pause. Throws what it throws. */
export function readPausably<T>({ isOver, steps }: ReadSlice, read: () => T): T {
  const before = running;
  steps.next = 0;
  running = { isOver, steps };
  try {
    return read();
  } finally {
    running = before;
  }
}

/** Runs a small read at once: to remember its steps would cost more than they do. */
export function readAtOnce<T>(read: () => T): T {
  const before = running;
  running = undefined;
  try {
    return read();
  } finally {
    running = before;
  }
}

/** Runs one step of a reader. */
export function oneStep<T>(run: () => T): T {
  return running ? inSteps(onlyOne, run)[0]! : run();
}

const onlyOne = [undefined];

/** Maps a list in steps. */
export function inSteps<T, Result>(
  items: readonly T[],
  map: (item: T, index: number) => Result,
): readonly Result[] {
  const reading = running;
  if (!reading) return items.map(map);
  const { steps, isOver } = reading;
  const progress = (steps.taken[steps.next++] ??= { items, done: [], inner: undefined });
  const { done } = progress;
  while (done.length < progress.items.length) {
    const inner = (progress.inner ??= newSteps());
    inner.next = 0;
    reading.steps = inner;
    const result = map(progress.items[done.length] as T, done.length);
    reading.steps = steps;
    progress.inner = undefined;
    done.push(result);
    if (isOver()) throw new ReadingPaused();
  }
  return done as Result[];
}
