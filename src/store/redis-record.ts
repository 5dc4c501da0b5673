/**
 * What stands under a key in Redis: when the entry expires by our clock, and its value. Pure.
 *
 *     format (1 byte) | expires at, milliseconds since the epoch, Infinity for never (8, a double, big-endian) | value
 */

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
