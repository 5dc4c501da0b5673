/**
 * What kind of character stands at a place in UTF-8 bytes: the classes the split patterns of the tokenizers speak of.
 * Pure. Classes come from the engine's own Unicode tables, a page of 256 code points at a time, when first met.
 */

/** Classes are bits, so that a set of classes is one test. */
export const UPPER = 1; // \p{Lu} \p{Lt}
export const LOWER = 2; // \p{Ll}
export const CASELESS = 4; // \p{Lm} \p{Lo}
export const MARK = 8; // \p{M}
export const NUMBER = 16; // \p{N}
export const NEWLINE = 32; // \r \n
export const BLANK = 64; // any other white space
export const OTHER = 128;

/** Stands behind the last byte of a text: it is no UTF-8 byte and has no class. */
export const END = 0xff;

/** Class of the character whose first byte is at `at`; 0 at the end of the text. */
export function classAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte < 0x80) return ascii[byte]!;
  return byte === END ? 0 : wideClassAt(bytes, at);
}

/** Bytes of the character whose first byte is given. */
export function widthOf(byte: number): number {
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

function wideClassAt(bytes: Uint8Array, at: number): number {
  const code = codePointAt(bytes, at);
  const page = pages[code >> 8] ?? readPage(code >> 8);
  return page[code & 0xff]!;
}

function codePointAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at]!;
  const second = bytes[at + 1]! & 0x3f;
  if (lead < 0xe0) return ((lead & 0x1f) << 6) | second;
  const third = bytes[at + 2]! & 0x3f;
  if (lead < 0xf0) return ((lead & 0x0f) << 12) | (second << 6) | third;
  return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | (bytes[at + 3]! & 0x3f);
}

// White_Space and not \s: the tokenizers' own engine counts U+0085 as space and U+FEFF not, \s does the opposite.
const tests: readonly (readonly [RegExp, number])[] = [
  [/[\p{Lu}\p{Lt}]/u, UPPER],
  [/\p{Ll}/u, LOWER],
  [/[\p{Lm}\p{Lo}]/u, CASELESS],
  [/\p{M}/u, MARK],
  [/\p{N}/u, NUMBER],
  [/[\r\n]/u, NEWLINE],
  [/\p{White_Space}/u, BLANK],
];

function classOf(code: number): number {
  const character = String.fromCodePoint(code);
  return tests.find(([test]) => test.test(character))?.[1] ?? OTHER;
}

const pages: (Uint8Array | undefined)[] = [];

function readPage(index: number): Uint8Array {
  const page = Uint8Array.from({ length: 256 }, (_, offset) => classOf(index * 256 + offset));
  pages[index] = page;
  return page;
}

const ascii = readPage(0).subarray(0, 128);
