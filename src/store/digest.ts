/**
 * The digest that the gateway and the command line pass into pure code. Nothing but Node's own SHA-256.
 */
import { hash } from 'node:crypto';

/** SHA-256 of the bytes as base64url, 43 characters. */
export function sha256(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url');
}
