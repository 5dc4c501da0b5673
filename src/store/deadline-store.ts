/**
 * Gives every call of a store a deadline, so that no caller waits for a store that hangs. The encrypted store uses it, so it holds for the gateway
 * and for the library. After several slow failures in a row the store rests: calls fail at once until one of them has been tried again.
 *
 * A call that was given up may still succeed later. Then what it read is dropped, and what it wrote stands in the store although its
 * caller was told otherwise: nobody may conclude from a failed write that nothing was written.
 */
import { LeporelloError } from '../errors.ts';
import type { Clock, Store } from './store.ts';

export type DeadlineOptions = {
  /** How long a call may take, in milliseconds. Default 500. */
  readonly deadlineMs?: number | undefined;
  /** Milliseconds of a clock that never goes back. */
  readonly clock?: Clock;
  readonly startTimer?: StartTimer;
};

/** Slow failures in a row after which the store rests. */
const mostSlow = 3;

/** Milliseconds for which a store that rests is not asked. Then one call tries it. */
const restMs = 5_000;

const longestDeadlineMs = 60 * 60 * 1_000;

/** The same store, whose calls reject with `store-failed` when they take too long. Throws `bad-config` for a deadline out of range. */
export function storeWithDeadline(store: Store, options: DeadlineOptions = {}): Store {
  const { deadlineMs = 500, clock = () => performance.now(), startTimer = patiently } = options;
  if (!(deadlineMs > 0 && deadlineMs <= longestDeadlineMs)) {
    throw new LeporelloError(
      'bad-config',
      `storeDeadlineMs is ${deadlineMs}: give milliseconds above 0 and at most ${longestDeadlineMs}.`,
    );
  }
  // Apart from each other: a database that another process keeps locked can often still be read.
  const reads = createBreaker(clock);
  const writes = createBreaker(clock);

  /** `breaker` undefined: tried whether the store rests or not. */
  async function ask<T>(breaker: Breaker | undefined, call: string, work: () => Promise<T>): Promise<T> {
    if (breaker?.permits() === false) {
      throw new LeporelloError(
        'store-failed',
        `The ${store.name} store was not asked (${call}): its last ${mostSlow} calls or more failed after long waits. It is tried again within ${restMs} ms.`,
      );
    }
    const started = clock();
    try {
      const answer = await inTime(call, work());
      breaker?.answered();
      return answer;
    } catch (error) {
      if (clock() - started >= deadlineMs / 2) breaker?.failedSlowly();
      throw error;
    }
  }

  async function inTime<T>(call: string, work: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = startTimer(deadlineMs, () =>
      late.reject(
        new LeporelloError(
          'store-failed',
          `The ${store.name} store did not answer ${call} within ${deadlineMs} ms. Check what it runs on, or raise storeDeadlineMs.`,
          { cause: unanswered },
        ),
      ),
    );
    try {
      return await Promise.race([work, late.promise]);
    } finally {
      timer.stop();
    }
  }

  return {
    name: store.name,
    get: (key) => ask(reads, 'get', () => store.get(key)),
    getMany: (keys) => ask(reads, 'getMany', () => store.getMany(keys)),
    getFirst: (keys) => ask(reads, 'getFirst', () => store.getFirst(keys)),
    putMany: (entries) => ask(writes, 'putMany', () => store.putMany(entries)),
    putUnless: (guards, entries) => ask(writes, 'putUnless', () => store.putUnless(guards, entries)),
    touch: (keys, expiresAt) => ask(writes, 'touch', () => store.touch(keys, expiresAt)),
    delete: (keys) => ask(writes, 'delete', () => store.delete(keys)),
    close: () => ask(undefined, 'close', () => store.close()),
  };
}

type Breaker = {
  /** Whether a call may be made now. The first one that may after a rest is the trial. */
  permits(): boolean;
  answered(): void;
  failedSlowly(): void;
};

function createBreaker(clock: Clock): Breaker {
  let slow = 0;
  let restsUntil = 0;
  return {
    permits() {
      if (slow < mostSlow) return true;
      const now = clock();
      if (now < restsUntil) return false;
      // Until the trial has ended the others still fail at once.
      restsUntil = now + restMs;
      return true;
    },
    answered() {
      slow = 0;
    },
    failedSlowly() {
      slow += 1;
      restsUntil = clock() + restMs;
    },
  };
}

/** The cause of an error that leaves open whether the store did what it was asked. */
const unanswered = Symbol('unanswered');

/** Whether the store did not answer in time, so that nobody knows whether it wrote. */
export function isUnanswered(error: unknown): boolean {
  if (!LeporelloError.isInstance(error)) return false;
  return error.code === 'deadline' || error.cause === unanswered;
}

type Timer = { stop(): void };

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
