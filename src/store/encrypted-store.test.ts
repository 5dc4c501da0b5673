import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { type EncryptedStore, createEncryptedStore, isMemoryId } from './encrypted-store.ts';
import { sqliteStore } from './sqlite/sqlite.ts';
import type { Store, StoreEntry } from './store.ts';

const secret = new TextEncoder().encode('correct horse battery staple, 32+');
const missing = { status: 'missing' };
const found = (original: Uint8Array) => ({ status: 'found', original });
const bytes = (text: string) => new TextEncoder().encode(text);

function open(
  options: { store?: Store; secret?: Uint8Array; clock?: () => number; ttlMs?: number } = {},
): EncryptedStore {
  return createEncryptedStore({ store: inMemoryStore(), secret, ...options });
}

async function keepOne(
  encryptedStore: EncryptedStore,
  tenant: string,
  original: Uint8Array,
): Promise<string> {
  const id = encryptedStore.idOf(tenant, original);
  await encryptedStore.keep(tenant, [{ id, original }]);
  return id;
}

/** An in-memory store that remembers every written entry. */
function watchedStore(): { readonly store: Store; readonly written: StoreEntry[] } {
  const store = inMemoryStore();
  const written: StoreEntry[] = [];
  return {
    store: { ...store, putMany: (entries) => (written.push(...entries), store.putMany(entries)) },
    written,
  };
}

const anyOriginal = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 400 }).map((text) => bytes(JSON.stringify(text))),
  fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 9 }), fc.integer({ min: 1, max: 40_000 })).map(repeated),
);
const anyTenant = fc.constantFrom('one', 'two', '0123456789abcdef');

function repeated([unit, times]: readonly [Uint8Array, number]): Uint8Array {
  const whole = new Uint8Array(unit.length * times);
  for (let i = 0; i < times; i += 1) whole.set(unit, i * unit.length);
  return whole;
}

describe('keep and recall', () => {
  it('return exactly the same bytes, whatever they are', async () => {
    const encryptedStore = open();
    await fc.assert(
      fc.asyncProperty(anyTenant, fc.array(anyOriginal, { maxLength: 5 }), async (tenant, originals) => {
        const kept = originals.map((original) => ({ id: encryptedStore.idOf(tenant, original), original }));
        await encryptedStore.keep(tenant, kept);
        for (const { id, original } of kept) {
          expect(await encryptedStore.recall(tenant, id)).toEqual(found(original));
          expect(await encryptedStore.recallAny(id)).toEqual(found(original));
        }
      }),
      { numRuns: 100 },
    );
  });

  it('return 5 MB of text and of noise', async () => {
    const encryptedStore = open();
    const text = repeated([bytes('"line of a log\\n"'), 300_000]);
    let state = 1;
    const noise = Uint8Array.from(
      { length: 5_000_000 },
      () => (state = (state * 48_271) % 2_147_483_647) & 255,
    );
    for (const original of [text, noise]) {
      const recalled = await encryptedStore.recall('one', await keepOne(encryptedStore, 'one', original));
      expect(recalled.status === 'found' && Buffer.compare(recalled.original, original)).toBe(0);
    }
  });

  it('write many originals in pieces, before the record that refers to them, and let others run', async () => {
    const writes: (readonly string[])[] = [];
    const store = inMemoryStore();
    const encryptedStore = createEncryptedStore({
      store: {
        ...store,
        putMany: async (entries) => {
          writes.push(entries.map(({ key }) => key));
          await store.putMany(entries);
        },
      },
      secret: new Uint8Array(32).fill(1),
    });
    const originals = Array.from({ length: 50 }, () => {
      const original = crypto.getRandomValues(new Uint8Array(60_000));
      return { id: encryptedStore.idOf('one', original), original };
    });
    // Each look at the clock is a slice later.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 20));
    let turns = 0;
    const turn = () => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await encryptedStore.keep('one', originals, { keys: ['fold'], content: bytes('edits'), ttlMs: 1_000 });
    clearImmediate(next);
    vi.restoreAllMocks();
    expect(writes.map((keys) => keys.length)).toEqual([17, 17, 17]);
    expect(writes.flat()).toEqual([...originals.map(({ id }) => `memory/${id}`), 'sealed/one/fold']);
    expect(turns).toBeGreaterThanOrEqual(50);
  });

  it('work for an empty original', async () => {
    const encryptedStore = open();
    await encryptedStore.keep('one', []);
    expect(
      await encryptedStore.recall('one', await keepOne(encryptedStore, 'one', new Uint8Array(0))),
    ).toEqual(found(new Uint8Array(0)));
  });

  it('work across processes that share store and secret', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-store-'));
    const file = join(folder, 'memory.db');
    try {
      const before = await sqliteStore({ file });
      const id = await keepOne(open({ store: before }), 'one', bytes('"kept"'));
      await before.close();
      const after = await sqliteStore({ file });
      expect(await open({ store: after }).recall('one', id)).toEqual(found(bytes('"kept"')));
      await after.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('expire after the time to live, which keeping again renews', async () => {
    let now = 0;
    const encryptedStore = open({
      store: inMemoryStore({ clock: () => now }),
      clock: () => now,
      ttlMs: 1_000,
    });
    const id = await keepOne(encryptedStore, 'one', bytes('"a"'));
    now = 900;
    await keepOne(encryptedStore, 'one', bytes('"a"'));
    now = 1_899;
    expect(await encryptedStore.recall('one', id)).toEqual(found(bytes('"a"')));
    now = 1_900;
    expect(await encryptedStore.recall('one', id)).toEqual(missing);
    expect(await encryptedStore.recallAny(id)).toEqual(missing);
  });

  it('delete an original for its tenant, and for the operator that of any tenant', async () => {
    const encryptedStore = open();
    const one = await keepOne(encryptedStore, 'one', bytes('"a"'));
    const two = await keepOne(encryptedStore, 'two', bytes('"a"'));
    await encryptedStore.forget('two', { original: one });
    expect(await encryptedStore.recall('one', one)).toEqual(found(bytes('"a"')));
    await encryptedStore.forgetAny(one);
    expect(await encryptedStore.recall('one', one)).toEqual(missing);
    expect(await encryptedStore.recall('two', two)).toEqual(found(bytes('"a"')));
    await encryptedStore.forgetAny('mem_0123456789abcdef');
  });

  it('keep originals for 30 days by default', async () => {
    const { store, written } = watchedStore();
    await keepOne(open({ store, clock: () => 5 }), 'one', bytes('"a"'));
    expect(written.map((entry) => entry.expiresAt)).toEqual([5 + 30 * 86_400_000]);
  });

  it('reject with store-failed when the store does', async () => {
    const store = inMemoryStore();
    const encryptedStore = open({ store });
    await store.close();
    const failed = { code: 'store-failed' };
    await expect(keepOne(encryptedStore, 'one', bytes('"a"'))).rejects.toMatchObject(failed);
    await expect(encryptedStore.recall('one', 'mem_0123456789abcdef')).rejects.toMatchObject(failed);
    await expect(encryptedStore.getSealedMany('one', ['a'])).rejects.toMatchObject(failed);
  });
});

describe('recall finds nothing', () => {
  const original = bytes(
    '"an original of some length, so that it is worth compressing, compressing, compressing"',
  );

  it('for an id that is absent, malformed or of another tenant, with the same answer', async () => {
    const encryptedStore = open();
    const id = await keepOne(encryptedStore, 'one', original);
    expect(await encryptedStore.recall('two', id)).toEqual(missing);
    expect(await encryptedStore.recall('one', encryptedStore.idOf('two', original))).toEqual(missing);
    expect(await encryptedStore.recall('one', 'mem_0123456789abcdef')).toEqual(missing);
    for (const text of ['', 'mem_', id.toUpperCase(), `${id} `, `../${id}`, 'x'.repeat(10_000)]) {
      expect(await encryptedStore.recall('one', text)).toEqual(missing);
      expect(await encryptedStore.recallAny(text)).toEqual(missing);
    }
  });

  it('with another secret', async () => {
    const store = inMemoryStore();
    const id = await keepOne(open({ store }), 'one', original);
    const other = open({ store, secret: new Uint8Array(32).fill(7) });
    expect(await other.recall('one', id)).toEqual(missing);
    expect(await other.recallAny(id)).toEqual(missing);
  });

  it('in a record with any bit changed, truncated anywhere, or extended', async () => {
    const { store, written } = watchedStore();
    const encryptedStore = open({ store });
    const id = await keepOne(encryptedStore, 'one', original);
    const { key, value } = written[0]!;
    const damaged = [
      ...Array.from({ length: value.length * 8 }, (_, bit) =>
        value.map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)),
      ),
      ...Array.from({ length: value.length }, (_, end) => value.subarray(0, end)),
      new Uint8Array([...value, 0]),
    ];
    for (const record of damaged) {
      await store.putMany([{ key, value: record, expiresAt: undefined }]);
      expect(await encryptedStore.recallAny(id)).toEqual(missing);
      expect(await encryptedStore.recall('one', id)).toEqual(missing);
    }
    await store.putMany([{ key, value, expiresAt: undefined }]);
    expect(await encryptedStore.recall('one', id)).toEqual(found(original));
  });

  it('in a record that was moved to another key', async () => {
    const { store, written } = watchedStore();
    const encryptedStore = open({ store });
    await keepOne(encryptedStore, 'one', original);
    const other = await keepOne(encryptedStore, 'one', bytes('"other"'));
    await store.putMany([{ key: written[1]!.key, value: written[0]!.value, expiresAt: undefined }]);
    expect(await encryptedStore.recall('one', other)).toEqual(missing);
  });
});

describe('ids', () => {
  it('are equal exactly when tenant and original are equal', () => {
    const encryptedStore = open();
    const again = open();
    const pair = fc.tuple(anyTenant, fc.uint8Array({ maxLength: 3, max: 2 }));
    fc.assert(
      fc.property(pair, pair, ([tenant, original], [otherTenant, other]) => {
        const same = tenant === otherTenant && Buffer.compare(original, other) === 0;
        expect(encryptedStore.idOf(tenant, original) === again.idOf(otherTenant, other)).toBe(same);
        expect(isMemoryId(encryptedStore.idOf(tenant, original))).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('differ under another secret', () => {
    const other = open({ secret: new Uint8Array(32).fill(7) });
    expect(other.idOf('one', bytes('"a"'))).not.toBe(open().idOf('one', bytes('"a"')));
    expect(other.tenantOf('key')).not.toBe(open().tenantOf('key'));
  });
});

describe('tenantOf', () => {
  it('gives each credential its own label, and one to requests without a credential', () => {
    const encryptedStore = open();
    const credentials = [undefined, '', 'none', 'some ', 'sk-1', 'sk-2', 'Bearer sk-1'];
    const labels = credentials.map((credential) => encryptedStore.tenantOf(credential));
    expect(new Set(labels).size).toBe(credentials.length);
    for (const label of labels) expect(label).toMatch(/^[0-9a-z]{16}$/);
  });

  it('gives a header or a claim a label that no credential has', () => {
    const encryptedStore = open();
    const labels = [
      ...(['credential', 'header', 'claim'] as const).map((source) =>
        encryptedStore.tenantOf('alice', source),
      ),
      ...['header alice', 'claim alice', 'some alice'].map((credential) =>
        encryptedStore.tenantOf(credential),
      ),
    ];
    expect(new Set(labels).size).toBe(labels.length);
    expect(encryptedStore.tenantOf('alice', 'credential')).toBe(encryptedStore.tenantOf('alice'));
  });
});

describe('putSealed and getSealedMany', () => {
  it('store bytes by tenant and key, and return them in the order of the keys', async () => {
    const encryptedStore = open();
    await encryptedStore.putSealed('one', ['a'], bytes('1a'), 1_000);
    await encryptedStore.putSealed('one', ['b/c'], bytes('1bc'), 1_000);
    await encryptedStore.putSealed('two', ['a'], bytes('2a'), 1_000);
    expect(await encryptedStore.getSealedMany('one', ['b/c', 'x', 'a', 'a'])).toEqual([
      bytes('1bc'),
      undefined,
      bytes('1a'),
      bytes('1a'),
    ]);
    expect(await encryptedStore.getSealedMany('two', ['b/c', 'a'])).toEqual([undefined, bytes('2a')]);
    expect(await encryptedStore.getSealedFirst('two', ['b/c', 'a'])).toEqual({ at: 1, content: bytes('2a') });
    expect(await encryptedStore.getSealedFirst('two', ['b/c'])).toBeUndefined();
    expect(await encryptedStore.getSealedMany('two', [])).toEqual([]);
  });

  it('overwrite, and expire after the time to live', async () => {
    let now = 0;
    const encryptedStore = open({ store: inMemoryStore({ clock: () => now }), clock: () => now });
    await encryptedStore.putSealed('one', ['a'], bytes('old'), 1_000);
    await encryptedStore.putSealed('one', ['a'], bytes('new'), 2_000);
    now = 1_999;
    expect(await encryptedStore.getSealedMany('one', ['a'])).toEqual([bytes('new')]);
    now = 2_000;
    expect(await encryptedStore.getSealedMany('one', ['a'])).toEqual([undefined]);
  });

  it('are written with originals in one call of the store, each with its own retention', async () => {
    let now = 0;
    let puts = 0;
    const store = inMemoryStore({ clock: () => now });
    const putMany: Store['putMany'] = (entries) => ((puts += 1), store.putMany(entries));
    const encryptedStore = open({ store: { ...store, putMany }, clock: () => now, ttlMs: 3_000 });
    const [id, original] = [encryptedStore.idOf('one', bytes('whole')), bytes('whole')];
    await encryptedStore.keep('one', [{ id, original }], {
      keys: ['a', 'b'],
      content: bytes('fold'),
      ttlMs: 2_000,
    });
    expect(puts).toBe(1);
    expect(await encryptedStore.getSealedMany('one', ['a', 'b'])).toEqual([bytes('fold'), bytes('fold')]);
    now = 2_000;
    expect(await encryptedStore.getSealedMany('one', ['a', 'b'])).toEqual([undefined, undefined]);
    expect(await encryptedStore.recall('one', id)).toEqual(found(original));
  });

  it('do not mix with originals', async () => {
    const encryptedStore = open();
    await encryptedStore.putSealed('one', ['mem_0123456789abcdef'], bytes('x'), 1_000);
    expect(await encryptedStore.recall('one', 'mem_0123456789abcdef')).toEqual(missing);
  });
});

describe('createEncryptedStore', () => {
  it('rejects a short secret', () => {
    expect(() => open({ secret: new Uint8Array(31) })).toThrow(
      'The secret has 31 bytes; it needs at least 32.',
    );
  });

  it.each(['', 'a/b', 'a b', 'É', 'a\n', 'x'.repeat(65)])('rejects the tenant label %j', async (tenant) => {
    const encryptedStore = open();
    const refused = {
      code: 'bad-config',
      message: expect.stringContaining('but must be 1 to 64 of'),
    };
    expect(() => encryptedStore.idOf(tenant, new Uint8Array(0))).toThrow(expect.objectContaining(refused));
    await expect(encryptedStore.recall(tenant, 'mem_0123456789abcdef')).rejects.toMatchObject(refused);
    await expect(encryptedStore.putSealed(tenant, ['a'], new Uint8Array(0), 1)).rejects.toMatchObject(
      refused,
    );
    await expect(encryptedStore.getSealedMany(tenant, ['a'])).rejects.toMatchObject(refused);
  });
});
