/**
 * Wraps a store: with a watch on the duration of its calls, with deadlines for them, and with a memory for entries that need not survive
 * the process. No wrapper encrypts: see encrypted-store.ts.
 */
import { type Cache, openFixed } from '../caches.ts';
import { maxTimerMs } from '../checks.ts';
import { LeporelloError, unanswered } from '../errors.ts';
import { withResolvers } from '../es2024.ts';
import { type Clock, type FirstFound, type Store, type StoreEntry, originalPrefix } from './store.ts';

/** Takes the duration of one call of a store, such as `getMany`. */
export type StoreTimes = (call: string, seconds: number, isAnswered: boolean) => void;

/** Returns the same store, and reports how long each of its calls takes, except `close`. */
export function timedStore(store: Store, report: StoreTimes): Store {
  const watch: StoreWatch = async (call, work) => {
    const started = performance.now();
    let isAnswered = false;
    try {
      const answer = await work();
      isAnswered = true;
      return answer;
    } finally {
      report(call, (performance.now() - started) / 1_000, isAnswered);
    }
  };
  return {
    ...watchedStore(store, watch),
    get isShared() {
      return store.isShared ?? true;
    },
    mayHold: (keys) => store.mayHold?.(keys) ?? true,
    close: () => store.close(),
  };
}

/** Runs one call of a store, such as `getMany`, and returns its result. */
export type StoreWatch = <T>(call: string, work: () => Promise<T>) => Promise<T>;

function watchedStore(store: Store, watch: StoreWatch): Store {
  return {
    name: store.name,
    get: (key) => watch('get', () => store.get(key)),
    getMany: (keys) => watch('getMany', () => store.getMany(keys)),
    getFirst: (keys) => watch('getFirst', () => store.getFirst(keys)),
    putMany: (entries) => watch('putMany', () => store.putMany(entries)),
    putUnless: (guards, entries) => watch('putUnless', () => store.putUnless(guards, entries)),
    touch: (keys, expiresAt) => watch('touch', () => store.touch(keys, expiresAt)),
    delete: (keys) => watch('delete', () => store.delete(keys)),
    close: () => watch('close', () => store.close()),
  };
}

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
  /** Runs each call, with its wait. Default: it is just run. */
  readonly watch?: StoreWatch | undefined;
};

/** After so many slow failures in a row the store rests for so many milliseconds. Then one trial call is made. */
const [maxSlow, restMs] = [3, 5_000];

const [usualMs, maxDeadlineMs] = [500, 60 * 60 * 1_000];

/** Wraps a store so that its calls reject with `store-failed` when they take too long. Throws `bad-config` for a deadline out of range. */
export function storeWithDeadline(store: Store, options: DeadlineOptions = {}): Store {
  const { deadlineMs = usualMs, clock = () => performance.now(), startTimer = startSlicedTimer } = options;
  if (!(deadlineMs > 0 && deadlineMs <= maxDeadlineMs)) {
    throw new LeporelloError(
      'bad-config',
      `storeDeadlineMs is ${deadlineMs}; it must be above 0 and at most ${maxDeadlineMs} milliseconds.`,
    );
  }
  // Reads and writes rest separately: a database that another process keeps locked can often still be read.
  const reads = createBreaker(clock);
  const writes = createBreaker(clock);

  function tooLate(call: string): never {
    throw new LeporelloError(
      'store-failed',
      `The ${store.name} store did not answer ${call} within ${deadlineMs} ms. Check the machine and network it runs on, or raise storeDeadlineMs.`,
      { cause: unanswered },
    );
  }

  /** Runs a call within the deadline. With `breaker` undefined, also while the store rests. */
  async function askInTime<T>(
    breaker: Breaker | undefined,
    call: string,
    work: () => Promise<T>,
  ): Promise<T> {
    if (breaker?.permits() === false) {
      throw new LeporelloError(
        'store-failed',
        `The ${store.name} store was not called (${call}): its last ${maxSlow} or more calls failed after long waits. It is tried again within ${restMs} ms.`,
      );
    }
    const started = clock();
    try {
      const answer = await inTime(work(), deadlineMs, startTimer, () => tooLate(call));
      breaker?.answered();
      return answer;
    } catch (error) {
      if (clock() - started >= deadlineMs / 2) breaker?.failedSlowly();
      throw error;
    }
  }

  return watchedStore(store, (call, work) => {
    const breaker = call === 'close' ? undefined : call.startsWith('get') ? reads : writes;
    const run = () => askInTime(breaker, call, work);
    return options.watch ? options.watch(call, run) : run();
  });
}

/** Returns the result of the work, or that of `late` if the work takes longer than `ms` milliseconds. */
async function inTime<T>(work: Promise<T>, ms: number, startTimer: StartTimer, late: () => T): Promise<T> {
  const { promise, resolve } = withResolvers<void>();
  const timer = startTimer(ms, resolve);
  try {
    return await Promise.race([work, promise.then(late)]);
  } finally {
    timer.stop();
  }
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

/** Starts a timer that calls `act` once after `ms` milliseconds. Passed in, so that tests own it. */
export type StartTimer = (ms: number, act: () => void) => { stop(): void };

/**
 * Starts a timer that waits in slices. A thread that was busy reads what has arrived between two slices, so its own delay is not
 * mistaken for a slow server.
 */
export function startSlicedTimer(ms: number, act: () => void): { stop(): void; unref(): void } {
  let left = 4;
  const slice = Math.min(ms / left, maxTimerMs);
  let timer: NodeJS.Timeout | number = setTimeout(ring, slice);

  function ring(): void {
    left -= 1;
    if (left === 0) act();
    else if (typeof timer === 'object') timer.refresh();
    else timer = setTimeout(ring, slice);
  }

  return { stop: () => clearTimeout(timer), unref: () => void (typeof timer === 'object' && timer.unref()) };
}

// Views of a store that only this process uses. The record of each request without a fold must be found by all engines of the
// process (the gateway's own and those of its threads), but need not survive it: it is kept in memory, and encrypted only when
// another engine reads it. A view also counts what others wrote, so that an engine knows when what it has read may be outdated.

/** A store as one engine of the process uses it. */
export interface StoreView extends Store {
  /** The writes that others in this process have made; undefined while other processes may write, too. */
  readonly writesByOthers?: number | undefined;
  /** Keeps an entry in memory for the other engines of the process. Returns false when other processes need it, too. */
  keepTransient?(key: string, entry: TransientEntry): boolean;
}

export type TransientEntry = {
  /** Milliseconds since the epoch; undefined means never. */
  readonly expiresAt: number | undefined;
  /** Makes the value. It is called when the entry is read for the first time. */
  readonly value: () => Promise<Uint8Array>;
};

/** The state that all views of a store share. */
type SharedState = {
  readonly store: Store;
  readonly transient: Cache<string, TransientEntry>;
  writes: number;
  /** The last guarded write of each key. They look at memory and store, so those of one key run one after another. */
  readonly guarded: Map<string, GuardedWrite>;
};

/** A guarded write in progress. `isOvertaken`: a later write of one of its keys no longer waits for it. */
type GuardedWrite = { readonly ended: Promise<unknown>; isOvertaken: boolean };

function overtake(writes: readonly GuardedWrite[]): void {
  for (const write of writes) write.isOvertaken = true;
}

const sharedBy = new WeakMap<Store, SharedState>();

/** The clock of a view is that of expiries. A guarded write waits for an earlier one of the same key for at most `deadlineMs`. */
export type StoreViewOptions = Pick<DeadlineOptions, 'deadlineMs' | 'clock' | 'startTimer'>;

/** Opens a view for one engine. Returns the store itself when other processes use it from the start. */
export function openStoreView(store: Store, options: StoreViewOptions = {}): StoreView {
  if (store.isShared ?? true) return store;
  const shared = sharedBy.get(store) ?? {
    store,
    transient: openFixed<string, TransientEntry>('transient records'),
    writes: 0,
    guarded: new Map(),
  };
  sharedBy.set(store, shared);
  return viewOf(shared, options);
}

function viewOf(shared: SharedState, options: StoreViewOptions): StoreView {
  const { store, transient, guarded } = shared;
  const { deadlineMs = usualMs, clock = Date.now, startTimer = startSlicedTimer } = options;
  let ownWrites = 0;

  function countWrite(): void {
    shared.writes += 1;
    ownWrites += 1;
  }
  /** Counts a write when it has ended: a value that was read before then may be outdated. */
  async function counted<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      countWrite();
    }
  }
  function isHere(key: string): boolean {
    const entry = transient.size > 0 ? transient.get(key) : undefined;
    return entry !== undefined && (entry.expiresAt ?? Number.POSITIVE_INFINITY) > clock();
  }
  async function readHere(key: string): Promise<Uint8Array | undefined> {
    const entry = isHere(key) ? transient.get(key) : undefined;
    if (entry === undefined) return undefined;
    const value = await entry.value();
    if (transient.get(key) === entry) transient.set(key, { ...entry, value: async () => value });
    return new Uint8Array(value);
  }
  async function getFirst(keys: readonly string[]): Promise<FirstFound | undefined> {
    const at = keys.findIndex(isHere);
    const value = at < 0 ? undefined : await readHere(keys[at]!);
    const before = value ? keys.slice(0, at) : keys;
    return (before.length > 0 ? await store.getFirst(before) : undefined) ?? (value && { at, value });
  }
  /** Copies entries, and splits them by where they are kept. Once another process uses the store, all of them go there. */
  function split(entries: readonly StoreEntry[]) {
    const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
    if (store.isShared !== false) return { here: [], there: copies };
    return {
      here: copies.filter(({ isTransient }) => isTransient),
      there: copies.filter(({ isTransient }) => !isTransient),
    };
  }
  function keepHere({ here, there }: ReturnType<typeof split>): void {
    for (const { key, value, expiresAt } of here) transient.set(key, { expiresAt, value: async () => value });
    for (const { key } of there) transient.delete(key);
  }
  async function putMany(parts: ReturnType<typeof split>): Promise<void> {
    // A store that is closed rejects an empty list, too.
    await store.putMany(parts.there);
    keepHere(parts);
  }
  /** Runs guarded writes that have a key in common one after another. */
  async function putUnless(guards: readonly string[], parts: ReturnType<typeof split>) {
    const written = [...parts.here, ...parts.there].map(({ key }) => key);
    const keys = [...guards, ...written.filter((key) => !key.startsWith(originalPrefix))];
    const earlier = keys.flatMap((key) => guarded.get(key) ?? []);
    const allEnded = Promise.all(earlier.map((one) => one.ended));
    const { promise: ended, resolve: end } = withResolvers<void>();
    const write: GuardedWrite = { ended, isOvertaken: false };
    for (const key of keys) guarded.set(key, write);
    try {
      // A store may never answer an earlier write.
      if (earlier.length > 0)
        await inTime<unknown>(allEnded, deadlineMs, startTimer, () => overtake(earlier));
      // Only the store can check its keys and write in one step. So a guard in this view is looked for first.
      const isBlockedHere = guards.some(isHere);
      const found = parts.there.length === 0 || isBlockedHere ? await getFirst(guards) : undefined;
      const blocked =
        found ?? (parts.there.length > 0 ? await store.putUnless(guards, parts.there) : undefined);
      if (blocked === undefined && !write.isOvertaken) keepHere(parts);
      return blocked;
    } finally {
      for (const key of keys) if (guarded.get(key) === write) guarded.delete(key);
      end();
    }
  }

  return {
    name: store.name,
    get writesByOthers() {
      return store.isShared === false ? shared.writes - ownWrites : undefined;
    },
    mayHold: (keys) => store.isShared !== false || keys.some(isHere) || (store.mayHold?.(keys) ?? true),
    keepTransient(key, entry) {
      if (store.isShared !== false) return false;
      transient.set(key, entry);
      countWrite();
      return true;
    },
    get: async (key) => (await readHere(key)) ?? (await store.get(key)),
    async getMany(keys) {
      const [here, there] = await Promise.all([Promise.all(keys.map(readHere)), store.getMany(keys)]);
      return there.map((value, at) => here[at] ?? value);
    },
    getFirst,
    async putMany(entries) {
      await counted(putMany(split(entries)));
    },
    putUnless: async (guards, entries) => counted(putUnless([...guards], split(entries))),
    async touch(keys, expiresAt) {
      for (const key of keys) {
        const entry = isHere(key) ? transient.get(key) : undefined;
        if (entry?.expiresAt !== undefined && entry.expiresAt < expiresAt)
          transient.set(key, { ...entry, expiresAt });
      }
      await store.touch(keys, expiresAt);
    },
    async delete(keys) {
      for (const key of keys) transient.delete(key);
      await counted(store.delete(keys));
    },
    async close() {
      transient.clear();
      await store.close();
    },
  };
}
