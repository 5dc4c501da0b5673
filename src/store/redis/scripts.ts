/**
 * Lua scripts that Redis runs in one round trip, and the format of the records they read. A record:
 *
 *     format (1 byte) | expires at, milliseconds since the epoch, Infinity for never (8, a double, big-endian) | value
 */
import type { RedisClient } from './connection.ts';

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

export type FoundRecord = { readonly at: number; readonly record: Buffer };

/** How long the server keeps a record, in milliseconds; `gone` for an expired record. */
export type RecordLifetime = number | 'ever' | 'gone';

/** Finds the first key with a record that has not expired at `now`. */
export async function firstAlive(
  client: RedisClient,
  keys: readonly string[],
  now: number,
): Promise<FoundRecord | undefined> {
  return foundIn(await client.callBuffer('eval', [findFirst, keys.length, ...keys, now]));
}

/** Writes records, all or none. If a guard has a record that has not expired at `now`, writes nothing and returns the first such record. */
export async function setUnless(
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
export async function touchAlive(
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
export function writeRecord(value: Uint8Array, expiresAt = Number.POSITIVE_INFINITY): Buffer {
  const record = Buffer.allocUnsafe(headerBytes + value.length);
  record.writeUInt8(format, 0);
  record.writeDoubleBE(expiresAt, 1);
  record.set(value, headerBytes);
  return record;
}

/** Returns a copy of the value. Undefined for a record that is missing, expired or of another format. */
export function readRecord(record: Buffer | null, now: number): Uint8Array | undefined {
  if (record === null || record.length < headerBytes || record[0] !== format) return undefined;
  if (record.readDoubleBE(1) <= now) return undefined;
  return new Uint8Array(record.subarray(headerBytes));
}
