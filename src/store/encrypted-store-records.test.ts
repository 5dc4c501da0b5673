import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { sqliteStore } from './sqlite/sqlite.ts';
import type { Store, StoreEntry } from './store.ts';
import { type EncryptedStore, createEncryptedStore } from './encrypted-store.ts';

const secret = new TextEncoder().encode('correct horse battery staple, 32+');
const bytes = (text: string) => new TextEncoder().encode(text);

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

describe('the store contains nothing readable', () => {
  const credential = 'sk-live-credential-of-a-tenant';

  it('of any original: not eight bytes of it, and nothing of the credential', async () => {
    const long = fc.uint8Array({ minLength: 8, maxLength: 300 });
    const text = fc.string({ minLength: 8, maxLength: 300 }).map((said) => bytes(JSON.stringify(said)));
    await fc.assert(
      fc.asyncProperty(fc.oneof(long, text), async (original) => {
        const { store, written } = watchedStore();
        const encryptedStore = createEncryptedStore({ store, secret });
        const tenant = encryptedStore.tenantOf(credential);
        await keepOne(encryptedStore, tenant, original);
        await encryptedStore.putSealed(tenant, ['a'], original, 1_000);
        for (const { key, value } of written) {
          const raw = Buffer.concat([bytes(key), value]);
          expect(raw.includes(credential)).toBe(false);
          for (let i = 0; i + 8 <= original.length; i += 1) {
            expect(raw.includes(Buffer.from(original.subarray(i, i + 8)))).toBe(false);
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  it('also in the database files', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-store-'));
    try {
      const store = await sqliteStore({ file: join(folder, 'memory.db') });
      const encryptedStore = createEncryptedStore({ store, secret });
      const tenant = encryptedStore.tenantOf(credential);
      const original = bytes(JSON.stringify(`the password is swordfish ${'and so on '.repeat(2_000)}`));
      const id = await keepOne(encryptedStore, tenant, original);
      const raw = Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
      expect(raw.includes(id)).toBe(true);
      expect(raw.includes(tenant)).toBe(true);
      for (const text of [credential, 'sk-live', 'swordfish', 'password', 'and so on', 'correct horse']) {
        expect(raw.includes(text)).toBe(false);
      }
      await store.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('and encrypts the same original differently each time', async () => {
    const { store, written } = watchedStore();
    const encryptedStore = createEncryptedStore({ store, secret });
    await keepOne(encryptedStore, 'one', bytes('"a"'));
    await keepOne(encryptedStore, 'one', bytes('"a"'));
    expect(Buffer.compare(written[0]!.value, written[1]!.value)).not.toBe(0);
  });
});

describe('a record of the first version', () => {
  // If this fails, an update loses the originals of running gateways: keep reading the old format.
  it('has the same id and is read by this version', async () => {
    const store = inMemoryStore();
    const encryptedStore = createEncryptedStore({ store, secret });
    expect(encryptedStore.tenantOf('sk-1')).toBe('72wf017myzepedp0');
    expect(encryptedStore.tenantOf(undefined)).toBe('gmbrwer02dzjt25b');

    const stored = bytes('"an original"');
    const compressed = bytes(JSON.stringify('an original '.repeat(20)));
    expect(encryptedStore.idOf('one', stored)).toBe('mem_tw71779z56bkw7hv');
    expect(encryptedStore.idOf('one', compressed)).toBe('mem_ny22q40r2ntmxpsz');
    await store.putMany([
      record(
        'memory/mem_tw71779z56bkw7hv',
        'EANvbmWyHpjTjgx8mfDw/pFyqiX81NAzC6KCYmw5/wckHIUvyzL0HwmPiDMuEQ==',
      ),
      record(
        'memory/mem_ny22q40r2ntmxpsz',
        'EgNvbmULRoTUq3v7eADGR1rifZG38/L2jM4SlNhYp20dsur5e3LJKEu3cR4Cj2SlIFY0RONa8sI5hVcnSsv3',
      ),
    ]);
    expect(await encryptedStore.recall('one', 'mem_tw71779z56bkw7hv')).toEqual({
      status: 'found',
      original: stored,
    });
    expect(await encryptedStore.recall('one', 'mem_ny22q40r2ntmxpsz')).toEqual({
      status: 'found',
      original: compressed,
    });
  });
});

function record(key: string, base64: string): StoreEntry {
  return { key, value: new Uint8Array(Buffer.from(base64, 'base64')), expiresAt: undefined };
}
