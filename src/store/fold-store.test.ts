import { describe, expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import { inMemoryStore } from './in-memory.ts';
import { createFoldStore } from './fold-store.ts';
import type { FoundFold, FoldStore } from './folds.ts';
import type { Store } from './store.ts';
import { createEncryptedStore } from './encrypted-store.ts';

const secret = new Uint8Array(32).fill(1);
const open = (store: Store = inMemoryStore()): FoldStore =>
  createFoldStore({ encryptedStore: createEncryptedStore({ store, secret }) });

/** Returns prefix hashes of a conversation whose messages are letters: conversations share hashes as far as they share letters. */
const links = (letters: string): readonly string[] =>
  Array.from({ length: letters.length + 1 }, (_, at) => `l-${letters.slice(0, at)}`);

const newest = async (foldStore: FoldStore, letters: string, tenant = 't'): Promise<FoundFold | undefined> =>
  (await foldStore.find(tenant, links(letters))).folds[0];

const drop = (message: number): Edit => ({ kind: 'drop-message', message, memory: `mem_${message}` });
const fold = (...messages: number[]) => ({ edits: messages.map(drop), foldingDisabled: false });
const made = (length: number, ...messages: number[]) => ({
  length,
  ...fold(...messages),
  id: expect.any(String) as string,
});

describe('the fold store', () => {
  it('finds a fold for every conversation that continues the one it was made on', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcdef'), fold(0, 1), { from: 2 });
    const found = { fold: made(6, 0, 1), matched: 6 };
    expect(await newest(foldStore, 'abcdef')).toEqual(found);
    expect(await newest(foldStore, 'abcdefghijk')).toEqual(found);
  });

  it('finds the newest of several folds', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcd'), fold(0), { from: 2 });
    await foldStore.record('t', links('abcdefgh'), fold(0, 4), { from: 5 });
    expect((await newest(foldStore, 'abcdefghi'))?.fold.length).toBe(8);
    expect((await newest(foldStore, 'abcdexy'))?.fold).toEqual(made(8, 0, 4));
    expect((await newest(foldStore, 'abcdxy'))?.fold).toEqual(made(4, 0));
  });

  it('finds nothing for a conversation that ends before the fold was made', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcdef'), fold(0, 1), { from: 2 });
    for (const shorter of ['abcde', 'abcd', 'abc', 'ab', 'a', ''])
      expect(await newest(foldStore, shorter)).toBeUndefined();
    // Looking up a shorter prefix does not hide the fold from a longer one.
    expect((await newest(foldStore, 'abcdefg'))?.matched).toBe(6);
  });

  it('finds a fold when only the newest messages differ, and says how many messages match', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcdef'), fold(0, 1), { from: 2 });
    expect((await newest(foldStore, 'abcdeX'))?.matched).toBe(5);
    expect(await newest(foldStore, 'aXcdef')).toBeUndefined();
  });

  it('uses the previous fold for a request that was sent before the newest fold', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcd'), fold(0), { from: 2 });
    await foldStore.record('t', links('abcdefgh'), fold(0, 4), { from: 5 });
    expect((await newest(foldStore, 'abcdefg'))?.fold.length).toBe(4);
  });

  it('lets the caller write the fold with other records, and knows the fold only after that write', async () => {
    const store = inMemoryStore();
    const encryptedStore = createEncryptedStore({ store, secret });
    const foldStore = open(store);
    const failing = () => Promise.reject(new Error('the store is down'));
    const record = foldStore.record('t', links('abc'), fold(0), { from: 1, write: failing });
    await expect(record).rejects.toThrow('the store is down');
    expect(await newest(foldStore, 'abcd')).toBeUndefined();
    const original = new Uint8Array([1, 2, 3]);
    const id = encryptedStore.idOf('t', original);
    await foldStore.record('t', links('abc'), fold(0), {
      from: 1,
      write: (beside) => encryptedStore.keep('t', [{ id, original }], beside),
    });
    expect((await newest(open(store), 'abcd'))?.fold).toEqual(made(3, 0));
    expect(await encryptedStore.recall('t', id)).toEqual({ status: 'found', original });
  });

  it('finds what a request without a fold was sent with from all fold stores of one store, and lets no later fold replace it', async () => {
    for (const isShared of [true, false]) {
      const store: Store = { ...inMemoryStore(), isShared };
      const here = open(store);
      await here.markSent('t', links('abc'), undefined, { at: 5, limit: 100 });
      const sent = { folds: [], sentAs: { limit: 100 }, lastSent: { matched: 3, at: 5 } };
      expect(await here.find('t', links('abc'))).toEqual(sent);
      expect(await open(store).find('t', links('abc'))).toEqual(sent);
      for (const one of [here, open(store)])
        expect(await one.record('t', links('abc'), fold(0), { wins: 'any record' })).toEqual({
          alreadySent: sent,
        });
    }
  });

  it('reads a long conversation in one round trip, with at most one old fold', async () => {
    const store = inMemoryStore();
    const asked: string[] = [];
    const counted: Store = {
      ...store,
      getMany: (keys) => (asked.push(`${keys.length} keys`), store.getMany(keys)),
      getFirst: (keys) => (asked.push(`the first of ${keys.length}`), store.getFirst(keys)),
    };
    await open(store).record('t', links('abc'), fold(0), { from: 1 });
    await open(store).record('t', links('abcdef'), fold(0, 3), { from: 4 });
    const foldStore = open(counted);
    const found = await foldStore.find('t', links(`abcdef${'x'.repeat(300)}`));
    expect(asked).toEqual(['the first of 484', '192 keys']);
    expect(found.folds.map(({ matched, fold: { length } }) => [matched, length])).toEqual([[6, 6]]);
    // Known prefixes are not read again.
    expect((await newest(foldStore, `abcdef${'x'.repeat(302)}`))?.matched).toBe(6);
    expect(asked.slice(2)).toEqual(['the first of 2', '9 keys']);
  });

  it('also finds the folds before the newest, in case that one belongs to another conversation', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abcd'), fold(0), { from: 2 });
    await foldStore.record('t', links('abcdefgh'), fold(0, 4), { from: 5 });
    const found = await foldStore.find('t', links('abcdefghi'));
    expect([...new Set(found.folds.map((one) => one.fold.length))]).toEqual([8, 4]);
  });

  it('keeps tenants apart', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abc'), fold(0), { from: 1 });
    expect(await newest(foldStore, 'abc', 'u')).toBeUndefined();
  });

  it('finds a fold in another process, also after a search there found nothing', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    expect(await newest(other, 'abc')).toBeUndefined();
    await one.record('t', links('abcde'), fold(1), { from: 2 });
    expect((await newest(other, 'abcdefg'))?.fold).toEqual(made(5, 1));
  });

  it('finds a fold far back in a long conversation', async () => {
    const store = inMemoryStore();
    const long = 'x'.repeat(300);
    await open(store).record('t', links('abc'), fold(0), { from: 1 });
    expect((await newest(open(store), `abc${long}`))?.matched).toBe(3);
  });

  it('remembers conversations whose folding is disabled', async () => {
    const foldStore = open();
    await foldStore.record('t', links('abc'), fold(0), { from: 2 });
    await foldStore.record('t', links('abcde'), { edits: [], foldingDisabled: true }, { from: 5 });
    expect((await newest(foldStore, 'abcdef'))?.fold.foldingDisabled).toBe(true);
    expect((await newest(foldStore, 'abcX'))?.fold.foldingDisabled).toBe(false);
  });

  it('writes records with the field names of earlier releases, and reads them', async () => {
    const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret });
    const disabled = { edits: [drop(0)], foldingDisabled: true, foldingDisabledSince: 7 };
    await createFoldStore({ encryptedStore }).record('t', links('abc'), disabled, { from: 3 });
    const [record] = await encryptedStore.getSealedMany('t', ['fold/l-abc']);
    const text = new TextDecoder().decode(record);
    expect(text.slice(0, text.indexOf(',"id":'))).toBe(
      '{"version":1,"length":3,"edits":[{"kind":"drop-message","message":0,"memory":"mem_0"}],"alone":true,"aloneSince":7',
    );
    expect((await newest(createFoldStore({ encryptedStore }), 'abc'))?.fold).toMatchObject(disabled);
  });

  describe('with several instances', () => {
    const markSent = (foldStore: FoldStore, letters: string, found?: FoundFold) =>
      foldStore.markSent('t', links(letters), found, { at: 1, limit: 9 });

    it('sends a request again as before, whatever was folded since on conversations with the same prefix', async () => {
      const store = inMemoryStore();
      const [one, other] = [open(store), open(store)];
      await one.find('t', links('abcdX'));
      await markSent(one, 'abcdX');
      await one.record('t', links('abcde'), fold(0), { from: 2 });
      for (const foldStore of [one, other, open(store)]) {
        expect(await foldStore.find('t', links('abcdX'))).toEqual({
          folds: [],
          sentAs: { limit: 9 },
          lastSent: { matched: 5, at: 1 },
        });
        // A request that continues it does not use that fold either.
        expect((await foldStore.find('t', links('abcdXyz'))).folds).toEqual([]);
        // A new branch after the fold does.
        expect((await newest(foldStore, 'abcdY'))?.fold).toEqual(made(5, 0));
      }
    });

    it('finds a request that it knew only as a prefix of another', async () => {
      const store = inMemoryStore();
      const [one, other] = [open(store), open(store)];
      await one.find('t', links('abX'));
      await markSent(other, 'ab');
      const sent = { matched: 2, at: 1 };
      expect((await one.find('t', links('abY'))).lastSent).toEqual(sent);
      const fresh = open(store);
      await fresh.find('t', links('aZ'));
      await markSent(other, 'a');
      expect((await fresh.find('t', links('a'))).lastSent).toEqual({ matched: 1, at: 1 });
    });

    it('continues from the fold that a request was sent with', async () => {
      const store = inMemoryStore();
      const one = open(store);
      await one.record('t', links('abc'), fold(0), { from: 1 });
      await markSent(one, 'abcde', await newest(one, 'abcde'));
      const { folds, sentAs, lastSent } = await open(store).find('t', links('abcdefg'));
      expect(folds[0]).toEqual({ fold: made(3, 0), matched: 3 });
      expect({ sentAs, lastSent }).toEqual({ sentAs: undefined, lastSent: { matched: 5, at: 1 } });
    });

    it('keeps the fold that a branch took from another branch, whatever that branch folds later', async () => {
      const store = inMemoryStore();
      const one = open(store);
      await markSent(one, 'abc');
      await one.record('t', links('abcde'), fold(0), { from: 2 });
      await markSent(one, 'abcXY', await newest(one, 'abcXY'));
      await one.record('t', links('abcdefg'), fold(0, 1), { from: 2 });
      for (const foldStore of [one, open(store)])
        expect((await newest(foldStore, 'abcXYZ'))?.fold).toEqual({ ...made(5, 0), at: 1, limit: 9 });
    });

    it('keeps the first of two folds of one request, and returns it for the second', async () => {
      const store = inMemoryStore();
      const [one, other] = [open(store), open(store)];
      for (const foldStore of [one, other]) await foldStore.find('t', links('abc'));
      expect(await one.record('t', links('abc'), fold(0), { from: 1, wins: 'another fold' })).toBe(
        'recorded',
      );
      const answer = await other.record('t', links('abc'), fold(1), { from: 1, wins: 'any record' });
      expect(answer).toMatchObject({ alreadySent: { folds: [{ fold: made(3, 0), matched: 3 }] } });
      for (const foldStore of [one, other, open(store)])
        expect((await newest(foldStore, 'abcd'))?.fold).toEqual(made(3, 0));
    });

    it('lets an optional fold yield to a request sent without a fold, and a forced fold not', async () => {
      const store = inMemoryStore();
      const [one, other] = [open(store), open(store)];
      for (const foldStore of [one, other]) await foldStore.find('t', links('abc'));
      await markSent(one, 'abc');
      const wished = await other.record('t', links('abc'), fold(1), { from: 1, wins: 'any record' });
      expect(wished).toMatchObject({ alreadySent: { folds: [], sentAs: { limit: 9 } } });
      expect(await other.record('t', links('abc'), fold(1), { from: 1, wins: 'another fold' })).toBe(
        'recorded',
      );
      for (const foldStore of [one, other])
        expect((await newest(foldStore, 'abcd'))?.fold).toEqual(made(3, 1));
    });

    it('finds a fold that replaced one that its provider rejected', async () => {
      const store = inMemoryStore();
      const [one, other] = [open(store), open(store)];
      await one.record('t', links('abc'), fold(0), { from: 1 });
      expect((await newest(other, 'abc'))?.fold).toEqual(made(3, 0));
      await one.record('t', links('abc'), fold(0, 1), { from: 2 });
      expect((await newest(other, 'abcde'))?.fold).toEqual(made(3, 0, 1));
    });
  });
});
