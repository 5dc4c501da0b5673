/** Opens the secret and the store of a command. Optionally falls back to an in-memory store. */
import { randomBytes } from 'node:crypto';
import { LeporelloError } from '../errors.ts';
import { type OpenedStore, missingIn, storeFile } from '../store/data-folder.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { httpStore } from '../store/http.ts';
import { redisStore } from '../store/redis/redis.ts';
import { givenSecret, isOfOtherSecret, loadSecret } from '../store/secret.ts';
import { sqliteStore } from '../store/sqlite/sqlite.ts';
import { isBusy } from '../store/sqlite/database.ts';
import type { Store } from '../store/store.ts';
import type { Config } from './config/schema.ts';
import type { Environment } from './terminal.ts';

/** The options of `memory` that name a store outside the data folder. */
const serverOptions = ['redis', 'http'] as const;

/** Configuration of the store; all are `false` when it is in the data folder. */
export type StoreConfig = Pick<Config['memory'], (typeof serverOptions)[number]>;

/** Configuration of the store and of its use. */
export type UsedConfig = Pick<Config, 'memory' | 'limits'>;

export const inDataFolder: StoreConfig = { redis: false, http: false };

const dayMs = 24 * 60 * 60 * 1_000;

/** Returns how long originals are kept, and how long a call of the store may take. */
function usage(config: UsedConfig): Pick<OpenedStore, 'ttlMs' | 'storeDeadlineMs'> {
  return { ttlMs: config.memory.ttlDays * dayMs, storeDeadlineMs: config.limits.storeDeadlineMs };
}

/** A store outside the data folder. */
type StoreServer = {
  /** Names the server for messages, without credentials. */
  readonly place: string;
  readonly open: () => Store | Promise<Store>;
};

/** Returns the options that are set, such as `memory.redis`; none when the store is in the data folder. */
export function storeOptionsIn(config: StoreConfig): readonly string[] {
  return serverOptions.filter((name) => config[name]).map((name) => `memory.${name}`);
}

/** Returns the configured server; undefined when the store is in the data folder. Throws `bad-config` if there are two. */
export function storeServer(config: StoreConfig): StoreServer | undefined {
  const options = storeOptionsIn(config);
  if (options.length > 1)
    throw new LeporelloError('bad-config', `${options.join(' and ')} are both set: remove one of them.`);
  const { redis, http } = config;
  if (redis) return { place: `Redis at ${redis.host}:${redis.port}`, open: () => redisStore(redis) };
  if (!http) return undefined;
  const { url, token, timeoutMs } = http;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { place: `the service at ${url}`, open: () => httpStore({ url, headers, timeoutMs }) };
}

/** Opens secret and store. Rejects with `bad-config` (secret) or `store-failed`, also when the store can be read but not written. */
export async function openStore(
  dataDir: string | undefined,
  env: Environment,
  config?: UsedConfig,
): Promise<OpenedStore> {
  const server = config && storeServer(config.memory);
  const secret = await secretIn(dataDir, env, server);
  const store = await (server?.open() ?? storeInFolder(dataDir));
  const problem = await whyUnwritable(store);
  if (problem === undefined) return { secret, store, ...(config && usage(config)) };
  await store.close().catch(() => undefined);
  throw problem;
}

/** See `openStoreOrFallBack`. */
export type StoreProblems = {
  readonly lost?: string;
  readonly away?: string;
  readonly hasOtherSecret?: boolean;
};

/**
 * Opens secret and store, with fallbacks, so that the gateway can always serve. If the data folder cannot be used, the store is in memory, and
 * `lost` says why. If a server is down, it is used as soon as it is back, and `away` says why it cannot be used now. `hasOtherSecret`: see
 * `isOfOtherSecret`. Rejects with `bad-config`.
 */
export async function openStoreOrFallBack(
  dataDir: string | undefined,
  env: Environment,
  config: StoreConfig = inDataFolder,
): Promise<OpenedStore & StoreProblems> {
  // Not inside `try`: a missing client library is a configuration error, not a reason to fall back.
  const server = storeServer(config);
  const remote = await server?.open();
  let secret: Uint8Array | undefined;
  try {
    secret = await secretIn(dataDir, env, server);
    const store = remote ?? (await storeInFolder(dataDir));
    const problem = await whyUnwritable(store);
    if (problem === undefined)
      return { secret, store, hasOtherSecret: await isOfOtherSecret(store, secret).catch(() => false) };
    if (remote) return { secret, store, away: problem.message };
    await store.close().catch(() => undefined);
    throw problem;
  } catch (error) {
    await remote?.close();
    // An invalid secret is a configuration error, not a reason to fall back.
    if (secret === undefined && givenSecret(env) !== undefined) throw error;
    const lost = error instanceof Error ? error.message : String(error);
    return { secret: secret ?? randomBytes(32), store: inMemoryStore(), lost };
  }
}

/** Opens a store that exists, for commands that only read it; or says why there is none. */
export async function openExistingStore(
  dataDir: string | undefined,
  env: Environment,
  config: UsedConfig,
): Promise<OpenedStore | { readonly missing: string }> {
  const server = storeServer(config.memory);
  const isGiven = givenSecret(env) !== undefined;
  if (dataDir === undefined && !(server && isGiven))
    return { missing: 'This user has no home folder: set the data folder with --data.' };
  const folder = dataDir ?? '';
  const missing = missingIn(folder, { store: !server, secret: !isGiven });
  if (missing !== undefined) return { missing };
  const secret = await loadSecret({ dataDir: folder, env });
  return { store: await (server?.open() ?? storeInFolder(folder)), secret, ...usage(config) };
}

/** Loads the secret. With a server and a secret in the environment, no data folder is needed. */
function secretIn(
  dataDir: string | undefined,
  env: Environment,
  server: StoreServer | undefined,
): Promise<Uint8Array> {
  const isNeeded = server === undefined || givenSecret(env) === undefined;
  return loadSecret({ dataDir: dataDir ?? (isNeeded ? missingHome() : ''), env });
}

function storeInFolder(dataDir: string | undefined): Promise<Store> {
  return sqliteStore({ file: storeFile(dataDir ?? missingHome()) });
}

/** Milliseconds that the start waits for another process that has locked the file. */
const lockedAtStartMs = 5_000;

/** Writes a probe, because opening can succeed without the permission to write. Returns the error, or undefined when writing works. */
async function whyUnwritable(store: Store): Promise<Error | undefined> {
  const latest = performance.now() + lockedAtStartMs;
  for (;;) {
    try {
      // The probe is already expired, so it is removed with other expired entries.
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
    'This user has no home folder, so there is no default data folder. Set one with --data or LEPORELLO_DATA.',
  );
}
