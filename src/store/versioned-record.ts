/**
 * Records of ours in a store, as JSON with a version. They are sealed by us, so only their version is checked; one of a later version
 * counts as absent.
 */
import { LeporelloError } from '../errors.ts';

const VERSION = 1;

export function encodeRecord(record: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: VERSION, ...record }));
}

/** The record as it was encoded; undefined for one of a later version. `what` names its kind for people. Throws `store-failed` for bytes that are no JSON. */
export function decodeRecord(bytes: Uint8Array, what: string): unknown {
  try {
    const { version, ...kept } = JSON.parse(new TextDecoder().decode(bytes)) as { readonly version: number };
    return version === VERSION ? kept : undefined;
  } catch (cause) {
    const message = `${what} in the store is not JSON. Delete the data folder to start anew.`;
    throw new LeporelloError('store-failed', message, { cause });
  }
}
