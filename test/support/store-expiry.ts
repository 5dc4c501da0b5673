/** The cases of the store suite about time: expiry, renewal, and the removal of expired entries. Also has the suite's helpers. */
import { expect, it } from 'vitest';
import type { Store, StoreEntry } from '../../src/store/store.ts';

/** Opens a store for each case, with a clock that the case sets. */
export type Setting = { readonly open: () => Promise<Store>; readonly setClock: (to: number) => void };

/** Declares the cases of expiry. */
export function expiry({ open, setClock }: Setting): void {
  it('reads an entry as absent from its expiry on', async () => {
    const store = await open();
    await store.putMany([entry('brief', [1], 1_000_500), entry('ever', [2])]);
    setClock(1_000_499);
    expect(await store.get('brief')).toEqual(bytes(1));
    setClock(1_000_500);
    expect(await store.get('brief')).toBeUndefined();
    expect(await store.getMany(['ever', 'brief'])).toEqual([bytes(2), undefined]);
    expect(await store.getFirst(['brief', 'ever'])).toEqual({ at: 1, value: bytes(2) });
  });

  it('reads an entry that is written expired as absent', async () => {
    const store = await open();
    await store.putMany([entry('a', [1])]);
    await store.putMany([entry('a', [2], 999_999)]);
    expect(await store.get('a')).toBeUndefined();
  });

  it('ignores an expired guard, and expires entries that are written under it', async () => {
    const store = await open();
    await store.putMany([entry('guard', [1], 1_000_100)]);
    setClock(1_000_100);
    expect(await store.putUnless(['guard'], [entry('guard', [2], 1_000_300)])).toBeUndefined();
    setClock(1_000_299);
    expect(await store.putUnless(['guard'], [entry('guard', [3])])).toEqual({ at: 0, value: bytes(2) });
    setClock(1_000_300);
    expect(
      await store.putUnless(['guard'], [entry('guard', [4]), entry('gone', [5], 1_000_300)]),
    ).toBeUndefined();
    expect(await store.getMany(['guard', 'gone'])).toEqual([bytes(4), undefined]);
  });

  it('overwrites the expiry with the entry', async () => {
    const store = await open();
    await store.putMany([
      entry('longer', [1], 1_000_100),
      entry('ever', [2], 1_000_100),
      entry('shorter', [3]),
    ]);
    await store.putMany([
      entry('longer', [1], 1_000_900),
      entry('ever', [2]),
      entry('shorter', [3], 1_000_100),
    ]);
    setClock(1_000_500);
    expect(await store.getMany(['longer', 'ever', 'shorter'])).toEqual([bytes(1), bytes(2), undefined]);
    setClock(9_000_000_000_000);
    expect(await store.getMany(['longer', 'ever'])).toEqual([undefined, bytes(2)]);
  });
}

/** Declares the cases of renewal. */
export function touching({ open, setClock }: Setting): void {
  it('moves the expiry of existing entries to a later time, and keeps their values', async () => {
    const store = await open();
    await store.putMany([
      entry('a', [1, 2], 1_000_100),
      entry('b', [], 1_000_100),
      entry('c', [3], 1_000_100),
    ]);
    await store.touch(['a', 'nothing', 'b', 'a'], 1_000_500.5);
    setClock(1_000_100);
    expect(await store.getMany(['a', 'b', 'c', 'nothing'])).toEqual([
      bytes(1, 2),
      bytes(),
      undefined,
      undefined,
    ]);
    setClock(1_000_500);
    expect(await store.get('a')).toEqual(bytes(1, 2));
    setClock(1_000_501);
    expect(await store.getMany(['a', 'b'])).toEqual([undefined, undefined]);
  });

  it('never shortens a retention: with an earlier time, a past time, or an entry that never expires', async () => {
    const store = await open();
    await store.putMany([entry('a', [1], 1_000_500), entry('ever', [2])]);
    await store.touch(['a', 'ever'], 1_000_100);
    await store.touch(['a', 'ever'], 999_000);
    setClock(1_000_499);
    expect(await store.getMany(['a', 'ever'])).toEqual([bytes(1), bytes(2)]);
    await store.touch(['ever'], 1_000_600);
    setClock(9_000_000_000_000);
    expect(await store.getMany(['a', 'ever'])).toEqual([undefined, bytes(2)]);
  });

  it('never restores an expired entry', async () => {
    const store = await open();
    await store.putMany([entry('a', [1], 1_000_100)]);
    setClock(1_000_100);
    await store.touch(['a'], 1_000_900);
    expect(await store.get('a')).toBeUndefined();
    setClock(1_000_000);
    expect([undefined, 1]).toContain((await store.get('a'))?.[0]);
    setClock(1_000_200);
    expect(await store.get('a')).toBeUndefined();
  });

  it('touches any keys, thousands at once, and none', async () => {
    const store = await open();
    const keys = ['', 'a\0b', '日本語', "'; drop", ...Array.from({ length: 3_000 }, (_, at) => `many ${at}`)];
    await store.putMany(keys.map((key, at) => entry(key, [at % 251], 1_000_100)));
    await store.touch([], 1_000_500);
    await store.touch(keys, 1_000_500);
    setClock(1_000_400);
    expect(await store.getMany(keys)).toEqual(keys.map((_, at) => bytes(at % 251)));
  });
}

/** Declares the cases of removal. */
export function sweeping({ open, setClock }: Setting): void {
  it('removes expired entries when it writes', async () => {
    const store = await open();
    const brief = Array.from({ length: 40 }, (_, i) => `brief${i}`);
    await store.putMany(brief.map((key) => entry(key, [1], 1_000_100)));
    setClock(1_000_200);
    for (let i = 0; i < 100; i += 1) await store.putMany([entry(`later${i}`, [2])]);
    // Only an entry that is still there can come back when the clock goes back.
    setClock(1_000_000);
    expect((await store.getMany(brief)).filter((value) => value !== undefined)).toEqual([]);
    expect(await store.get('later0')).toEqual(bytes(2));
  });
}

export function bytes(...values: number[]): Uint8Array {
  return new Uint8Array(values);
}

export function entry(key: string, value: readonly number[], expiresAt?: number): StoreEntry {
  return { key, value: new Uint8Array(value), expiresAt };
}
