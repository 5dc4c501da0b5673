/**
 * A store in this process's memory. When it is full, the least recently used entries are removed first. For tests, demos and in-process
 * use; nothing survives a restart. No I/O, no timers.
 */
import { LRUCache } from 'lru-cache';
import { openFixed, type Cache } from '../caches.ts';
import { LeporelloError } from '../errors.ts';
import type { Clock, FirstFound, Store, StoreEntry } from './store.ts';

export type InMemoryOptions = {
  /** Maximum size of keys, values and bookkeeping together, in bytes. Default 128 MiB. */
  readonly maxBytes?: number;
  readonly clock?: Clock;
};

type StoredValue = { readonly value: Uint8Array; readonly expiresAt: number };

/** Creates an in-memory store. A write of entries that do not fit all at once rejects with `store-failed` and writes nothing. */
export function inMemoryStore(options: InMemoryOptions = {}): Store {
  const { maxBytes = 128 * 1024 * 1024, clock = Date.now } = options;
  const held = new LRUCache<string, StoredValue>({ maxSize: maxBytes });
  const sweep = createSweep(held);
  let closed = false;

  function checkOpen(): void {
    if (closed) throw new LeporelloError('store-failed', 'The in-memory store is closed: open a new one.');
  }

  function read(key: string): Uint8Array | undefined {
    const found = held.get(key);
    if (found === undefined) return undefined;
    if (found.expiresAt > clock()) return new Uint8Array(found.value);
    held.delete(key);
    return undefined;
  }

  function readFirst(keys: readonly string[]): FirstFound | undefined {
    for (const [at, key] of keys.entries()) {
      const value = read(key);
      if (value) return { at, value };
    }
    return undefined;
  }

  function write(entries: readonly StoreEntry[]): void {
    const copies = entries.map(copyOf);
    const needed = copies.reduce((sum, { key, held: { value } }) => sum + sizeOf(key, value), 0);
    if (needed > maxBytes) {
      throw new LeporelloError(
        'store-failed',
        `The in-memory store holds at most ${maxBytes} bytes, but these entries need ${needed}: raise maxBytes or use a store on disk.`,
      );
    }
    for (const { key, held: next } of copies) held.set(key, next, { size: sizeOf(key, next.value) });
    sweep(clock(), copies.length);
  }

  return {
    name: 'in-memory',
    async get(key) {
      checkOpen();
      return read(key);
    },
    async getMany(keys) {
      checkOpen();
      return keys.map(read);
    },
    async getFirst(keys) {
      checkOpen();
      return readFirst(keys);
    },
    async putMany(entries) {
      checkOpen();
      write(entries);
    },
    async putUnless(guards, entries) {
      checkOpen();
      const inTheWay = readFirst(guards);
      if (inTheWay === undefined) write(entries);
      return inTheWay;
    },
    async touch(keys, expiresAt) {
      checkOpen();
      const now = clock();
      for (const key of keys) {
        const found = held.get(key);
        if (found === undefined || found.expiresAt <= now || found.expiresAt >= expiresAt) continue;
        held.set(key, { value: found.value, expiresAt }, { size: sizeOf(key, found.value) });
      }
    },
    async delete(keys) {
      checkOpen();
      for (const key of keys) held.delete(key);
    },
    async close() {
      closed = true;
      held.clear();
    },
  };
}

function copyOf(entry: StoreEntry): { readonly key: string; readonly held: StoredValue } {
  const { key, value, expiresAt = Number.POSITIVE_INFINITY } = entry;
  return { key, held: { value: new Uint8Array(value), expiresAt } };
}

/** Returns the heap size of an entry: the value, two bytes per character of the key, and overhead (measured on Node 24: 430 bytes). */
function sizeOf(key: string, value: Uint8Array): number {
  return value.byteLength + 2 * key.length + 440;
}

/** Creates a sweep of expired entries. It visits every entry once per as many writes as there are entries: constant work per write on average. */
function createSweep(held: LRUCache<string, StoredValue>): (now: number, writes: number) => void {
  let since = 0;
  return function sweep(now, writes) {
    since += writes;
    if (since < Math.max(64, held.size)) return;
    since = 0;
    const expired: string[] = [];
    held.forEach(({ expiresAt }, key) => {
      if (expiresAt <= now) expired.push(key);
    });
    for (const key of expired) held.delete(key);
  };
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
  /** Guarded writes look at memory and store, so they run one after another. */
  lastGuarded: Promise<unknown>;
};

const sharedBy = new WeakMap<Store, SharedState>();

/** Opens a view for one engine. Returns the store itself when other processes use it from the start. */
export function openStoreView(store: Store, clock: Clock = Date.now): StoreView {
  if (store.isShared ?? true) return store;
  const shared = sharedBy.get(store) ?? {
    store,
    transient: openFixed<string, TransientEntry>('transient records'),
    writes: 0,
    lastGuarded: Promise.resolve(),
  };
  sharedBy.set(store, shared);
  return viewOf(shared, clock);
}

function viewOf(shared: SharedState, clock: Clock): StoreView {
  const { store, transient } = shared;
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
    const entry = transient.get(key);
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
  async function putUnless(
    keys: readonly string[],
    parts: ReturnType<typeof split>,
  ): Promise<FirstFound | undefined> {
    // Only the store can check its keys and write in one step. So a guard in this view is looked for first.
    const isBlockedHere = keys.some(isHere);
    const found = parts.there.length === 0 || isBlockedHere ? await getFirst(keys) : undefined;
    const blocked = found ?? (parts.there.length > 0 ? await store.putUnless(keys, parts.there) : undefined);
    if (blocked === undefined) keepHere(parts);
    return blocked;
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
    async putUnless(guards, entries) {
      const keys = [...guards];
      const parts = split(entries);
      const turn = shared.lastGuarded.then(() => counted(putUnless(keys, parts)));
      shared.lastGuarded = turn.catch(() => undefined);
      return turn;
    },
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
