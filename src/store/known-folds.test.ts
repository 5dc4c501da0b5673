import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Caches, createCaches } from '../caches.ts';
import { nextTurn } from '../conversation/steps.ts';
import type { Edit } from '../conversation/edit.ts';
import { createEncryptedStore } from './encrypted-store.ts';
import { createFoldStore } from './fold-store.ts';
import type { FoldStore } from './folds.ts';
import { inMemoryStore } from './in-memory.ts';
import { sqliteStore } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

const folder = mkdtempSync(join(tmpdir(), 'leporello-known-folds-'));
let files = 0;
const newFile = (): string => join(folder, `${files++}.db`);
afterAll(() => rmSync(folder, { recursive: true }));

const secret = new Uint8Array(32).fill(1);
const open = (store: Store, caches?: Caches): FoldStore =>
  createFoldStore({ encryptedStore: createEncryptedStore({ store, secret }), caches });
const drop = (message: number): Edit => ({ kind: 'drop-message', message, memory: `mem_${message}` });
const fold = (...messages: number[]) => ({ edits: messages.map(drop), foldingDisabled: false });

describe('a fold far before the newest message', () => {
  const links = (name: string, length: number): readonly string[] =>
    Array.from({ length: length + 1 }, (_, at) => `l-${name}-${at}`);
  const edits = Array.from({ length: 100 }, (_, at) => drop(at));

  /** Folds other conversations, so that the cache drops what was not used lately. */
  async function foldOthers(foldStore: FoldStore, count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      others++;
      await foldStore.record('t', links(`other-${others}`, 110), { edits, foldingDisabled: false });
    }
  }
  let others = 0;

  it('stays in the cache while it is used', async () => {
    let reads = 0;
    const store = inMemoryStore();
    const counting: Store = {
      ...store,
      getMany(keys) {
        reads += keys.filter((key) => key.endsWith('/l-mine-110')).length;
        return store.getMany(keys);
      },
    };
    const foldStore = open(counting, createCaches(1));
    await foldStore.record('t', links('mine', 110), { edits, foldingDisabled: false });
    await foldStore.markSent(
      't',
      links('mine', 300),
      (await foldStore.find('t', links('mine', 300))).folds[0],
      {
        at: 1,
      },
    );
    reads = 0;
    for (let length = 302; length < 400; length += 2) {
      const { folds } = await foldStore.find('t', links('mine', length));
      expect(folds[0]?.fold.edits).toHaveLength(100);
      await foldStore.markSent('t', links('mine', length), folds[0], { at: length });
      await foldOthers(foldStore, 3);
    }
    expect(reads).toBe(0);
  });

  it('is read again when the cache has dropped it, alone or with all else', async () => {
    for (let count = 1; count <= 40; count++) {
      const foldStore = open(inMemoryStore(), createCaches(1));
      await foldStore.record('t', links('mine', 110), { edits, foldingDisabled: false });
      const { folds } = await foldStore.find('t', links('mine', 300));
      await foldStore.markSent('t', links('mine', 300), folds[0], { at: 1 });
      await foldOthers(foldStore, count);
      const again = await foldStore.find('t', links('mine', 302));
      expect(again.folds[0]?.fold.edits, `after ${count} other folds`).toHaveLength(100);
    }
  });
});

describe.each([false, true])('a fold store on a file (isShared: %s)', (isShared) => {
  const links = (letters: string): readonly string[] =>
    Array.from({ length: letters.length + 1 }, (_, at) => `l-${letters.slice(0, at)}`);

  it('knows the fold that it recorded while an older look-up was running', async () => {
    const sqlite = await sqliteStore({ file: newFile(), isShared });
    const anotherProcess: Store = { ...sqlite, isShared: true };
    await open(anotherProcess).record('t', links('abcd'), fold(0), { from: 2 });
    const { promise, resolve } = Promise.withResolvers<void>();
    let gate: Promise<void> | undefined = promise;
    const slow: Store = {
      ...sqlite,
      async getMany(keys) {
        const values = await sqlite.getMany(keys);
        await gate;
        return values;
      },
    };
    const foldStore = open(slow);
    const looking = foldStore.find('t', links('abcX'));
    await nextTurn();
    await foldStore.record('t', links('abcdefgh'), fold(0, 1), { from: 2 });
    gate = undefined;
    resolve();
    await looking;
    for (const one of [foldStore, open(anotherProcess)])
      expect((await one.find('t', links('abcY'))).folds[0]?.fold.edits).toEqual([drop(0), drop(1)]);
    await sqlite.close();
  });

  it('keeps the fold of a request when an equal request is marked as sent without it', async () => {
    const sqlite = await sqliteStore({ file: newFile(), isShared });
    const foldStore = open(sqlite);
    await foldStore.markSent('t', links('ab'), undefined, { at: 1 });
    await foldStore.record('t', links('abcdef'), fold(0), { from: 2 });
    const [, equal] = [await foldStore.find('t', links('abcX')), await foldStore.find('t', links('abcX'))];
    const options = { wins: 'any record', from: 2 } as const;
    expect(await foldStore.record('t', links('abcX'), fold(0, 1), options)).toBe('recorded');
    await foldStore.markSent('t', links('abcX'), equal.folds[0], { at: 2 });
    const { folds } = await foldStore.find('t', links('abcXY'));
    expect(folds[0]?.fold.edits).toEqual([drop(0), drop(1)]);
    await sqlite.close();
  });

  it('leaves no fold in the store when an equal request was sent without it while the store wrote it', async () => {
    const sqlite = await sqliteStore({ file: newFile(), isShared });
    const written = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const slow: Store = {
      ...sqlite,
      async putUnless(...wanted) {
        const found = await sqlite.putUnless(...wanted);
        written.resolve();
        await goOn.promise;
        return found;
      },
    };
    const foldStore = open(slow);
    await foldStore.find('t', links('abcX'));
    const recording = foldStore.record('t', links('abcX'), fold(0, 1), { wins: 'any record', from: 2 });
    await written.promise;
    const marking = foldStore.markSent('t', links('abcX'), undefined, { at: 2 });
    goOn.resolve();
    expect(await recording).toMatchObject({ alreadySent: { folds: [] } });
    await marking;
    for (const one of [foldStore, open(sqlite)])
      for (const name of ['abcX', 'abcXY', 'abcY'])
        expect((await one.find('t', links(name))).folds).toEqual([]);
    await sqlite.close();
  });
});
