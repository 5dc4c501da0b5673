/**
 * Counts the retention of records from their last use. Renewing is a write, so it is not done with every use: a record is renewed when a
 * tenth of its time, a day at most, has passed since this process last wrote or renewed it. Nothing waits for it, and a failure is left
 * to a later use. What is used in one turn of the event loop goes to the store in one call.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, Store } from './store.ts';

export type Renewals = {
  /** These were written just now. */
  written(keys: readonly string[]): void;
  /** This is used now, and is to be kept for `ttlMs` from here on. Returns at once. */
  used(key: string, ttlMs: number, known?: Use): void;
};

type Use = {
  /** When it was written, in milliseconds since the epoch, where the record says so. */
  readonly writtenAt?: number | undefined;
  /** Further records that are renewed whenever this one is. */
  readonly along?: () => readonly string[];
};

/** Records of which this process remembers when they were written or renewed. Of others it does not know, so it renews them. */
const mostRemembered = 100_000;

const dayMs = 24 * 60 * 60 * 1_000;

export function createRenewals(store: Pick<Store, 'touch'>, clock: Clock): Renewals {
  const freshAt = new LRUCache<string, number>({ max: mostRemembered });
  /** By how long they are to be kept. */
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
