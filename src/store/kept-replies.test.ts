import { describe, expect, it } from 'vitest';
import type { KeptReply } from '../conversation/conversation.ts';
import { inMemoryStore } from './in-memory.ts';
import { createKeptReplies, type KeptReplies } from './hidden-recalls.ts';
import type { Store } from './store.ts';
import { createEncryptedStore } from './encrypted-store.ts';

const secret = new Uint8Array(32).fill(1);
const open = (store: Store = inMemoryStore(), ttlMs?: number): KeptReplies =>
  createKeptReplies({ encryptedStore: createEncryptedStore({ store, secret }), ttlMs });

const call = { id: 'call_1', name: 'read_memory', argumentsJson: '{"id":"mem_1"}' };
const reply: KeptReply = { name: 'resp_2', pendingAnswers: [{ call, text: 'Line 1: "all is well" \u2028' }] };

describe('kept replies', () => {
  it('are found under the name the client knows, and under no other', async () => {
    const kept = open();
    await kept.record('t', 'resp_1', reply);
    expect(await kept.find('t', 'resp_1')).toEqual(reply);
    expect(await kept.find('t', 'resp_2')).toBeUndefined();
  });

  it('are found in another process, also after a search there found nothing', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    expect(await other.find('t', 'resp_1')).toBeUndefined();
    await one.record('t', 'resp_1', reply);
    expect(await other.find('t', 'resp_1')).toEqual(reply);
  });

  it('are overwritten by newer ones', async () => {
    const store = inMemoryStore();
    const kept = open(store);
    await kept.record('t', 'resp_1', reply);
    await kept.record('t', 'resp_1', { name: 'resp_3', pendingAnswers: [] });
    for (const one of [kept, open(store)])
      expect(await one.find('t', 'resp_1')).toEqual({ name: 'resp_3', pendingAnswers: [] });
  });

  it('keep tenants apart', async () => {
    const kept = open();
    await kept.record('t', 'resp_1', reply);
    expect(await kept.find('u', 'resp_1')).toBeUndefined();
  });

  it('may have any name, and no name is stored in clear', async () => {
    const store = inMemoryStore();
    const names = ['', '../../x', 'a/b', '\u0000', 'x'.repeat(10_000)];
    const keys: string[] = [];
    const watched: Store = {
      ...store,
      putMany(entries) {
        keys.push(...entries.map(({ key }) => key));
        return store.putMany(entries);
      },
    };
    for (const name of names) await open(watched).record('t', name, { name, pendingAnswers: [] });
    for (const name of names) expect(await open(store).find('t', name)).toEqual({ name, pendingAnswers: [] });
    expect(keys.every((key) => /^sealed\/t\/kept\/[\w-]{16,64}$/.test(key))).toBe(true);
  });

  it('expire in the store', async () => {
    const store = inMemoryStore();
    await open(store, -1).record('t', 'resp_1', reply);
    expect(await open(store).find('t', 'resp_1')).toBeUndefined();
  });

  it('are remembered by this process when the store fails, and the failure is reported', async () => {
    const store = inMemoryStore();
    const kept = open(store);
    await store.close();
    await expect(kept.record('t', 'resp_1', reply)).rejects.toMatchObject({ code: 'store-failed' });
    expect(await kept.find('t', 'resp_1')).toEqual(reply);
    await expect(kept.find('t', 'resp_2')).rejects.toMatchObject({ code: 'store-failed' });
  });
});
