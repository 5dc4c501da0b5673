import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { storeSuite } from '../../test/support/store-suite.ts';
import { nextTurn } from '../conversation/steps.ts';
import { withResolvers } from '../es2024.ts';
import { sqliteStore } from './sqlite/sqlite.ts';
import type { Store, StoreEntry } from './store.ts';
import { openStoreView } from './wrapped-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'leporello-transient-'));
let files = 0;
const newFile = (): string => join(folder, `${files++}.db`);
afterAll(() => rmSync(folder, { recursive: true }));

let suiteFile = '';
storeSuite('sqlite with transient entries', {
  async open(clock) {
    suiteFile = newFile();
    return openStoreView(await sqliteStore({ file: suiteFile, clock }), { clock });
  },
  reopen: async (clock) => openStoreView(await sqliteStore({ file: suiteFile, clock }), { clock }),
});

const entry = (key: string, byte: number, isTransient = false): StoreEntry => ({
  key,
  value: new Uint8Array([byte]),
  expiresAt: undefined,
  isTransient,
});

/** Opens a file, and gives the test both what the file has and what a user of the store sees. */
async function opened() {
  const file: Store = await sqliteStore({ file: newFile() });
  return { file, seen: openStoreView(file), [Symbol.asyncDispose]: () => file.close() };
}

/** Returns the same store, whose guarded write of one key waits for `answer`. */
function answeringLate(behind: Store, key: string) {
  const { promise, resolve: answer } = withResolvers<void>();
  const store: Store = {
    ...behind,
    isShared: false,
    async putUnless(guards, entries) {
      if (entries.some((one) => one.key === key)) await promise;
      return behind.putUnless(guards, entries);
    },
  };
  return { store, answer };
}

describe('a transient entry', () => {
  it('is found by all users of the store, and not written to it', async () => {
    await using both = await opened();
    await both.seen.putMany([entry('durable', 1), entry('transient', 2, true)]);
    expect(await both.file.getMany(['durable', 'transient'])).toEqual([new Uint8Array([1]), undefined]);
    const found = [new Uint8Array([1]), new Uint8Array([2])];
    expect(await both.seen.getMany(['durable', 'transient'])).toEqual(found);
    expect(await openStoreView(both.file).getMany(['durable', 'transient'])).toEqual(found);
    expect(await both.seen.getFirst(['none', 'transient', 'durable'])).toEqual({ at: 1, value: found[1] });
    expect(await both.seen.getFirst(['durable', 'transient'])).toEqual({ at: 0, value: found[0] });
  });

  it('guards writes, and is guarded, like any other', async () => {
    await using both = await opened();
    const one = new Uint8Array([1]);
    expect(await both.seen.putUnless(['a', 'b'], [entry('b', 1, true)])).toBeUndefined();
    expect(await both.seen.putUnless(['a', 'b'], [entry('a', 2)])).toEqual({ at: 1, value: one });
    expect(await both.seen.putUnless(['c'], [entry('c', 1)])).toBeUndefined();
    expect(await both.seen.putUnless(['x', 'c', 'b'], [entry('x', 2, true)])).toEqual({ at: 1, value: one });
    expect(await both.seen.getMany(['a', 'x'])).toEqual([undefined, undefined]);
  });

  it('is written once by several writers at once', async () => {
    await using both = await opened();
    const writes = [1, 2, 3, 4].map((byte) => both.seen.putUnless(['k'], [entry('k', byte, byte % 2 === 0)]));
    const results = await Promise.all(writes);
    expect(results.filter((result) => result === undefined)).toHaveLength(1);
    expect(await both.seen.get('k')).toEqual(new Uint8Array([1]));
  });

  it('is made when another user of the store reads it', async () => {
    await using both = await opened();
    let made = 0;
    const value = new Uint8Array([7]);
    const expiresAt = Date.now() + 60_000;
    const make = async () => ((made += 1), value);
    expect(both.seen.keepTransient?.('k', { expiresAt, value: make })).toBe(true);
    expect(made).toBe(0);
    const other = openStoreView(both.file);
    expect(await other.putUnless(['k'], [entry('k', 1)])).toEqual({ at: 0, value });
    expect(await other.getMany(['k', 'none'])).toEqual([value, undefined]);
    expect(made).toBe(1);
    await other.putMany([entry('k', 2)]);
    expect(await both.seen.get('k')).toEqual(new Uint8Array([2]));
  });

  it('does not swallow a guarded write when it expires meanwhile', async () => {
    await using both = await opened();
    const times = [1_000, 1_001];
    const view = openStoreView(both.file, { clock: () => times.shift() ?? 1_001 });
    view.keepTransient?.('guard', { expiresAt: 1_001, value: async () => new Uint8Array([1]) });
    expect(await view.putUnless(['guard'], [entry('k', 2)])).toBeUndefined();
    expect(await both.file.get('k')).toEqual(new Uint8Array([2]));
  });

  it('does not wait for a write that hangs and concerns other keys', async () => {
    await using both = await opened();
    const { store, answer } = answeringLate(both.file, 'slow');
    const seen = openStoreView(store);
    const hanging = seen.putUnless(['slow'], [entry('slow', 1)]);
    expect(await openStoreView(store).putUnless(['k'], [entry('k', 2)])).toBeUndefined();
    answer();
    expect(await hanging).toBeUndefined();
    expect(await seen.getMany(['slow', 'k'])).toEqual([new Uint8Array([1]), new Uint8Array([2])]);
  });

  it('waits for an earlier write of the same key at most until the deadline', async () => {
    await using both = await opened();
    const { store, answer } = answeringLate(both.file, 'slow');
    const passes: (() => void)[] = [];
    const startTimer = (ms: number, pass: () => void) => {
      expect(ms).toBe(70);
      passes.push(pass);
      return { stop: () => {} };
    };
    const seen = openStoreView(store, { deadlineMs: 70, startTimer });
    const hanging = seen.putUnless(['slow'], [entry('slow', 1), entry('k', 1, true)]);
    const next = seen.putUnless(['k'], [entry('k', 2, true)]);
    await nextTurn();
    expect(await seen.get('k')).toBeUndefined();
    passes[0]!();
    expect(await next).toBeUndefined();
    answer();
    expect(await hanging).toBeUndefined();
    // The write that was overtaken does not replace what was written meanwhile.
    expect(await seen.getMany(['slow', 'k'])).toEqual([new Uint8Array([1]), new Uint8Array([2])]);
  });

  it('is written to the store once another process uses it', async () => {
    await using both = await opened();
    const shared: Store = { ...both.file, isShared: true };
    expect(openStoreView(shared)).toBe(shared);
    await shared.putMany([entry('transient', 2, true)]);
    expect(await both.file.get('transient')).toEqual(new Uint8Array([2]));
  });
});

describe('a view of a store', () => {
  it('counts what others have written, and does not know it once another process uses the store', async () => {
    const file = newFile();
    const store = await sqliteStore({ file });
    const [one, other] = [openStoreView(store), openStoreView(store)];
    await one.putMany([entry('a', 1)]);
    await one.putUnless(['b'], [entry('b', 1, true)]);
    one.keepTransient?.('c', { expiresAt: Date.now() + 60_000, value: async () => new Uint8Array() });
    expect([one.writesByOthers, other.writesByOthers]).toEqual([0, 3]);
    await other.delete(['a']);
    expect([one.writesByOthers, other.writesByOthers]).toEqual([1, 3]);
    const anotherProcess = await sqliteStore({ file });
    await anotherProcess.putMany([entry('d', 1)]);
    await nextTurn();
    expect([one.writesByOthers, other.writesByOthers]).toEqual([undefined, undefined]);
    expect(one.keepTransient?.('e', { expiresAt: 0, value: async () => new Uint8Array() })).toBe(false);
    await anotherProcess.close();
    await store.close();
  });
});
