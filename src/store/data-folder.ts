/** Opens the store and the secret in the data folder of a gateway, for programs that only read it. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { EncryptedStoreOptions } from './encrypted-store.ts';
import { loadSecret } from './secret.ts';
import { sqliteStore } from './sqlite/sqlite.ts';

/** An open store with its secret: what `createEncryptedStore` needs. */
export type OpenedStore = Pick<EncryptedStoreOptions, 'store' | 'secret' | 'ttlMs' | 'storeDeadlineMs'>;

/** Returns the path of the store in a data folder. */
export function storeFile(dataDir: string): string {
  return join(dataDir, 'memory.sqlite');
}

/** Says in a sentence why a data folder has no store or no secret; undefined when it has what is needed. */
export function missingIn(
  dataDir: string,
  needed: { readonly store: boolean; readonly secret: boolean },
): string | undefined {
  if ((needed.store || needed.secret) && isForbidden(storeFile(dataDir)))
    return `This user may not read the data folder ${dataDir}. Run as its owner, or set another one with --data.`;
  if (needed.store && !existsSync(storeFile(dataDir)))
    return `The data folder ${dataDir} contains no store. Set another data folder with --data.`;
  if (needed.secret && !existsSync(join(dataDir, 'secret')))
    return `The secret of ${dataDir} is missing: restore the file secret there, or set LEPORELLO_SECRET.`;
  return undefined;
}

/** True if the system does not say whether the file exists, because this user may not look into its folder. */
function isForbidden(file: string): boolean {
  try {
    statSync(file);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM');
  }
}

/** Opens the store of a data folder with its own secret. `missingIn` must have found nothing. */
export async function openDataFolder(dataDir: string): Promise<OpenedStore> {
  const secret = await loadSecret({ dataDir, env: {} });
  return { store: await sqliteStore({ file: storeFile(dataDir) }), secret };
}
