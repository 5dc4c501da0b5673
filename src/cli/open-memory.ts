/** Opens what originals and folds are kept with: the secret and the store. With or without a way out where one cannot be had. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { LeporelloError } from '../errors.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { redisStore } from '../store/redis/redis.ts';
import { givenSecret, loadSecret } from '../store/secret.ts';
import { sqliteStore } from '../store/sqlite/sqlite.ts';
import { isBusy } from '../store/sqlite/database.ts';
import type { Store } from '../store/store.ts';
import type { Config } from './config/schema.ts';
import type { Environment } from './terminal.ts';

/** `false` where memory is in the data folder. */
export type Redis = Config['memory']['redis'];

export type Memory = { readonly store: Store; readonly secret: Uint8Array };

/** Where the store of a data folder lies. */
export function storeFile(dataDir: string): string {
  return join(dataDir, 'memory.sqlite');
}

/** For people, without user and password. */
export function spellRedis({ host, port }: Exclude<Redis, false>): string {
  return `Redis at ${host}:${port}`;
}

/** Rejects with `bad-config` (the secret) or `store-failed`, also when the store can be read but not written. */
export async function openMemory(
  dataDir: string | undefined,
  env: Environment,
  redis: Redis = false,
): Promise<Memory> {
  const secret = await secretIn(dataDir, env, redis);
  const store = await openStore(dataDir, redis);
  const problem = await whyUnwritable(store);
  if (problem === undefined) return { secret, store };
  await store.close().catch(() => undefined);
  throw problem;
}

/**
 * Never a reason not to serve: where the folder cannot be used, memory lasts as long as the process, and `lost` says why. A server
 * that is away may come: then `away` says why it cannot be used now. Rejects with `bad-config`.
 */
export async function openMemoryOrDoWithout(
  dataDir: string | undefined,
  env: Environment,
  redis: Redis = false,
): Promise<Memory & { readonly lost?: string; readonly away?: string }> {
  // Outside of what may fail: that the client library is missing is a mistake to be told.
  const server = redis === false ? undefined : await redisStore(redis);
  let secret: Uint8Array | undefined;
  try {
    secret = await secretIn(dataDir, env, redis);
    const store = server ?? (await openStore(dataDir, redis));
    const problem = await whyUnwritable(store);
    if (problem === undefined) return { secret, store };
    if (server) return { secret, store, away: problem.message };
    await store.close().catch(() => undefined);
    throw problem;
  } catch (error) {
    await server?.close();
    // A secret that was given and is no good is a mistake to be told, not a folder to do without.
    if (secret === undefined && givenSecret(env) !== undefined) throw error;
    const lost = error instanceof Error ? error.message : String(error);
    return { secret: secret ?? randomBytes(32), store: inMemoryStore({ isShared: false }), lost };
  }
}

/** Where memory is elsewhere and the environment gives the secret, no folder is needed. */
function secretIn(dataDir: string | undefined, env: Environment, redis: Redis): Promise<Uint8Array> {
  const isNeeded = redis === false || givenSecret(env) === undefined;
  return loadSecret({ dataDir: dataDir ?? (isNeeded ? missingHome() : ''), env });
}

function openStore(dataDir: string | undefined, redis: Redis): Promise<Store> {
  return redis === false ? sqliteStore({ file: storeFile(dataDir ?? missingHome()) }) : redisStore(redis);
}

/** How long a start waits for another process that keeps the file locked, in milliseconds. */
const lockedAtStartMs = 5_000;

/** Opening succeeds where only reading is allowed, or nothing yet. */
async function whyUnwritable(store: Store): Promise<Error | undefined> {
  const latest = performance.now() + lockedAtStartMs;
  for (;;) {
    try {
      // Expired as it is written, so it is swept with what expires.
      await store.putMany([{ key: 'probe', value: new Uint8Array(0), expiresAt: 0 }]);
      return undefined;
    } catch (error) {
      const isLocked = error instanceof Error && isBusy(error.cause);
      if (!isLocked || performance.now() > latest)
        return error instanceof Error ? error : new Error(String(error));
    }
  }
}

function missingHome(): never {
  throw new LeporelloError(
    'bad-config',
    'This user has no home folder, so there is no default data folder. Give one with --data or LEPORELLO_DATA.',
  );
}
