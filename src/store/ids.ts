/**
 * Digests of bytes, and memory ids: `mem_` and 16 characters of Crockford's base32 (80 bits). Pure code gets the byte operations passed in,
 * since they use Node. Creating memory ids takes the secret: see encrypted-store.ts.
 */
import { hash } from 'node:crypto';

// https://www.crockford.com/base32.html, in lower case: no i, l, o, u.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const shape = /^mem_[0-9a-hjkmnp-tv-z]{16}$/;

/** True for text that has the form of a memory id. Only the encrypted store knows whether an original exists under it. */
export function isMemoryId(text: string): boolean {
  return shape.test(text);
}

/** Returns the distinct memory ids in a text. */
export function memoryIdsIn(bytes: Uint8Array): readonly string[] {
  return [...new Set(new TextDecoder().decode(bytes).match(/\bmem_[0-9a-hjkmnp-tv-z]{16}\b/g))];
}

/** Encodes the first 80 bits of a digest as 16 characters. Needs at least 10 bytes. */
export function base32Of(digest: Uint8Array): string {
  let bits = 0n;
  for (const byte of digest.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let text = '';
  for (let shift = 75n; shift >= 0n; shift -= 5n) text += alphabet[Number((bits >> shift) & 31n)];
  return text;
}

/** Returns the SHA-256 of the bytes as base64url, 43 characters. */
export function sha256(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url');
}

/** Size of the largest compared block: a power of the factor by which blocks shrink, so that the last blocks have one byte. */
const block = 8 ** 5;

/** Returns the length of the common prefix of two byte arrays. */
export function commonLength(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  for (let size = block; size > 0; size = Math.floor(size / 8)) {
    while (at + size <= length && isSame(one, other, at, size)) at += size;
  }
  return at;
}

function isSame(one: Uint8Array, other: Uint8Array, at: number, size: number): boolean {
  return Buffer.compare(one.subarray(at, at + size), other.subarray(at, at + size)) === 0;
}
