/** A timer for deadlines of what other processes do: it rings only when the time is up and what has arrived by then was read. */

export type Timer = { stop(): void };

/** Starts a timer that calls `act` once after `ms` milliseconds. Passed in, so that tests own it. */
export type StartTimer = (ms: number, act: () => void) => Timer;

/**
 * Counts the time in slices. A thread that was busy for long, before the call or after it, reads what has arrived between two
 * slices, so its own delay is not taken for that of a slow server.
 */
export function patiently(ms: number, act: () => void): Timer & { unref(): void } {
  let left = 4;
  const timer = setTimeout(ring, ms / left);

  function ring(): void {
    left -= 1;
    if (left > 0) timer.refresh();
    else act();
  }

  return { stop: () => clearTimeout(timer), unref: () => void timer.unref() };
}
