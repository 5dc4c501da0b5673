/** Byte operations that use Node and are passed into pure code: a digest, and the length of a common prefix. */
import { hash } from 'node:crypto';

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
