/**
 * Defines the interface of a store: bytes by key, with expiry. A store keeps originals and folds, encrypted. Every store passes
 * test/support/store-suite. A write that has resolved survives a crash if the store is durable. Also wraps a store
 * so that its calls have deadlines, and renews the retention of records that are used.
 */
import { createCaches } from '../caches.ts';
import { LeporelloError } from '../errors.ts';

/** A store of bytes by key. */
export interface Store {
  readonly name: string;
  /** False while no other process uses the store: then transient entries stay in memory (in-memory.ts). Default true. */
  readonly isShared?: boolean;
  /** Returns false only when certainly no key has a value, so that they need not be read. Optional: it must answer without I/O. */
  mayHold?(keys: readonly string[]): boolean;
  get(key: string): Promise<Uint8Array | undefined>;
  /** Reads several keys in one round trip and returns the values in the order of the keys. */
  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Returns the first value among the keys and the index of its key; reads no other value. One round trip. */
  getFirst(keys: readonly string[]): Promise<FirstFound | undefined>;
  /** Writes entries, all or none. An existing entry is overwritten, and so is its expiry. */
  putMany(entries: readonly StoreEntry[]): Promise<void>;
  /** Writes entries, all or none. If a key of `guards` has a value, writes nothing and returns the first such value. One round trip. */
  putUnless(guards: readonly string[], entries: readonly StoreEntry[]): Promise<FirstFound | undefined>;
  /**
   * Extends the expiry of existing entries to `expiresAt`, in milliseconds since the epoch. Never restores expired entries, and never makes
   * an expiry earlier. One round trip.
   */
  touch(keys: readonly string[], expiresAt: number): Promise<void>;
  delete(keys: readonly string[]): Promise<void>;
  /** Closes the store; may be called twice. Afterwards every other call rejects with `store-failed`. */
  close(): Promise<void>;
}

export type StoreEntry = {
  readonly key: string;
  readonly value: Uint8Array;
  /** Milliseconds since the epoch; undefined means never. An expired entry reads as absent. */
  readonly expiresAt: number | undefined;
  /** True when no later process needs the entry. Default false. */
  readonly isTransient?: boolean | undefined;
};

export type FirstFound = { readonly at: number; readonly value: Uint8Array };

/** Returns the time in milliseconds since the epoch. Passed in, so that tests control it. */
export type Clock = () => number;

// Deadlines for every call of a store, so that no caller waits for a store that hangs. The encrypted store uses them, so they
// cover the gateway and the library. After several slow failures in a row the store rests: calls fail at once until a trial
// call succeeds.
//
// A call that missed its deadline may still succeed later. Its answer is dropped then, but entries that it wrote stay in the
// store although its caller got an error. So nobody may conclude from a failed write that nothing was written.

export type DeadlineOptions = {
  /** How long a call may take, in milliseconds. Default 500. */
  readonly deadlineMs?: number | undefined;
  /** A monotonic clock in milliseconds. */
  readonly clock?: Clock;
  readonly startTimer?: StartTimer;
};

/** The number of slow failures in a row after which the store rests. */
const maxSlow = 3;

/** How long a resting store is not called, in milliseconds. Then one trial call is made. */
const restMs = 5_000;

const maxDeadlineMs = 60 * 60 * 1_000;

/** Wraps a store so that its calls reject with `store-failed` when they take too long. Throws `bad-config` for a deadline out of range. */
export function storeWithDeadline(store: Store, options: DeadlineOptions = {}): Store {
  const { deadlineMs = 500, clock = () => performance.now(), startTimer = startSlicedTimer } = options;
  if (!(deadlineMs > 0 && deadlineMs <= maxDeadlineMs)) {
    throw new LeporelloError(
      'bad-config',
      `storeDeadlineMs is ${deadlineMs}; it must be above 0 and at most ${maxDeadlineMs} milliseconds.`,
    );
  }
  // Reads and writes rest separately: a database that another process keeps locked can often still be read.
  const reads = createBreaker(clock);
  const writes = createBreaker(clock);

  /** Runs a call within the deadline. With `breaker` undefined, also while the store rests. */
  async function ask<T>(breaker: Breaker | undefined, call: string, work: () => Promise<T>): Promise<T> {
    if (breaker?.permits() === false) {
      throw new LeporelloError(
        'store-failed',
        `The ${store.name} store was not called (${call}): its last ${maxSlow} or more calls failed after long waits. It is tried again within ${restMs} ms.`,
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
          `The ${store.name} store did not answer ${call} within ${deadlineMs} ms. Check the machine and network it runs on, or raise storeDeadlineMs.`,
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
  /** True if a call may be made now. The first permitted call after a rest is the trial. */
  permits(): boolean;
  answered(): void;
  failedSlowly(): void;
};

function createBreaker(clock: Clock): Breaker {
  let slow = 0;
  let restsUntil = 0;
  return {
    permits() {
      if (slow < maxSlow) return true;
      const now = clock();
      if (now < restsUntil) return false;
      // Other calls still fail at once until the trial has ended.
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

/** Marks an error that leaves open whether the store carried out the call. */
const unanswered = Symbol('unanswered');

/** True for the error of a call that was not answered in time, so that nobody knows whether it wrote. */
export function isUnanswered(error: unknown): boolean {
  if (!LeporelloError.isInstance(error)) return false;
  return error.code === 'deadline' || error.cause === unanswered;
}

type Timer = { stop(): void };

/** Starts a timer that calls `act` once after `ms` milliseconds. Passed in, so that tests own it. */
export type StartTimer = (ms: number, act: () => void) => Timer;

/**
 * Starts a timer that waits in slices. A thread that was busy reads what has arrived between two slices, so its own delay is not
 * mistaken for a slow server.
 */
export function startSlicedTimer(ms: number, act: () => void): Timer & { unref(): void } {
  let left = 4;
  const timer = setTimeout(ring, ms / left);

  function ring(): void {
    left -= 1;
    if (left > 0) timer.refresh();
    else act();
  }

  return { stop: () => clearTimeout(timer), unref: () => void timer.unref() };
}

// Renewals extend the retention of records from their last use. Renewing is a write, so not every use renews: a record is renewed
// when a tenth of its retention, at most one day, has passed since this process last wrote or renewed it. Nobody waits for a
// renewal, and a failed one is left to a later use. Records used in one turn of the event loop are renewed in one call of the store.

export type Renewals = {
  /** Notes that these keys were written just now. */
  written(keys: readonly string[]): void;
  /** Notes that a record is used now and must be kept for `ttlMs` from now on. Returns at once. */
  used(key: string, ttlMs: number, known?: RecordUse): void;
};

type RecordUse = {
  /** When the record was written, in milliseconds since the epoch, if the record says so. */
  readonly writtenAt?: number | undefined;
  /** Further keys that are renewed together with this one. */
  readonly along?: () => readonly string[];
};

const dayMs = 24 * 60 * 60 * 1_000;

export function createRenewals(store: Pick<Store, 'touch'>, clock: Clock, caches = createCaches()): Renewals {
  const freshAt = caches<number>('fresh records');
  /** Keys to renew, by their retention in milliseconds. */
  const due = new Map<number, string[]>();

  function renewLater(keys: readonly string[], ttlMs: number): void {
    if (due.size === 0) setImmediate(renewDue);
    const others = due.get(ttlMs);
    if (others) others.push(...keys);
    else due.set(ttlMs, [...keys]);
  }

  function renewDue(): void {
    const now = clock();
    for (const [ttlMs, keys] of due) void renew(keys, now + ttlMs);
    due.clear();
  }

  async function renew(keys: readonly string[], expiresAt: number): Promise<void> {
    try {
      await store.touch(keys, expiresAt);
    } catch {
      for (const key of keys) freshAt.delete(key);
    }
  }

  return {
    written(keys) {
      const now = clock();
      for (const key of keys) freshAt.set(key, now);
    },
    used(key, ttlMs, { writtenAt = Number.NEGATIVE_INFINITY, along } = {}) {
      const now = clock();
      const latest = now - Math.min(ttlMs / 10, dayMs);
      if ((freshAt.get(key) ?? Number.NEGATIVE_INFINITY) > latest) return;
      const isFresh = writtenAt > latest;
      freshAt.set(key, isFresh ? writtenAt : now);
      if (!isFresh) renewLater([key, ...(along?.() ?? [])], ttlMs);
    },
  };
}
