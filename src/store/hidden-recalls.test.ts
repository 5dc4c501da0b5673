import { describe, expect, it } from 'vitest';
import type { HiddenRecall } from '../conversation/conversation.ts';
import { LeporelloError } from '../errors.ts';
import { createHiddenRecalls, type HiddenRecalls, type Reply } from './hidden-recalls.ts';
import { inMemoryStore } from './in-memory.ts';
import type { Store } from './store.ts';
import { createEncryptedStore } from './encrypted-store.ts';

const secret = new Uint8Array(32).fill(1);
const encryptedStoreOn = (store: Store) => createEncryptedStore({ store, secret });
const open = (store: Store = inMemoryStore(), ttlMs?: number): HiddenRecalls =>
  createHiddenRecalls({ encryptedStore: encryptedStoreOn(store), ttlMs });

const encoder = new TextEncoder();

/** A recall of `id`, in a spelling that JSON.stringify would not produce. */
const recallOf = (id: string, closing?: string): HiddenRecall => ({
  rounds: [
    {
      turn: encoder.encode(`{ "n": 12345678901234567890, "é": "\\ud83d", "asks": "${id}" }`),
      answers: [
        {
          call: { id: 'call_1', name: 'read_memory', argumentsJson: `{"id": "${id}"}` },
          text: 'Line 1\u2028\u0000',
        },
      ],
    },
  ],
  closing: closing === undefined ? undefined : encoder.encode(`{"text":"${closing}"}`),
});

/** The copy of a reply to the prefix `before`; another copy ends with another hash. */
const reply = (before: string, copy = 'copy'): Reply => ({ before, through: `${before} ${copy}` });

/** Returns the recalls of each of these replies of one conversation. */
async function find(hiddenRecalls: HiddenRecalls, tenant: string, replies: readonly Reply[]) {
  const found = await hiddenRecalls.find(tenant, replies.toReversed());
  return replies.map((one) => found.find(({ reply: other }) => other === one)?.turns ?? []);
}

/** A store that counts reads, and fails for keys in `broken`. */
function watched() {
  const store = inMemoryStore();
  const broken = new Set<'getMany' | 'putUnless'>();
  const asked: (readonly string[])[] = [];
  const gone = () => Promise.reject(new LeporelloError('store-failed', 'The disk is gone.'));
  const watching: Store = {
    ...store,
    getMany(keys) {
      asked.push(keys);
      return broken.has('getMany') ? gone() : store.getMany(keys);
    },
    putUnless: (...given) => (broken.has('putUnless') ? gone() : store.putUnless(...given)),
  };
  return { store: watching, broken, asked };
}

describe('hidden recalls', () => {
  it('are found unchanged by the prefix that was replied to, in the order of the replies', async () => {
    const hiddenRecalls = open();
    await hiddenRecalls.record('t', 'a', recallOf('mem_1', 'One.'));
    await hiddenRecalls.record('t', 'c', recallOf('mem_2'));
    expect(await find(hiddenRecalls, 't', [reply('a'), reply('b'), reply('c')])).toEqual([
      [recallOf('mem_1', 'One.')],
      [],
      [recallOf('mem_2')],
    ]);
    expect(await find(hiddenRecalls, 't', [reply('c'), reply('a')])).toEqual([
      [recallOf('mem_2')],
      [recallOf('mem_1', 'One.')],
    ]);
    expect(await find(hiddenRecalls, 't', [])).toEqual([]);
  });

  it('keep whether the client saw the texts of a round', async () => {
    const store = inMemoryStore();
    const { rounds, closing } = recallOf('mem_1', 'One.');
    const hidden = { rounds: rounds.map((round) => ({ ...round, hidesText: true as const })), closing };
    await open(store).record('t', 'a', hidden);
    expect(await find(open(store), 't', [reply('a')])).toEqual([[hidden]]);
  });

  it('of several replies to one prefix are found, the newest four, newest first', async () => {
    const store = inMemoryStore();
    const hiddenRecalls = open(store);
    for (let at = 1; at <= 6; at++) await hiddenRecalls.record('t', 'a', recallOf(`mem_${at}`));
    const newest = [recallOf('mem_6'), recallOf('mem_5'), recallOf('mem_4'), recallOf('mem_3')];
    expect(await find(hiddenRecalls, 't', [reply('a')])).toEqual([newest]);
    expect(await find(open(store), 't', [reply('a')])).toEqual([newest]);
  });

  it('of the very same reply are stored once', async () => {
    const store = inMemoryStore();
    const hiddenRecalls = open(store);
    await hiddenRecalls.record('t', 'a', recallOf('mem_1'));
    await hiddenRecalls.record('t', 'a', recallOf('mem_2'));
    await hiddenRecalls.record('t', 'a', recallOf('mem_1'));
    for (const one of [hiddenRecalls, open(store)])
      expect(await find(one, 't', [reply('a')])).toEqual([[recallOf('mem_2'), recallOf('mem_1')]]);
  });

  it('keep tenants apart', async () => {
    const hiddenRecalls = open();
    await hiddenRecalls.record('t', 'a', recallOf('mem_1'));
    expect(await find(hiddenRecalls, 'u', [reply('a')])).toEqual([[]]);
  });

  it('are the same in another process with the same store, also for several', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    await one.record('t', 'a', recallOf('mem_1'));
    await other.record('t', 'a', recallOf('mem_2'));
    for (const hiddenRecalls of [one, other, open(store)])
      expect(await find(hiddenRecalls, 't', [reply('a')])).toEqual([[recallOf('mem_2'), recallOf('mem_1')]]);
  });

  it('are found for another reply to a prefix whose first one was looked up before', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    await one.record('t', 'a', recallOf('mem_1'));
    expect(await find(one, 't', [reply('a', 'first')])).toEqual([[recallOf('mem_1')]]);
    await other.record('t', 'a', recallOf('mem_2'));
    expect(await find(one, 't', [reply('a', 'second')])).toEqual([[recallOf('mem_2'), recallOf('mem_1')]]);
  });

  it('stay as they were first found, so that the same bytes are sent again', async () => {
    const store = inMemoryStore();
    const hiddenRecalls = open(store);
    const replies = [reply('a'), reply('b'), reply('c')];
    expect(await find(hiddenRecalls, 't', replies)).toEqual([[], [], []]);
    await open(store).record('t', 'a', recallOf('mem_1'));
    expect(await find(hiddenRecalls, 't', replies)).toEqual([[], [], []]);
  });

  it('are found in the newest two replies also if another process stored them after the first look', async () => {
    const store = inMemoryStore();
    const [one, other] = [open(store), open(store)];
    const replies = [reply('a'), reply('b'), reply('c')];
    expect(await find(other, 't', replies)).toEqual([[], [], []]);
    await one.record('t', 'b', recallOf('mem_1'));
    await one.record('t', 'c', recallOf('mem_2'));
    for (const hiddenRecalls of [one, other])
      expect(await find(hiddenRecalls, 't', replies)).toEqual([[], [recallOf('mem_1')], [recallOf('mem_2')]]);
    // Later requests of the conversation repeat them.
    const later = [...replies, reply('d'), reply('e')];
    expect(await find(other, 't', later)).toEqual([[], [recallOf('mem_1')], [recallOf('mem_2')], [], []]);
  });

  it('are read once, all in one round trip', async () => {
    const { store, asked } = watched();
    const hiddenRecalls = open({ ...store, isShared: false });
    await find(hiddenRecalls, 't', [reply('a'), reply('b')]);
    await find(hiddenRecalls, 't', [reply('a'), reply('b'), reply('c')]);
    await find(hiddenRecalls, 't', [reply('a'), reply('b'), reply('c')]);
    expect(asked).toEqual([['sealed/t/ghost/b', 'sealed/t/ghost/a'], ['sealed/t/ghost/c']]);
  });

  it('are not looked up again for a conversation without any, unless one was recorded since', async () => {
    const hiddenRecalls = open({ ...inMemoryStore(), isShared: false });
    const looked: string[] = [];
    const look = async (newestFirst: readonly Reply[]) => {
      looked.length = 0;
      const found = await hiddenRecalls.find(
        't',
        (function* () {
          for (const one of newestFirst) {
            looked.push(one.before);
            yield one;
          }
        })(),
      );
      return found.map(({ reply: { before } }) => before);
    };
    const replies = ['d', 'c', 'b', 'a'].map((before) => reply(before));
    expect(await look(replies.slice(1))).toEqual([]);
    expect(await look(replies)).toEqual([]);
    expect(looked).toEqual(['d', 'c']);
    // A client that disconnected returned before its reply was recorded.
    await hiddenRecalls.record('t', 'b', recallOf('mem_1'));
    expect(await look(replies)).toEqual(['b']);
    expect(await look(replies)).toEqual(['b']);
    expect(looked).toEqual(['d', 'c', 'b', 'a']);
  });

  it('expire in the store', async () => {
    const store = inMemoryStore();
    await open(store, -1).record('t', 'a', recallOf('mem_1'));
    expect(await find(open(store), 't', [reply('a')])).toEqual([[]]);
  });

  it('are all stored when several instances record for one prefix at once', async () => {
    const store = inMemoryStore();
    const names = ['mem_1', 'mem_2', 'mem_3', 'mem_4'];
    await Promise.all(names.map((name) => open(store).record('t', 'a', recallOf(name))));
    const [found] = await find(open(store), 't', [reply('a')]);
    expect(found).toHaveLength(4);
    expect(found).toEqual(expect.arrayContaining(names.map((name) => recallOf(name))));
  });

  it('are not stored in clear', async () => {
    const store = inMemoryStore();
    await open(store).record('t', 'a', recallOf('mem_1'));
    const record = await store.get('sealed/t/ghost/a');
    expect(new TextDecoder().decode(record)).not.toContain('Line 1');
  });
});

describe('hidden recalls whose store fails', () => {
  it('are remembered by this process, and the failure is reported', async () => {
    const { store, broken } = watched();
    const hiddenRecalls = open(store);
    await hiddenRecalls.record('t', 'a', recallOf('mem_1'));
    broken.add('putUnless');
    const failed = hiddenRecalls.record('t', 'a', recallOf('mem_2'));
    await expect(failed).rejects.toMatchObject({ code: 'store-failed' });
    broken.clear();
    expect(await find(hiddenRecalls, 't', [reply('a')])).toEqual([[recallOf('mem_2'), recallOf('mem_1')]]);
    expect(await find(open(store), 't', [reply('a')])).toEqual([[recallOf('mem_1')]]);
  });

  it('are stored together with the next one', async () => {
    const { store, broken } = watched();
    const hiddenRecalls = open(store);
    broken.add('putUnless');
    await expect(hiddenRecalls.record('t', 'a', recallOf('mem_1'))).rejects.toThrow('The disk is gone.');
    broken.clear();
    await hiddenRecalls.record('t', 'a', recallOf('mem_2'));
    expect(await find(open(store), 't', [reply('a')])).toEqual([[recallOf('mem_2'), recallOf('mem_1')]]);
  });

  it('are found if this process knows them; for others the failure is reported, and nothing is remembered', async () => {
    const { store, broken } = watched();
    const hiddenRecalls = open(store);
    await open(store).record('t', 'a', recallOf('mem_1'));
    await open(store).record('t', 'b', recallOf('mem_2'));
    await find(hiddenRecalls, 't', [reply('a')]);
    broken.add('getMany');
    expect(await find(hiddenRecalls, 't', [reply('a')])).toEqual([[recallOf('mem_1')]]);
    await expect(find(hiddenRecalls, 't', [reply('a'), reply('b')])).rejects.toMatchObject({
      code: 'store-failed',
    });
    broken.clear();
    expect(await find(hiddenRecalls, 't', [reply('b')])).toEqual([[recallOf('mem_2')]]);
  });
});

describe('a record of hidden recalls', () => {
  const withRecord = async (content: string) => {
    const store = inMemoryStore();
    await encryptedStoreOn(store).putSealed('t', ['ghost/a'], encoder.encode(content), 60_000);
    return store;
  };

  it('of a later version counts as absent', async () => {
    const store = await withRecord('{"version":2,"turns":"spelled otherwise"}');
    expect(await find(open(store), 't', [reply('a')])).toEqual([[]]);
  });

  it('counts as missing if it was damaged', async () => {
    const store = inMemoryStore();
    await open(store).record('t', 'a', recallOf('mem_1'));
    const value = (await store.get('sealed/t/ghost/a'))!;
    value[value.length - 1]! ^= 1;
    await store.putMany([{ key: 'sealed/t/ghost/a', value, expiresAt: undefined }]);
    expect(await find(open(store), 't', [reply('a')])).toEqual([[]]);
  });

  it('that is not JSON causes an error without its content', async () => {
    const store = await withRecord('secret');
    await expect(find(open(store), 't', [reply('a')])).rejects.toMatchObject({
      code: 'store-failed',
      message:
        'A hidden recall in the store is not JSON. Delete the data folder to start with an empty store.',
    });
  });
});
