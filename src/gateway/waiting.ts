/** Waits for the store on behalf of a client whose reply is there already: a moment, and never for as long as the store likes. */
import { startSlicedTimer, type StartTimer } from '../store/deadline-store.ts';

/** Milliseconds to wait at most for the store once the provider has answered. */
export const storeWaitMs = 100;

/**
 * Resolves when the work has ended, however it ended, or when the time is up. The work goes on then, and its failure stays without
 * consequence: whoever wants to tell of it does so in the work itself.
 */
export async function waitAtMost(
  work: Promise<unknown>,
  ms: number = storeWaitMs,
  startTimer: StartTimer = startSlicedTimer,
): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = startTimer(ms, late.resolve);
  await Promise.race([work, late.promise]).catch(() => undefined);
  timer.stop();
}

/** Resolves after so many milliseconds, or as soon as the signal aborts. */
export async function pauseUnless(signal: AbortSignal, ms: number): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
