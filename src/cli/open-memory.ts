/** Opens what a data folder holds: the secret and the store. With or without a way out where the folder cannot be used. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { LeporelloError } from '../errors.ts';
import { inMemoryStore } from '../memory/in-memory.ts';
import { loadSecret } from '../memory/secret.ts';
import { sqliteStore } from '../memory/sqlite.ts';
import type { Store } from '../memory/store.ts';
import type { Environment } from './terminal.ts';

export type Memory = { readonly store: Store; readonly secret: Uint8Array };

/** Where the store of a data folder lies. */
export function storeFile(dataDir: string): string {
  return join(dataDir, 'memory.sqlite');
}

/** Rejects with `bad-config` (the secret) or `store-failed`, also when the store can be read but not written. */
export async function openMemory(dataDir: string | undefined, env: Environment): Promise<Memory> {
  const folder = dataDir ?? missingHome();
  const secret = await loadSecret({ dataDir: folder, env });
  return { secret, store: await writableStore(folder) };
}

/** Never a reason not to serve: where the folder cannot be used, memory lasts as long as the process, and `lost` says why. */
export async function openMemoryOrDoWithout(
  dataDir: string | undefined,
  env: Environment,
): Promise<Memory & { readonly lost: string | undefined }> {
  let secret: Uint8Array | undefined;
  try {
    const folder = dataDir ?? missingHome();
    secret = await loadSecret({ dataDir: folder, env });
    return { secret, store: await writableStore(folder), lost: undefined };
  } catch (error) {
    // A secret that was given and is no good is a mistake to be told, not a folder to do without.
    if (secret === undefined && env['LEPORELLO_SECRET'] !== undefined) throw error;
    const lost = error instanceof Error ? error.message : String(error);
    return { secret: secret ?? randomBytes(32), store: inMemoryStore(), lost };
  }
}

async function writableStore(dataDir: string): Promise<Store> {
  const store = await sqliteStore({ file: storeFile(dataDir) });
  try {
    // Opening succeeds where only reading is allowed. Expired as it is written, so it is swept with what expires.
    await store.putMany([{ key: 'probe', value: new Uint8Array(0), expiresAt: 0 }]);
    return store;
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

function missingHome(): never {
  throw new LeporelloError(
    'bad-config',
    'This user has no home folder, so there is no default data folder. Give one with --data or LEPORELLO_DATA.',
  );
}
