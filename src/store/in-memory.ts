/**
 * A store in this process's memory. When it is full, old entries that were not used lately are removed first. For tests, demos and in-process
 * use; nothing survives a restart. No I/O, no timers.
 */
import { BoundedMap } from '../caches.ts';
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
  const held = new BoundedMap<string, StoredValue>(maxBytes, sizeOf);
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
    const needed = copies.reduce((sum, { key, held: next }) => sum + sizeOf(next, key), 0);
    if (needed > maxBytes) {
      throw new LeporelloError(
        'store-failed',
        `The in-memory store holds at most ${maxBytes} bytes, but these entries need ${needed}: raise maxBytes or use a store on disk.`,
      );
    }
    for (const { key, held: next } of copies) held.set(key, next);
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
        held.set(key, { value: found.value, expiresAt });
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
function sizeOf({ value }: StoredValue, key: string): number {
  return value.byteLength + 2 * key.length + 440;
}

/** Creates a sweep of expired entries. It visits every entry once per as many writes as there are entries: constant work per write on average. */
function createSweep(held: BoundedMap<string, StoredValue>): (now: number, writes: number) => void {
  let since = 0;
  return function sweep(now, writes) {
    since += writes;
    if (since < Math.max(64, held.size)) return;
    since = 0;
    for (const [key, { expiresAt }] of held.entries()) if (expiresAt <= now) held.delete(key);
  };
}
