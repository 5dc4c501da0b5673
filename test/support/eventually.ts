/** Waits in tests for something that happens on its own time. */
import { vi } from 'vitest';

/**
 * Repeats a check until it passes and resolves with its result. Gives up only after minutes: a busy machine must not fail a test, and
 * a check that never passes fails with its own message.
 */
export function eventually<Result>(check: () => Result | Promise<Result>): Promise<Result> {
  return vi.waitFor(check, { timeout: 180_000, interval: 20 });
}
