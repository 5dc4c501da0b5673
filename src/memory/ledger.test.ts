import { describe, expect, it } from 'vitest';
import type { Edit } from '../conversation/edit.ts';
import { inMemoryStore } from './in-memory.ts';
import { createLedger, type Ledger } from './ledger.ts';
import type { Store } from './store.ts';
import { createVault } from './vault.ts';

const secret = new Uint8Array(32).fill(1);
const open = (store: Store = inMemoryStore()): Ledger =>
  createLedger({ vault: createVault({ store, secret }) });

/** Links of a conversation of messages named by letters: two conversations share links as far as they share letters. */
const links = (letters: string): readonly string[] =>
  Array.from({ length: letters.length + 1 }, (_, at) => `l-${letters.slice(0, at)}`);

const drop = (message: number): Edit => ({ kind: 'drop-message', message, memory: `mem_${message}` });
const fold = (...messages: number[]) => ({ edits: messages.map(drop), alone: false });

describe('the ledger', () => {
  it('finds a fold for every conversation that goes on from where it was made', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    const found = { fold: { length: 6, ...fold(0, 1) }, matched: 6 };
    expect(await ledger.find('t', links('abcdef'))).toEqual(found);
    expect(await ledger.find('t', links('abcdefghijk'))).toEqual(found);
  });

  it('finds the newest of several', async () => {
    const ledger = open();
    await ledger.record('t', links('abcd'), 2, fold(0));
    await ledger.record('t', links('abcdefgh'), 5, fold(0, 4));
    expect((await ledger.find('t', links('abcdefghi')))?.fold.length).toBe(8);
    expect((await ledger.find('t', links('abcdexy')))?.fold).toEqual({ length: 8, ...fold(0, 4) });
    expect((await ledger.find('t', links('abcdxy')))?.fold).toEqual({ length: 4, ...fold(0) });
  });

  it('finds nothing for a conversation that ends where the fold was not made yet', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    for (const shorter of ['abcde', 'abcd', 'abc', 'ab', 'a', ''])
      expect(await ledger.find('t', links(shorter))).toBeUndefined();
    // Nor does a look at a shorter one hide the fold from the longer.
    expect((await ledger.find('t', links('abcdefg')))?.matched).toBe(6);
  });

  it('finds it where only the newest messages differ, and says how many are the same', async () => {
    const ledger = open();
    await ledger.record('t', links('abcdef'), 2, fold(0, 1));
    expect((await ledger.find('t', links('abcdeX')))?.matched).toBe(5);
    expect(await ledger.find('t', links('aXcdef'))).toBeUndefined();
  });

  it('goes back to the fold before for a request that was sent before the newest', async () => {
    const ledger = open();
    await ledger.record('t', links('abcd'), 2, fold(0));
    await ledger.record('t', links('abcdefgh'), 5, fold(0, 4));
    expect((await ledger.find('t', links('abcdefg')))?.fold.length).toBe(4);
  });

  it('leaves it to the caller what a fold is written with, and knows it only once that is done', async () => {
    const store = inMemoryStore();
    const vault = createVault({ store, secret });
    const ledger = open(store);
    const failing = () => Promise.reject(new Error('the store is down'));
    await expect(ledger.record('t', links('abc'), 1, fold(0), failing)).rejects.toThrow('the store is down');
    expect(await ledger.find('t', links('abcd'))).toBeUndefined();
    const original = new Uint8Array([1, 2, 3]);
    const id = vault.idOf('t', original);
    await ledger.record('t', links('abc'), 1, fold(0), (record) =>
      vault.keep('t', [{ id, original }], record),
    );
    expect((await open(store).find('t', links('abcd')))?.fold).toEqual({ length: 3, ...fold(0) });
    expect(await vault.recall('t', id)).toEqual({ status: 'found', original });
  });

  it('asks the store for a long conversation in two round trips', async () => {
    const store = inMemoryStore();
    let gets = 0;
    const getMany: Store['getMany'] = (keys) => ((gets += 1), store.getMany(keys));
    await open(store).record('t', links('abc'), 1, fold(0));
    expect((await open({ ...store, getMany }).find('t', links(`abc${'x'.repeat(300)}`)))?.matched).toBe(3);
    expect(gets).toBe(2);
  });

  it('keeps tenants apart', async () => {
    const ledger = open();
    await ledger.record('t', links('abc'), 1, fold(0));
    expect(await ledger.find('u', links('abc'))).toBeUndefined();
  });

  it('is the same in another process, also after that one looked in vain', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    expect(await other.find('t', links('abc'))).toBeUndefined();
    await one.record('t', links('abcde'), 2, fold(1));
    expect((await other.find('t', links('abcdefg')))?.fold).toEqual({ length: 5, ...fold(1) });
  });

  it('finds a fold far back in a long conversation', async () => {
    const store = inMemoryStore();
    const long = 'x'.repeat(300);
    await open(store).record('t', links('abc'), 1, fold(0));
    expect((await open(store).find('t', links(`abc${long}`)))?.matched).toBe(3);
  });

  it('remembers conversations that are to be left alone', async () => {
    const ledger = open();
    await ledger.record('t', links('abc'), 2, fold(0));
    await ledger.record('t', links('abcde'), 5, { edits: [], alone: true });
    expect((await ledger.find('t', links('abcdef')))?.fold.alone).toBe(true);
    expect((await ledger.find('t', links('abcX')))?.fold.alone).toBe(false);
  });
});
