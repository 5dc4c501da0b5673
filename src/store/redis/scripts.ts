/** What Redis does for us within itself, in one round trip: small programs in its own language, over records as redis-record.ts has them. */
import type { RedisClient } from './connection.ts';

/** Whether a record is one of ours and has not expired by our clock. A Lua function. */
const isAlive = `local function isAlive(record, now)
  return type(record) == 'string' and #record >= 9 and record:byte(1) == 1 and struct.unpack('>d', record, 2) > now
end`;

// A key may hold what is no text at all: that counts as absent.
const findFirst = `${isAlive}
for at, key in ipairs(KEYS) do
  local record = redis.pcall('get', key)
  if isAlive(record, tonumber(ARGV[1])) then return {at - 1, record} end
end
return false`;

// Keys: the guards, then those of the entries. Arguments: now, how many guards, then of each entry its record and how long it stays.
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

// Arguments: now, a record without a value that expires when they are to, and how long the server keeps them.
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

/** Milliseconds that the server keeps a record; `gone` for one that has expired. */
export type RecordLifetime = number | 'ever' | 'gone';

/** The first of the keys under which something stands that is alive at `now`. */
export async function firstAlive(
  client: RedisClient,
  keys: readonly string[],
  now: number,
): Promise<FoundRecord | undefined> {
  return foundIn(await client.callBuffer('eval', [findFirst, keys.length, ...keys, now]));
}

/** Sets all records, all or none; none where something is alive at `now` under a guard: the first that is. */
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

/** Has those of the keys that are alive at `now` expire later; those that would expire later anyway stay as they are. */
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

/** A copy: what the caller does to the value afterwards changes nothing. */
export function writeRecord(value: Uint8Array, expiresAt = Number.POSITIVE_INFINITY): Buffer {
  const record = Buffer.allocUnsafe(headerBytes + value.length);
  record.writeUInt8(format, 0);
  record.writeDoubleBE(expiresAt, 1);
  record.set(value, headerBytes);
  return record;
}

/** The value in memory of its own. Undefined for what is not there, has expired, or is not of this format. */
export function readRecord(record: Buffer | null, now: number): Uint8Array | undefined {
  if (record === null || record.length < headerBytes || record[0] !== format) return undefined;
  if (record.readDoubleBE(1) <= now) return undefined;
  return new Uint8Array(record.subarray(headerBytes));
}
