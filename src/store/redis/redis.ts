/**
 * The store in a Redis or Valkey server, which gateways on many machines can share. A write that has resolved survives what the server
 * survives (`appendonly yes` for a crash of the server); a call writes all of its entries or none. Network I/O; the connection is kept
 * open and restored automatically (connection.ts).
 */
import { LeporelloError } from '../../errors.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisServer,
  theirConnection,
  redisFailed,
} from './connection.ts';
import {
  readRecord,
  writeRecord,
  firstAlive,
  type FoundRecord,
  setUnless,
  type RecordLifetime,
  touchAlive,
} from './scripts.ts';
import type { Clock, FirstFound, Store, StoreEntry } from '../store.ts';

export type { RedisClient } from './connection.ts';

export type RedisOptions = {
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default 6379. */
  readonly port?: number | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The database number. Default 0. */
  readonly database?: number | undefined;
  /** Whether to encrypt the connection; the server's certificate is checked. Default false. */
  readonly tls?: boolean | undefined;
  /** A client to use instead of all these options. The caller closes it, and configures how it reconnects and queues. */
  readonly client?: RedisClient | undefined;
  /** How long a call may take, connecting included, in milliseconds. Default 400, less than a store's deadline (deadline-store.ts). */
  readonly timeoutMs?: number | undefined;
  /** A prefix of all keys. In a cluster it needs a part in braces, which keeps all keys on one node. Default `{leporello}:`. */
  readonly prefix?: string | undefined;
  readonly clock?: Clock | undefined;
};

/**
 * Opens a Redis store. It does not wait for the server: calls reject with `store-failed` while the server is unreachable, and work once it
 * is reachable. Rejects with `bad-config` if the package iovalkey is missing. A store that is not closed keeps the process alive.
 *
 * @example
 * const store = await redisStore({ host: 'cache.internal', password: process.env.REDIS_PASSWORD });
 */
export async function redisStore(options: RedisOptions = {}): Promise<Store> {
  const { client, timeoutMs = 400, prefix = '{leporello}:', clock = Date.now } = options;
  const connection = client
    ? theirConnection(client, timeoutMs)
    : await connectRedis(serverIn(options), timeoutMs);
  const { place } = connection;
  const pending = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  /** Runs a call. Rejects with `store-failed` when the time is up at the latest. */
  async function ask<T>(question: (using: RedisClient) => Promise<T>): Promise<T> {
    const answer = connection.ask(question);
    pending.add(answer);
    try {
      return await answer;
    } catch (error) {
      throw redisFailed(place, error, prefix);
    } finally {
      pending.delete(answer);
    }
  }

  function checkOpen(): void {
    if (closing !== undefined)
      throw new LeporelloError('store-failed', `The Redis store ${place} is closed: open it again.`);
  }

  async function getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    checkOpen();
    if (keys.length === 0) return [];
    const wanted = keys.map((key) => prefix + key);
    const records = await ask((using) => using.mgetBuffer(...wanted));
    return records.map((record) => readRecord(record, clock()));
  }

  return {
    name: 'redis',
    get: async (key) => (await getMany([key]))[0],
    getMany,
    async getFirst(keys) {
      checkOpen();
      if (keys.length === 0) return undefined;
      const wanted = keys.map((key) => prefix + key);
      return valueOf(await ask((using) => firstAlive(using, wanted, clock())));
    },
    async putMany(entries) {
      checkOpen();
      const commands = entries.map((entry) => commandFor(entry, prefix, clock()));
      if (commands.length > 0) await ask((using) => transact(using, commands));
    },
    async putUnless(guards, entries) {
      checkOpen();
      const now = clock();
      const records = entries.map(({ key, value, expiresAt }) => ({
        key: prefix + key,
        record: writeRecord(value, expiresAt),
        stays: staysFor(expiresAt, now),
      }));
      const inTheWay = guards.map((key) => prefix + key);
      return valueOf(await ask((using) => setUnless(using, inTheWay, records, now)));
    },
    async touch(keys, expiresAt) {
      checkOpen();
      const now = clock();
      const stays = staysFor(expiresAt, now);
      const wanted = keys.map((key) => prefix + key);
      if (wanted.length > 0 && stays !== 'gone')
        await ask((using) => touchAlive(using, wanted, { expiresAt, stays }, now));
    },
    async delete(keys) {
      checkOpen();
      const wanted = keys.map((key) => prefix + key);
      if (wanted.length > 0) await ask((using) => using.del(...wanted));
    },
    close() {
      closing ??= Promise.allSettled(pending).then(() => connection.close());
      return closing;
    },
  };
}

function serverIn(options: RedisOptions): RedisServer {
  const { host = '127.0.0.1', port = 6379, database = 0, tls = false, username, password } = options;
  return { host, port, database, tls, username, password };
}

/** How long the server keeps an expired entry, in milliseconds. Its clock may differ, and it must not delete an entry that is valid by ours. */
const graceMs = 60_000;

/** Returns how long the server keeps a record. The expiry in the record decides; the server's own expiry only frees the space. */
function staysFor(expiresAt: number | undefined, now: number): RecordLifetime {
  if (expiresAt === undefined || expiresAt === Number.POSITIVE_INFINITY) return 'ever';
  return expiresAt <= now ? 'gone' : Math.ceil(expiresAt - now) + graceMs;
}

function commandFor({ key, value, expiresAt }: StoreEntry, prefix: string, now: number): unknown[] {
  const stays = staysFor(expiresAt, now);
  if (stays === 'gone') return ['del', prefix + key];
  const record = writeRecord(value, expiresAt);
  return ['set', prefix + key, record, ...(stays === 'ever' ? [] : ['PX', stays])];
}

function valueOf(found: FoundRecord | undefined): FirstFound | undefined {
  // The script has checked that the record has not expired.
  const value = found && readRecord(found.record, Number.NEGATIVE_INFINITY);
  return value && { at: found.at, value };
}

/** Runs commands in a transaction, in one round trip. */
async function transact(client: RedisClient, commands: unknown[][]): Promise<void> {
  const results = await client.multi(commands).exec();
  for (const [error] of results ?? []) if (error) throw error;
}
