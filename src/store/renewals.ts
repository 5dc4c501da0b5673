/**
 * Extends the retention of records from their last use. Renewing is a write, so not every use renews: a record is renewed when a tenth of
 * its retention, at most one day, has passed since this process last wrote or renewed it. Nobody waits for a renewal, and a failed one is
 * left to a later use. Records used in one turn of the event loop are renewed in one call of the store.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, Store } from './store.ts';

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

/** The number of records whose last write or renewal this process remembers. It renews any other record at its next use. */
const maxRemembered = 100_000;

const dayMs = 24 * 60 * 60 * 1_000;

export function createRenewals(store: Pick<Store, 'touch'>, clock: Clock): Renewals {
  const freshAt = new LRUCache<string, number>({ max: maxRemembered });
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
