/**
 * Declares the requirements of every store as vitest cases. A store's own test calls it with a way to open the store, and also tests
 * faults that only that store can have (a read-only file, a lost connection).
 */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock, Store, StoreEntry } from '../../src/store/store.ts';
import { bytes, entry, expiry, type Setting, sweeping, touching } from './store-expiry.ts';

export type StoreFixture = {
  /** Opens a new, empty store. */
  readonly open: (clock: Clock) => Store | Promise<Store>;
  /** Opens the store of the last `open` again, which is closed by then. Only for stores that outlive a process. */
  readonly reopen?: (clock: Clock) => Store | Promise<Store>;
  /**
   * Says how expired entries are removed: by the store when it writes (the default), or by its server, whose clock no test can set. In the
   * second case the store's own test must show it.
   */
  readonly sweeps?: 'as it writes' | 'by itself';
};

/** Keys may be any well-formed text. Lone surrogates are not allowed, because no store keeps UTF-16. */
const awkwardKeys = [
  '',
  ' ',
  '\0',
  'a\0b',
  'a',
  'A',
  '\u00e9',
  'e\u0301',
  '\u{1f600}',
  '\u{10ffff}',
  '\ufffd',
  '日本語',
  '"\\\n\t',
  "'; drop table entries; --",
  '$.a[0]',
  '%_*?[a]',
  'k'.repeat(2_000),
];

/** Declares the cases every store must pass. */
export function storeSuite(name: string, fixture: StoreFixture): void {
  describe(`${name} keeps the contract of a store`, () => {
    const stores: Store[] = [];
    let now = 1_000_000;
    const clock: Clock = () => now;

    async function open(): Promise<Store> {
      now = 1_000_000;
      const store = await fixture.open(clock);
      stores.push(store);
      return store;
    }

    afterEach(async () => {
      for (const store of stores.splice(0)) await store.close();
    });

    const setting = { open, setClock: (to: number) => void (now = to) };
    reading(setting);
    writing(setting);
    content(setting);
    copying(setting);
    expiry(setting);
    touching(setting);
    if (fixture.sweeps !== 'by itself') sweeping(setting);
    closing(setting);
    const { reopen } = fixture;
    if (reopen === undefined) return;

    it('still has everything after closing and reopening', async () => {
      const store = await open();
      await store.putMany([entry('kept', [1, 2]), entry('gone', [3]), entry('brief', [4], 1_000_100)]);
      await store.delete(['gone']);
      await store.close();

      const again = await reopen(clock);
      stores.push(again);
      expect(await again.getMany(['kept', 'gone', 'brief'])).toEqual([bytes(1, 2), undefined, bytes(4)]);
      now = 1_000_100;
      expect(await again.get('brief')).toBeUndefined();
    });
  });
}

function reading({ open }: Setting): void {
  it('has a name', async () => {
    expect((await open()).name).not.toBe('');
  });

  it('returns undefined for a key that was never written', async () => {
    const store = await open();
    expect(await store.get('nothing')).toBeUndefined();
    expect(await store.getMany(['nothing', 'more'])).toEqual([undefined, undefined]);
  });

  it('answers getMany in the order of the keys, with misses and repeated keys in their places', async () => {
    const store = await open();
    await store.putMany([entry('a', [1]), entry('b', [2]), entry('c', [3])]);
    const values = await store.getMany(['c', 'x', 'a', 'c', 'b', 'y']);
    expect(values).toEqual([bytes(3), undefined, bytes(1), bytes(3), bytes(2), undefined]);
  });

  it('finds the first of several keys in the order of the keys, in whatever order they were written', async () => {
    const store = await open();
    await store.putMany([entry('a', [1]), entry('b', []), entry('c', [3])]);
    expect(await store.getFirst(['x', 'c', 'a'])).toEqual({ at: 1, value: bytes(3) });
    expect(await store.getFirst(['b', 'c'])).toEqual({ at: 0, value: bytes() });
    expect(await store.getFirst(['y', 'x', 'y'])).toBeUndefined();
    const many = Array.from({ length: 3_000 }, (_, at) => `nothing ${at}`);
    expect(await store.getFirst([...many, 'a', 'c'])).toEqual({ at: 3_000, value: bytes(1) });
  });

  it('accepts empty lists', async () => {
    const store = await open();
    await store.putMany([]);
    await store.delete([]);
    expect(await store.getMany([])).toEqual([]);
    expect(await store.getFirst([])).toBeUndefined();
  });
}

function writing({ open }: Setting): void {
  it('overwrites entries; of one key twice in one call the last stays', async () => {
    const store = await open();
    await store.putMany([entry('a', [1])]);
    await store.putMany([entry('a', [2, 2]), entry('b', [3]), entry('b', [4])]);
    expect(await store.getMany(['a', 'b'])).toEqual([bytes(2, 2), bytes(4)]);
  });

  it('writes all entries of a call or none', async () => {
    const store = await open();
    await store.putMany([entry('old', [1])]);
    const broken: StoreEntry = {
      key: 'broken',
      get value(): Uint8Array {
        throw new Error('this value cannot be read');
      },
      expiresAt: undefined,
    };
    await expect(store.putMany([entry('new', [2]), entry('old', [3]), broken])).rejects.toThrow();
    expect(await store.getMany(['new', 'old', 'broken'])).toEqual([undefined, bytes(1), undefined]);
  });

  it('writes all entries of a call unless a guard exists, and returns its value', async () => {
    const store = await open();
    const entries = [entry('a', [1]), entry('b', [2])];
    expect(await store.putUnless(['guard', 'a'], entries)).toBeUndefined();
    expect(await store.putUnless(['none', 'a', 'b'], [entry('b', [3]), entry('c', [4])])).toEqual({
      at: 1,
      value: bytes(1),
    });
    expect(await store.getMany(['a', 'b', 'c'])).toEqual([bytes(1), bytes(2), undefined]);
    expect(await store.putUnless([], [entry('b', [5])])).toBeUndefined();
    expect(await store.putUnless(['a'], [])).toEqual({ at: 0, value: bytes(1) });
    expect(await store.putUnless(['none'], [])).toBeUndefined();
    expect(await store.get('b')).toEqual(bytes(5));
  });

  it('lets one of many concurrent writes under the same guard win', async () => {
    const store = await open();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => store.putUnless(['a'], [entry('a', [i]), entry(`by ${i}`, [i])])),
    );
    const winners = answers.flatMap((answer, i) => (answer === undefined ? [i] : []));
    expect(winners).toHaveLength(1);
    const won = bytes(winners[0]!);
    expect(answers.filter((answer) => answer !== undefined)).toEqual(
      Array.from({ length: 19 }, () => ({ at: 0, value: won })),
    );
    const written = await store.getMany(['a', ...answers.map((_, i) => `by ${i}`)]);
    expect(written.filter((value) => value !== undefined)).toEqual([won, won]);
  });

  it('deletes only the given keys, and ignores missing ones', async () => {
    const store = await open();
    await store.putMany([entry('a', [1]), entry('b', [2]), entry('c', [3])]);
    await store.delete(['a', 'nothing', 'c', 'a']);
    expect(await store.getMany(['a', 'b', 'c'])).toEqual([undefined, bytes(2), undefined]);
  });

  it('accepts 50 concurrent puts', async () => {
    const store = await open();
    const numbers = Array.from({ length: 50 }, (_, i) => i);
    await Promise.all(numbers.map((i) => store.putMany([entry(`k${i}`, [i]), entry(`again${i}`, [i])])));
    expect(await store.getMany(numbers.map((i) => `k${i}`))).toEqual(numbers.map((i) => bytes(i)));
  });

  it('leaves the last of several puts of one key, awaited or not', async () => {
    const store = await open();
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.putMany([entry('a', [i])])));
    expect(await store.get('a')).toEqual(bytes(19));
  });
}

function copying({ open }: Setting): void {
  it("keeps copies: changes to the caller's arrays have no effect", async () => {
    const store = await open();
    const mine = new Uint8Array([1, 2, 3]);
    const put = store.putMany([{ key: 'a', value: mine, expiresAt: undefined }]);
    const another = store.putUnless(['none'], [{ key: 'b', value: mine, expiresAt: undefined }]);
    mine.fill(9);
    await Promise.all([put, another]);
    expect(await store.get('b')).toEqual(bytes(1, 2, 3));
    (await store.get('a'))?.fill(8);
    (await store.getMany(['a']))[0]?.fill(7);
    (await store.getFirst(['a']))?.value.fill(6);
    expect(await store.get('a')).toEqual(bytes(1, 2, 3));
  });

  it('stores exactly the given view, also of a larger buffer', async () => {
    const store = await open();
    const view = new Uint8Array([9, 1, 2, 3, 9]).subarray(1, 4);
    await store.putMany([{ key: 'a', value: view, expiresAt: undefined }]);
    expect(await store.get('a')).toEqual(bytes(1, 2, 3));
  });
}

function content({ open }: Setting): void {
  it('keeps empty values and values of 5 MB', async () => {
    const store = await open();
    const large = Uint8Array.from({ length: 5_000_000 }, (_, i) => (i * 31) % 251);
    await store.putMany([entry('none', []), { key: 'large', value: large, expiresAt: undefined }]);
    expect(await store.get('none')).toEqual(bytes());
    expect(same(await store.get('large'), large)).toBe(true);
    const [none, again] = await store.getMany(['none', 'large']);
    expect(none).toEqual(bytes());
    expect(same(again, large)).toBe(true);
  });

  it('keeps awkward keys apart', async () => {
    const store = await open();
    await store.putMany(awkwardKeys.map((key, i) => entry(key, [i])));
    expect(await store.getMany(awkwardKeys)).toEqual(awkwardKeys.map((_, i) => bytes(i)));
    for (const [i, key] of awkwardKeys.entries()) expect(await store.get(key)).toEqual(bytes(i));
    await store.delete(awkwardKeys.slice(1));
    expect((await store.getMany(awkwardKeys)).filter((value) => value !== undefined)).toEqual([bytes(0)]);
  });

  it('returns any bytes under any key', async () => {
    const store = await open();
    const pairs = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), fc.uint8Array()), {
      selector: ([key]) => key,
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(pairs, async (wanted) => {
        await store.putMany(wanted.map(([key, value]) => ({ key, value, expiresAt: undefined })));
        expect(await store.getMany(wanted.map(([key]) => key))).toEqual(wanted.map(([, value]) => value));
      }),
      { numRuns: 50 },
    );
  });
}

function closing({ open }: Setting): void {
  it('rejects every call after close with store-failed; closing twice is fine', async () => {
    const store = await open();
    await store.putMany([entry('a', [1])]);
    await Promise.all([store.close(), store.close()]);
    await store.close();
    const failed = { name: 'LeporelloError', code: 'store-failed' };
    await expect(store.get('a')).rejects.toMatchObject(failed);
    await expect(store.getMany(['a'])).rejects.toMatchObject(failed);
    await expect(store.getFirst(['a'])).rejects.toMatchObject(failed);
    await expect(store.putMany([entry('a', [1])])).rejects.toMatchObject(failed);
    await expect(store.putMany([])).rejects.toMatchObject(failed);
    await expect(store.putUnless(['b'], [entry('a', [1])])).rejects.toMatchObject(failed);
    await expect(store.touch(['a'], 2_000_000)).rejects.toMatchObject(failed);
    await expect(store.delete(['a'])).rejects.toMatchObject(failed);
  });
}

/** Compares values that are too long for vitest's own comparison. */
function same(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && a.length === b.length && a.every((byte, i) => byte === b[i]);
}
