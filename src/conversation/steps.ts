/** Synchronous work that can be paused: a pass that is too long for one turn of the event loop is a generator. */

/** Work that can be paused: it yields between two steps, and returns its result at the end. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
