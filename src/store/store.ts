/**
 * Defines the interface of a store: bytes by key, with expiry. A store keeps originals and folds, encrypted. Every store passes
 * test/support/store-suite. A write that has resolved survives a crash if the store is durable. The end of the file defines the records that
 * the encrypted store puts into it, and lets changes of one record take turns.
 */

/** A store of bytes by key. */
export interface Store {
  readonly name: string;
  /** False while no other process uses the store: then transient entries stay in memory. Default true. */
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

/** Keys of originals begin with this. A store that cannot write all entries at once writes these first. */
export const originalPrefix = 'memory/';

export type FirstFound = { readonly at: number; readonly value: Uint8Array };

/** Returns the time in milliseconds since the epoch. Passed in, so that tests control it. */
export type Clock = () => number;

/** A record for the encrypted store, which seals it and writes the same bytes under several keys. */
export type Sealed = {
  readonly keys: readonly string[];
  readonly content: Uint8Array;
  readonly ttlMs: number;
  /** Keys that must have no value for the write to happen. Default: none. */
  readonly unless?: readonly string[];
  /** True when no later process needs the record. Default false. */
  readonly isTransient?: boolean;
};

/** The first record that was found, and the index of its key. `content` is undefined if the record is damaged. */
export type FirstSealed = { readonly at: number; readonly content: Uint8Array | undefined };

/** Returns a function that runs the work of each tenant one after the other. Tenants do not wait for each other. */
export function createTurns(): <T>(tenant: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (tenant, work) => {
    const done = (last.get(tenant) ?? Promise.resolve()).then(work);
    const settled = done
      .catch(() => undefined)
      .finally(() => {
        if (last.get(tenant) === settled) last.delete(tenant);
      });
    last.set(tenant, settled);
    return done;
  };
}
