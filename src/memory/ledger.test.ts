import { describe, expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import { inMemoryStore } from './in-memory.ts';
import { createLedger, type FoundFold, type Ledger } from './ledger.ts';
import type { Store } from './store.ts';
import { createVault } from './vault.ts';

const secret = new Uint8Array(32).fill(1);
const open = (store: Store = inMemoryStore()): Ledger =>
  createLedger({ vault: createVault({ store, secret }) });

/** Links of a conversation of messages named by letters: two conversations share links as far as they share letters. */
const links = (letters: string): readonly string[] =>
  Array.from({ length: letters.length + 1 }, (_, at) => `l-${letters.slice(0, at)}`);

const newest = async (ledger: Ledger, letters: string, tenant = 't'): Promise<FoundFold | undefined> =>
  (await ledger.find(tenant, links(letters)))[0];

const drop = (message: number): Edit => ({ kind: 'drop-message', message, memory: `mem_${message}` });
const fold = (...messages: number[]) => ({ edits: messages.map(drop), alone: false });

describe('the ledger', () => {
  it('finds a fold for every conversation that goes on from where it was made', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    const found = { fold: { length: 6, ...fold(0, 1) }, matched: 6 };
    expect(await newest(ledger, 'abcdef')).toEqual(found);
    expect(await newest(ledger, 'abcdefghijk')).toEqual(found);
  });

  it('finds the newest of several', async () => {
    const ledger = open();
    await ledger.record('t', links('abcd'), 2, fold(0));
    await ledger.record('t', links('abcdefgh'), 5, fold(0, 4));
    expect((await newest(ledger, 'abcdefghi'))?.fold.length).toBe(8);
    expect((await newest(ledger, 'abcdexy'))?.fold).toEqual({ length: 8, ...fold(0, 4) });
    expect((await newest(ledger, 'abcdxy'))?.fold).toEqual({ length: 4, ...fold(0) });
  });

  it('finds nothing for a conversation that ends where the fold was not made yet', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    for (const shorter of ['abcde', 'abcd', 'abc', 'ab', 'a', ''])
      expect(await newest(ledger, shorter)).toBeUndefined();
    // Nor does a look at a shorter one hide the fold from the longer.
    expect((await newest(ledger, 'abcdefg'))?.matched).toBe(6);
  });

  it('finds it where only the newest messages differ, and says how many are the same', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    expect((await newest(ledger, 'abcdeX'))?.matched).toBe(5);
    expect(await newest(ledger, 'aXcdef')).toBeUndefined();
  });

  it('goes back to the fold before for a request that was sent before the newest', async () => {
    const ledger = open();
    await ledger.record('t', links('abcd'), 2, fold(0));
    await ledger.record('t', links('abcdefgh'), 5, fold(0, 4));
    expect((await newest(ledger, 'abcdefg'))?.fold.length).toBe(4);
  });

  it('leaves it to the caller what a fold is written with, and knows it only once that is done', async () => {
    const store = inMemoryStore();
    const vault = createVault({ store, secret });
    const ledger = open(store);
    const failing = () => Promise.reject(new Error('the store is down'));
    await expect(ledger.record('t', links('abc'), 1, fold(0), failing)).rejects.toThrow('the store is down');
    expect(await newest(ledger, 'abcd')).toBeUndefined();
    const original = new Uint8Array([1, 2, 3]);
    const id = vault.idOf('t', original);
    await ledger.record('t', links('abc'), 1, fold(0), (record) =>
      vault.keep('t', [{ id, original }], record),
    );
    expect((await newest(open(store), 'abcd'))?.fold).toEqual({ length: 3, ...fold(0) });
    expect(await vault.recall('t', id)).toEqual({ status: 'found', original });
  });

  it('asks the store for a long conversation at once, and for no more folds of long ago than one', async () => {
    const store = inMemoryStore();
    const asked: string[] = [];
    const counted: Store = {
      ...store,
      getMany: (keys) => (asked.push(`${keys.length} links`), store.getMany(keys)),
      getFirst: (keys) => (asked.push(`the first of ${keys.length}`), store.getFirst(keys)),
    };
    await open(store).record('t', links('abc'), 1, fold(0));
    await open(store).record('t', links('abcdef'), 4, fold(0, 3));
    const ledger = open(counted);
    const found = ledger.find('t', links(`abcdef${'x'.repeat(300)}`));
    expect(asked).toEqual(['64 links', 'the first of 242']);
    expect((await found).map(({ matched, fold: { length } }) => [matched, length])).toEqual([[6, 6]]);
    // What is known of it is not asked again.
    expect((await newest(ledger, `abcdef${'x'.repeat(302)}`))?.matched).toBe(6);
    expect(asked.slice(2)).toEqual(['2 links']);
  });

  it('has those before the newest at hand, for when it was made of another conversation', async () => {
    const ledger = open();
    await ledger.record('t', links('abcd'), 2, fold(0));
    await ledger.record('t', links('abcdefgh'), 5, fold(0, 4));
    const found = await ledger.find('t', links('abcdefghi'));
    expect([...new Set(found.map((one) => one.fold.length))]).toEqual([8, 4]);
  });

  it('keeps tenants apart', async () => {
    const ledger = open();
    await ledger.record('t', links('abc'), 1, fold(0));
    expect(await newest(ledger, 'abc', 'u')).toBeUndefined();
  });

  it('is the same in another process, also after that one looked in vain', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    expect(await newest(other, 'abc')).toBeUndefined();
    await one.record('t', links('abcde'), 2, fold(1));
    expect((await newest(other, 'abcdefg'))?.fold).toEqual({ length: 5, ...fold(1) });
  });

  it('finds a fold far back in a long conversation', async () => {
    const store = inMemoryStore();
    const long = 'x'.repeat(300);
    await open(store).record('t', links('abc'), 1, fold(0));
    expect((await newest(open(store), `abc${long}`))?.matched).toBe(3);
  });

  it('remembers conversations that are to be left alone', async () => {
    const ledger = open();
    await ledger.record('t', links('abc'), 2, fold(0));
    await ledger.record('t', links('abcde'), 5, { edits: [], alone: true });
    expect((await newest(ledger, 'abcdef'))?.fold.alone).toBe(true);
    expect((await newest(ledger, 'abcX'))?.fold.alone).toBe(false);
  });
});
