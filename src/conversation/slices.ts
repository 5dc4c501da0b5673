/**
 * Cuts long work on one body into slices, so that it does not hold up other requests of the same thread. All passes over a conversation
 * remember their results by message, so a pass that was paused continues where it was.
 */

export type Slices = {
  /** True when the running slice has taken its time. */
  readonly isOver: () => boolean;
  /** Lets other requests run, if the slice has taken its time. */
  readonly pause: () => Promise<void>;
};

/** Milliseconds. */
const sliceMs = 10;

/** Starts the first slice. */
export function openSlices(): Slices {
  let startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > sliceMs;
  return {
    isOver,
    async pause() {
      if (!isOver()) return;
      await nextTurn();
      startedAt = performance.now();
    },
  };
}

/** Resolves in the next turn of the event loop, after everything that has arrived meanwhile was handled. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
