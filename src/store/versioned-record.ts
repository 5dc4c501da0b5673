/**
 * Encodes our records in a store as JSON with a version. They are encrypted by us, so only their version is checked; a record of a later
 * version counts as absent.
 */
import { LeporelloError } from '../errors.ts';

const VERSION = 1;

export function encodeRecord(record: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: VERSION, ...record }));
}

/** Decodes a record; undefined for one of a later version. `what` names its kind in errors. Throws `store-failed` for bytes that are not JSON. */
export function decodeRecord(bytes: Uint8Array, what: string): unknown {
  try {
    const { version, ...kept } = JSON.parse(new TextDecoder().decode(bytes)) as { readonly version: number };
    return version === VERSION ? kept : undefined;
  } catch (cause) {
    const message = `${what} in the store is not JSON. Delete the data folder to start with an empty store.`;
    throw new LeporelloError('store-failed', message, { cause });
  }
}
