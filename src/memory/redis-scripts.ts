/** What Redis does for us within itself, in one round trip: small programs in its own language, over records as redis-record.ts has them. */
import type { RedisClient } from './redis-connection.ts';

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

/** The first of the keys under which something stands that is alive at `now`. */
export async function firstAlive(
  client: RedisClient,
  keys: readonly string[],
  now: number,
): Promise<{ readonly at: number; readonly record: Buffer } | undefined> {
  const found = await client.callBuffer('eval', [findFirst, keys.length, ...keys, now]);
  if (!Array.isArray(found)) return undefined;
  const [at, record] = found as [number, Buffer];
  return { at, record };
}
