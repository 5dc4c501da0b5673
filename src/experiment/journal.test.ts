import { describe, expect, it } from 'vitest';
import { createEncryptedStore } from '../store/encrypted-store.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createTurns } from '../store/store.ts';
import { createJournal, type JournalOptions, type RecordChange } from './journal.ts';

type Count = { readonly unit: string; readonly lastAt: number; readonly count: number };

const counts: JournalOptions<Count> = {
  name: 'counts',
  slots: 'counts-slot',
  merge: (one, other) => ({ ...one, count: one.count + other.count }),
};

/** Opens gateways on one store, and lists how many keys they read at once, and which they write. */
function openGateways() {
  const store = inMemoryStore();
  const reads: number[] = [];
  const writes: string[] = [];
  const watched: typeof store = {
    ...store,
    getMany: (keys) => (reads.push(keys.length), store.getMany(keys)),
    putMany: (entries) => (writes.push(...entries.map(({ key }) => key)), store.putMany(entries)),
    putUnless: (guards, entries) => (
      writes.push(...entries.map(({ key }) => key)), store.putUnless(guards, entries)
    ),
  };
  const secret = new Uint8Array(32).fill(7);
  const open = () => createJournal(createEncryptedStore({ store: watched, secret }), counts);
  return { open, reads, writes };
}

const one = (unit: string): Count => ({ unit, lastAt: 1, count: 1 });

/** Adds a record, or one to the gateway's own. */
const add = (unit: string): RecordChange<Count> => ({
  unit,
  change: (own) => (own ? { ...own, count: own.count + 1 } : one(unit)),
});

describe('a journal of experiments', () => {
  it('adds up the records of many gateways, and reads a few blocks of each at once', async () => {
    const { open, reads } = openGateways();
    for (let gateway = 0; gateway < 40; gateway++) {
      await open().change('tenant', [add('a model')]);
    }
    reads.length = 0;
    expect(await open().list('tenant')).toEqual([{ unit: 'a model', lastAt: 1, count: 40 }]);
    // Two rounds find 40 slots, and one finds that there are no more; one reads four blocks of each.
    expect(reads).toEqual([32, 32, 32, 160]);
  });

  it.each([1, 128, 129, 640, 641, 2_689])('lists all of %i records of one gateway', async (count) => {
    const { open } = openGateways();
    const journal = open();
    const units = Array.from({ length: count }, (_, at) => `unit ${String(at).padStart(5, '0')}`);
    for (const unit of units) await journal.change('tenant', [add(unit)]);
    expect((await open().list('tenant')).map(({ unit }) => unit)).toEqual(units);
    expect(await open().find('tenant', units.at(-1)!)).toEqual(one(units.at(-1)!));
  });

  it('writes a block once for all changes that are made together, and shows each what is known by then', async () => {
    const { open, writes } = openGateways();
    const units = Array.from({ length: 40 }, (_, at) => `unit ${at}`);
    await open().change('tenant', units.map(add));
    const journal = open();
    await journal.find('tenant', 'unit 0');
    const known: (Count | undefined)[] = [];
    const look = {
      unit: 'unit 7',
      change: (_: Count | undefined, all: Count | undefined) => void known.push(all),
    };
    writes.length = 0;
    await journal.change('tenant', [...units, ...units].map(add).toSpliced(50, 0, look));
    // Its two blocks of 32 records.
    expect(writes).toEqual([expect.stringMatching(/\/2\/0$/), expect.stringMatching(/\/2\/1$/)]);
    expect(known).toEqual([{ unit: 'unit 7', lastAt: 1, count: 3 }]);
    expect((await open().list('tenant')).map(({ count }) => count)).toEqual(units.map(() => 3));
  });
});

describe('turns', () => {
  it('run the work of a tenant in order, after failures too, and let no tenant wait for another', async () => {
    const inTurn = createTurns();
    const done: string[] = [];
    let end = () => undefined as void;
    const slow = inTurn('slow', () => new Promise<void>((resolve) => void (end = resolve)));
    const next = inTurn('slow', async () => void done.push('after the slow one'));
    await expect(inTurn('quick', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    await inTurn('quick', async () => void done.push('after a failure'));
    expect(done).toEqual(['after a failure']);
    end();
    await Promise.all([slow, next]);
    expect(done).toEqual(['after a failure', 'after the slow one']);
  });
});
