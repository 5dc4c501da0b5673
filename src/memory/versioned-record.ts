/**
 * Records of ours in a store, as JSON with a version. They are sealed by us, so only their version is checked; one of a later version
 * counts as absent.
 */
import { LeporelloError } from '../errors.ts';

const VERSION = 1;

export function encodeRecord(record: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: VERSION, ...record }));
}

/** `what` names the kind of record for people. Throws `store-failed` for bytes that are no JSON. */
export function decodeRecord<Kept extends object>(bytes: Uint8Array, what: string): Kept | undefined {
  try {
    const { version, ...kept } = JSON.parse(new TextDecoder().decode(bytes)) as { readonly version: number };
    return version === VERSION ? (kept as Kept) : undefined;
  } catch (cause) {
    const message = `${what} in the store is not JSON. Delete the data folder to start anew.`;
    throw new LeporelloError('store-failed', message, { cause });
  }
}
