/** Waits with a bound: for the store after the provider has answered, and between two attempts to send a request. */
import { startSlicedTimer, type StartTimer } from '../store/deadline-store.ts';

/** Milliseconds that a client waits at most for the store after the provider has answered. */
export const storeWaitMs = 100;

/**
 * Resolves when the work has ended, successfully or not, or when the time is up. In the latter case the work continues, and its failure is
 * ignored here: the work itself must report it.
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

/** Resolves after `ms` milliseconds, or as soon as the signal aborts. */
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
