import { describe, expect, it } from 'vitest';
import { createEncryptedStore } from './encrypted-store.ts';
import { inMemoryStore } from './in-memory.ts';
import { createReceiptStore } from './receipt-store.ts';

const day = 24 * 60 * 60 * 1_000;

/** Receipt stores of several processes over one store. `setDay` sets the time. */
function shared({ maxReceipts = 10 } = {}) {
  let now = 0;
  const clock = () => now;
  const store = inMemoryStore({ clock });
  const written: string[] = [];
  const watched = {
    ...store,
    putUnless: (guards: readonly string[], entries: Parameters<typeof store.putMany>[0]) => {
      written.push(...entries.map(({ key, value }) => `${key} ${new TextDecoder().decode(value)}`));
      return store.putUnless(guards, entries);
    },
  };
  const open = () =>
    createReceiptStore<{ readonly id: string; readonly stub?: string }>({
      encryptedStore: createEncryptedStore({ store: watched, secret: new Uint8Array(32).fill(4), clock }),
      maxReceipts,
    });
  return { open, written, setDay: (to: number) => void (now = to * day) };
}

const named = (...ids: readonly string[]) => ids.map((id) => ({ id }));

describe('stored receipts', () => {
  it('are listed by other processes, the newest first, and found by id', async () => {
    const { open } = shared();
    const one = open();
    await one.add('anna', named('a', 'b'));
    await one.add('anna', [{ id: 'c', stub: '[Folded]' }]);
    const other = open();
    expect(await other.list('anna', 10)).toEqual([{ id: 'c', stub: '[Folded]' }, { id: 'b' }, { id: 'a' }]);
    expect(await other.list('anna', 2)).toEqual([{ id: 'c', stub: '[Folded]' }, { id: 'b' }]);
    expect(await other.get('anna', 'b')).toEqual({ id: 'b' });
  });

  it('are seen by their tenant only', async () => {
    const { open } = shared();
    await open().add('anna', named('a'));
    expect(await open().list('bert', 10)).toEqual([]);
    expect(await open().get('bert', 'a')).toBeUndefined();
  });

  it('of several processes that write at once are all kept', async () => {
    const { open } = shared();
    const [one, other] = [open(), open()];
    await Promise.all([one.add('anna', named('a', 'b')), other.add('anna', named('c', 'd'))]);
    await Promise.all([one.add('anna', named('e')), other.add('anna', named('f'))]);
    const listed = (await open().list('anna', 10)).map(({ id }) => id);
    expect(listed.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('beyond the bound are deleted, the oldest first', async () => {
    const { open } = shared({ maxReceipts: 3 });
    const receipts = open();
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await receipts.add('anna', named(id));
    expect(await receipts.list('anna', 10)).toEqual(named('f', 'e', 'd'));
    expect(await receipts.get('anna', 'a')).toBeUndefined();
    expect(await receipts.get('anna', 'd')).toEqual({ id: 'd' });
  });

  it('are deleted after a month', async () => {
    const { open, setDay } = shared();
    await open().add('anna', named('a'));
    setDay(29);
    await open().add('anna', named('b'));
    expect(await open().list('anna', 10)).toEqual(named('b', 'a'));
    setDay(31);
    expect(await open().list('anna', 10)).toEqual(named('b'));
  });

  it('are encrypted: the store sees neither stubs nor counts', async () => {
    const { open, written } = shared();
    await open().add('anna', [{ id: 'a', stub: 'the password is swordfish' }]);
    expect(written).toHaveLength(3);
    expect(written.join('\n')).not.toMatch(/swordfish|stub|version/);
  });
});
