import { describe, expect, it } from 'vitest';
import { storeSuite } from '../../test/support/store-suite.ts';
import { inMemoryStore } from './in-memory.ts';

storeSuite('in-memory', { open: (clock) => inMemoryStore({ clock }) });

describe('the in-memory store', () => {
  it('removes the least recently used entries when it is full', async () => {
    const store = inMemoryStore({ maxBytes: 6_000 });
    await store.putMany([put('a', 1_000), put('b', 1_000), put('c', 1_000)]);
    await store.get('a');
    await store.putMany([put('d', 2_000)]);
    const left = await store.getMany(['a', 'b', 'c', 'd']);
    expect(left.map((value) => value?.length)).toEqual([1_000, undefined, 1_000, 2_000]);
  });

  it('rejects entries that do not fit at once, and keeps the existing ones', async () => {
    const store = inMemoryStore({ maxBytes: 5_000 });
    await store.putMany([put('a', 1_000)]);
    await expect(store.putMany([put('a', 2_000), put('b', 3_000)])).rejects.toMatchObject({
      code: 'store-failed',
      message:
        'The in-memory store holds at most 5000 bytes, but these entries need 5884: raise maxBytes or use a store on disk.',
    });
    const left = await store.getMany(['a', 'b']);
    expect(left.map((value) => value?.length)).toEqual([1_000, undefined]);
  });
});

function put(key: string, bytes: number) {
  return { key, value: new Uint8Array(bytes), expiresAt: undefined };
}
