/**
 * Keeps entries that only other processes would need in memory, while no other process uses the store. The record of each request without a
 * fold is such an entry: engines of one process (the gateway's own and those of its threads) must find it, but it need not survive the
 * process, so it is not worth a write to disk with every request.
 */
import { inMemoryStore } from './in-memory.ts';
import type { Clock, FirstFound, Store, StoreEntry } from './store.ts';

/** Bytes of the newest transient entries that are kept: about 30,000 requests. */
const maxBytes = 16 * 1024 * 1024;

/** By the store, so that all engines that use one store find the same entries. */
const wrapped = new WeakMap<Store, Store>();

/** Returns the store itself when other processes use it from the start. */
export function withTransientEntries(store: Store, clock?: Clock): Store {
  if (store.isShared ?? true) return store;
  const known = wrapped.get(store) ?? layered(store, inMemoryStore({ maxBytes, ...(clock && { clock }) }));
  wrapped.set(store, known);
  return known;
}

function layered(store: Store, memory: Store): Store {
  /** Copies entries, and splits them by where they are kept. Once another process uses the store, all of them go there. */
  const split = (entries: readonly StoreEntry[]) => {
    const copies = entries.map((entry) => ({ ...entry, value: new Uint8Array(entry.value) }));
    if (store.isShared !== false) return { here: [], there: copies };
    return {
      here: copies.filter(({ isTransient }) => isTransient),
      there: copies.filter(({ isTransient }) => !isTransient),
    };
  };
  async function getFirst(keys: readonly string[]): Promise<FirstFound | undefined> {
    const here = await memory.getFirst(keys);
    const before = keys.slice(0, here?.at);
    return (before.length > 0 ? await store.getFirst(before) : undefined) ?? here;
  }
  // Guarded writes look at both places, so they run one after another.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };

  return {
    name: store.name,
    get: async (key) => (await memory.get(key)) ?? (await store.get(key)),
    async getMany(keys) {
      const [here, there] = await Promise.all([memory.getMany(keys), store.getMany(keys)]);
      return there.map((value, at) => here[at] ?? value);
    },
    getFirst,
    async putMany(entries) {
      const { here, there } = split(entries);
      if (there.length > 0) await store.putMany(there);
      await memory.putMany(here);
      await memory.delete(there.map(({ key }) => key));
    },
    putUnless(guards, entries) {
      const keys = [...guards];
      const { here, there } = split(entries);
      return inTurn(async () => {
        const found =
          there.length === 0 || (await memory.getFirst(keys))
            ? await getFirst(keys)
            : await store.putUnless(keys, there);
        if (found) return found;
        await memory.putMany(here);
        await memory.delete(there.map(({ key }) => key));
        return undefined;
      });
    },
    async touch(keys, expiresAt) {
      await memory.touch(keys, expiresAt);
      await store.touch(keys, expiresAt);
    },
    async delete(keys) {
      await memory.delete(keys);
      await store.delete(keys);
    },
    async close() {
      await memory.close();
      await store.close();
    },
  };
}
