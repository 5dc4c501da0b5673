/**
 * Serves counts of an asynchronous counter to an engine that counts synchronously: the texts of a request are counted ahead of
 * everything else, and the counts are remembered. Bounded in memory and in time.
 */
import { openFixed } from '../caches.ts';
import { withResolvers } from '../es2024.ts';

export interface AsyncCounts {
  /**
   * Counts the texts whose count is unknown. Resolves with true when all are known or have failed; with false when the time is up
   * or the counter is paused after failures. Later answers are still remembered. Never rejects.
   */
  ask(texts: Iterable<string>): Promise<boolean>;
  /** Returns the tokens of a text as the counter said; undefined while unknown. */
  known(text: string): number | undefined;
  /** Returns the factor that corrects an estimate, after all counts so far. */
  ratio(): number;
}

export type AsyncCountOptions = {
  /** May reject. */
  readonly count: (text: string) => Promise<number>;
  readonly estimate: (text: string) => number;
  readonly failed: (error: unknown) => void;
  /** Milliseconds that one request waits. Default 1,000. */
  readonly deadlineMs?: number;
  /** Calls in progress at once. Default 16. */
  readonly atOnce?: number;
  /** Milliseconds of a monotonic clock. */
  readonly clock?: () => number;
};

/** Failures in a row after which the counter is paused. */
const maxFailures = 3;
const pauseMs = 30_000;

export function createAsyncCounts(options: AsyncCountOptions): AsyncCounts {
  const {
    count,
    estimate,
    failed,
    deadlineMs = 1_000,
    atOnce = 16,
    clock = () => performance.now(),
  } = options;
  const counts = openFixed<string, number>('asynchronous counts', {
    unitsOf: (_, text) => text.length + 50,
  });
  const asked = new Map<string, Promise<void>>();
  let failures = 0;
  let pausedUntil = 0;
  let counted = 0;
  let estimated = 0;

  async function askFor(text: string): Promise<void> {
    try {
      const tokens = await count(text);
      failures = 0;
      counts.set(text, tokens);
      counted += tokens;
      estimated += estimate(text);
    } catch (error) {
      failures += 1;
      if (failures >= maxFailures) pausedUntil = clock() + pauseMs;
      failed(error);
    } finally {
      asked.delete(text);
    }
  }

  async function askForAll(texts: readonly string[], isOver: () => boolean): Promise<void> {
    const left = texts.values();
    const work = async () => {
      for (const text of left) {
        if (isOver() || clock() < pausedUntil) return;
        const answer = asked.get(text) ?? askFor(text);
        asked.set(text, answer);
        await answer;
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, texts.length) }, work));
  }

  return {
    async ask(texts) {
      const unknown = [...new Set(texts)].filter((text) => !counts.has(text));
      if (unknown.length === 0) return true;
      if (clock() < pausedUntil) return false;
      const timer = withResolvers<void>();
      let isOver = false;
      const handle = setTimeout(() => {
        isOver = true;
        timer.resolve();
      }, deadlineMs);
      try {
        await Promise.race([askForAll(unknown, () => isOver), timer.promise]);
        return !isOver && clock() >= pausedUntil;
      } finally {
        clearTimeout(handle);
      }
    },
    known: (text) => counts.get(text),
    ratio: () => (estimated > 0 ? counted / estimated : 1),
  };
}
