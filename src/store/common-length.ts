/** How far two stretches of bytes are equal, as pure code is given it. Nothing but Node's own comparison. */

/** A power of the factor by which blocks shrink, so that the last are of one byte. */
const block = 8 ** 5;

/** How many bytes the two have in common from their first on. */
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
