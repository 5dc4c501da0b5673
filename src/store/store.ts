/**
 * The interface of a store: bytes by key, with expiry. Memory (originals) and fold store (folds) are kept behind it.
 * Every store passes test/support/store-suite. Writes that have resolved survive a crash where the store is durable.
 */

export interface Store {
  readonly name: string;
  /**
   * False while no other process uses the store. Then what only other processes need is not written: for each request without a fold, what it
   * was sent with. Default true.
   */
  readonly isShared?: boolean;
  get(key: string): Promise<Uint8Array | undefined>;
  /** The values of several keys in one round trip, in the order of the keys. */
  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** The first of the keys that has a value, by its place among them; no other value is read. One round trip. */
  getFirst(keys: readonly string[]): Promise<FirstFound | undefined>;
  /** All or none. An entry that is already there is overwritten, its expiry with it. */
  putMany(entries: readonly StoreEntry[]): Promise<void>;
  /** All or none; none where something stands under a key of `guards`: the first that does is returned. One round trip. */
  putUnless(guards: readonly string[], entries: readonly StoreEntry[]): Promise<FirstFound | undefined>;
  /**
   * Moves the expiry of the entries that are there to `expiresAt`, in milliseconds since the epoch, where that is later. Never brings back
   * what has expired, and never shortens. One round trip.
   */
  touch(keys: readonly string[], expiresAt: number): Promise<void>;
  delete(keys: readonly string[]): Promise<void>;
  /** May be called twice. After it every other call rejects with `store-failed`. */
  close(): Promise<void>;
}

export type StoreEntry = {
  readonly key: string;
  readonly value: Uint8Array;
  /** Milliseconds since the epoch; undefined means never. An expired entry reads as absent. */
  readonly expiresAt: number | undefined;
};

export type FirstFound = { readonly at: number; readonly value: Uint8Array };

/** Tells the time, in milliseconds since the epoch. Passed in, so that tests own it. */
export type Clock = () => number;
