/**
 * Implements the store in a Redis or Valkey server, which gateways on many machines can share. A write that has resolved survives what the server
 * survives (`appendonly yes` for a crash of the server); a call writes all of its entries or none. Network I/O; the connection is kept
 * open and restored automatically (connection.ts).
 */
import { LeporelloError } from '../../errors.ts';
import {
  type RedisClient,
  type RedisServer,
  connectRedis,
  theirConnection,
  redisFailed,
} from './connection.ts';
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
  /** How long a call may take, connecting included, in milliseconds. Default 400, less than a store's deadline (store.ts). */
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

// Lua scripts that Redis runs in one round trip, and the format of the records they read. A record:
//
//     format (1 byte) | expires at, milliseconds since the epoch, Infinity for never (8, a double, big-endian) | value

/** A Lua function: true for a record of ours that has not expired by our clock. */
const isAlive = `local function isAlive(record, now)
  return type(record) == 'string' and #record >= 9 and record:byte(1) == 1 and struct.unpack('>d', record, 2) > now
end`;

// A key may hold a value of another type: that counts as absent.
const findFirst = `${isAlive}
for at, key in ipairs(KEYS) do
  local record = redis.pcall('get', key)
  if isAlive(record, tonumber(ARGV[1])) then return {at - 1, record} end
end
return false`;

// Keys: the guards, then the entries. Arguments: now, the number of guards, then each entry's record and lifetime.
const putUnless = `${isAlive}
local guards = tonumber(ARGV[2])
for at = 1, guards do
  local record = redis.pcall('get', KEYS[at])
  if isAlive(record, tonumber(ARGV[1])) then return {at - 1, record} end
end
for at = guards + 1, #KEYS do
  local record, stays = ARGV[2 * (at - guards) + 1], ARGV[2 * (at - guards) + 2]
  if stays == 'ever' then redis.call('set', KEYS[at], record)
  elseif stays == 'gone' then redis.call('del', KEYS[at])
  else redis.call('set', KEYS[at], record, 'PX', stays) end
end
return false`;

// Arguments: now, a record header with the new expiry, and how long the server keeps the records.
const touch = `${isAlive}
for _, key in ipairs(KEYS) do
  local record = redis.pcall('get', key)
  if isAlive(record, tonumber(ARGV[1])) and struct.unpack('>d', record, 2) < struct.unpack('>d', ARGV[2], 2) then
    local renewed = ARGV[2] .. record:sub(10)
    if ARGV[3] == 'ever' then redis.call('set', key, renewed)
    else redis.call('set', key, renewed, 'PX', ARGV[3]) end
  end
end
return false`;

type FoundRecord = { readonly at: number; readonly record: Buffer };

/** How long the server keeps a record, in milliseconds; `gone` for an expired record. */
type RecordLifetime = number | 'ever' | 'gone';

/** Finds the first key with a record that has not expired at `now`. */
async function firstAlive(
  client: RedisClient,
  keys: readonly string[],
  now: number,
): Promise<FoundRecord | undefined> {
  return foundIn(await client.callBuffer('eval', [findFirst, keys.length, ...keys, now]));
}

/** Writes records, all or none. If a guard has a record that has not expired at `now`, writes nothing and returns the first such record. */
async function setUnless(
  client: RedisClient,
  guards: readonly string[],
  records: readonly { readonly key: string; readonly record: Buffer; readonly stays: RecordLifetime }[],
  now: number,
): Promise<FoundRecord | undefined> {
  const keys = [...guards, ...records.map(({ key }) => key)];
  const values = records.flatMap(({ record, stays }) => [record, stays]);
  return foundIn(
    await client.callBuffer('eval', [putUnless, keys.length, ...keys, now, guards.length, ...values]),
  );
}

/** Extends the expiry of records that have not expired at `now`; records that expire later anyway stay unchanged. */
async function touchAlive(
  client: RedisClient,
  keys: readonly string[],
  { expiresAt, stays }: { readonly expiresAt: number; readonly stays: RecordLifetime },
  now: number,
): Promise<void> {
  const header = writeRecord(new Uint8Array(0), expiresAt);
  await client.callBuffer('eval', [touch, keys.length, ...keys, now, header, stays]);
}

function foundIn(answer: unknown): FoundRecord | undefined {
  if (!Array.isArray(answer)) return undefined;
  const [at, record] = answer as [number, Buffer];
  return { at, record };
}

const format = 1;
const headerBytes = 9;

/** Builds a record. It copies the value, so the caller may change the value afterwards. */
function writeRecord(value: Uint8Array, expiresAt = Number.POSITIVE_INFINITY): Buffer {
  const record = Buffer.allocUnsafe(headerBytes + value.length);
  record.writeUInt8(format, 0);
  record.writeDoubleBE(expiresAt, 1);
  record.set(value, headerBytes);
  return record;
}

/** Returns a copy of the value. Undefined for a record that is missing, expired or of another format. */
function readRecord(record: Buffer | null, now: number): Uint8Array | undefined {
  if (record === null || record.length < headerBytes || record[0] !== format) return undefined;
  if (record.readDoubleBE(1) <= now) return undefined;
  return new Uint8Array(record.subarray(headerBytes));
}
