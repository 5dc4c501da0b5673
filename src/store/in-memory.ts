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
  keepTransient?(entry: TransientEntry): boolean;
}

export type TransientEntry = {
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Makes the value when it is read for the first time. */
  readonly seal: () => Promise<Uint8Array>;
};

/** Bytes of the newest transient entries that were read: about 30,000 requests. */
const maxTransientBytes = 16 * 1024 * 1024;

/** What all views of a store share. */
type Shared = {
  readonly store: Store;
  readonly memory: Store;
  readonly unread: Cache<string, TransientEntry>;
  writes: number;
  /** Guarded writes look at memory and store, so they run one after another. */
  lastGuarded: Promise<unknown>;
};

const sharedBy = new WeakMap<Store, Shared>();

/** Opens a view for one engine. Returns the store itself when other processes use it from the start. */
export function openStoreView(store: Store, clock?: Clock): StoreView {
  if (store.isShared ?? true) return store;
  const shared = sharedBy.get(store) ?? {
    store,
    memory: inMemoryStore({ maxBytes: maxTransientBytes, ...(clock && { clock }) }),
    unread: openFixed<string, TransientEntry>('unread records'),
    writes: 0,
    lastGuarded: Promise.resolve(),
  };
  sharedBy.set(store, shared);
  return viewOf(shared);
}

function viewOf(shared: Shared): StoreView {
  const { store, memory, unread } = shared;
  let ownWrites = 0;

  /** Copies entries, and splits them by where they are kept. Once another process uses the store, all of them go there. */
  const split = (entries: readonly StoreEntry[]) => {
    const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
    if (store.isShared !== false) return { here: [], there: copies };
    return {
      here: copies.filter(({ isTransient }) => isTransient),
      there: copies.filter(({ isTransient }) => !isTransient),
    };
  };
  /** Makes the values of transient entries that are read now. */
  async function makeValues(keys: readonly string[]): Promise<void> {
    if (unread.size === 0) return;
    for (const key of keys) {
      const entry = unread.get(key);
      if (entry === undefined) continue;
      const value = await entry.seal();
      if (!unread.delete(key)) continue;
      await memory.putMany([{ key, value, expiresAt: entry.expiresAt }]);
    }
  }
  async function forget(keys: readonly string[]): Promise<void> {
    for (const key of keys) unread.delete(key);
    await memory.delete(keys);
  }
  async function getFirst(keys: readonly string[]): Promise<FirstFound | undefined> {
    await makeValues(keys);
    const here = await memory.getFirst(keys);
    const before = keys.slice(0, here?.at);
    return (before.length > 0 ? await store.getFirst(before) : undefined) ?? here;
  }
  /** Counts a write when it has ended: a value that was read before then may be outdated. */
  async function counted<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      shared.writes += 1;
      ownWrites += 1;
    }
  }
  async function put({ here, there }: ReturnType<typeof split>): Promise<void> {
    if (there.length > 0) await store.putMany(there);
    await memory.putMany(here);
    await forget(there.map(({ key }) => key));
  }
  async function putUnless(
    keys: readonly string[],
    { here, there }: ReturnType<typeof split>,
  ): Promise<FirstFound | undefined> {
    await makeValues(keys);
    const found =
      there.length === 0 || (await memory.getFirst(keys))
        ? await getFirst(keys)
        : await store.putUnless(keys, there);
    if (found) return found;
    await memory.putMany(here);
    await forget(there.map(({ key }) => key));
    return undefined;
  }

  return {
    name: store.name,
    get writesByOthers() {
      return store.isShared === false ? shared.writes - ownWrites : undefined;
    },
    keepTransient(entry) {
      if (store.isShared !== false) return false;
      unread.set(entry.key, entry);
      shared.writes += 1;
      ownWrites += 1;
      return true;
    },
    async get(key) {
      await makeValues([key]);
      return (await memory.get(key)) ?? (await store.get(key));
    },
    async getMany(keys) {
      await makeValues(keys);
      const [here, there] = await Promise.all([memory.getMany(keys), store.getMany(keys)]);
      return there.map((value, at) => here[at] ?? value);
    },
    getFirst,
    async putMany(entries) {
      await counted(put(split(entries)));
    },
    async putUnless(guards, entries) {
      const keys = [...guards];
      const parts = split(entries);
      const turn = shared.lastGuarded.then(() => counted(putUnless(keys, parts)));
      shared.lastGuarded = turn.catch(() => undefined);
      return turn;
    },
    async touch(keys, expiresAt) {
      await memory.touch(keys, expiresAt);
      await store.touch(keys, expiresAt);
    },
    async delete(keys) {
      await forget(keys);
      await counted(store.delete(keys));
    },
    async close() {
      unread.clear();
      await memory.close();
      await store.close();
    },
  };
}
