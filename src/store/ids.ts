/**
 * Recognizes memory ids: `mem_` and 16 characters of Crockford's base32 (80 bits). Pure, so that code without an encrypted store can use
 * it. Creating ids takes the secret: see encrypted-store.ts.
 */

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
