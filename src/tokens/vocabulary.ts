/**
 * A BPE vocabulary packed into typed arrays: byte strings and their ranks, found by hashing a stretch of bytes in place.
 * No text is ever copied, sliced or kept as a key, and there is no object per token for the garbage collector to walk.
 * Pure: who loads the rank data is `ranks.ts`.
 */

/** What is not a token: later than every rank, so it never merges. */
export const NO_RANK = 0x7fffffff;

export interface Vocabulary {
  /** Rank of the bytes from `start` to `end` (exclusive, at least one byte), or `NO_RANK`. */
  rank(bytes: Uint8Array, start: number, end: number): number;
}

/** Text where the bytes of a token are valid UTF-8, else the bytes. */
export type Token = string | readonly number[];

/** Packs tokens that stand in the order of their ranks. */
export function createVocabulary(tokens: readonly Token[]): Vocabulary {
  const { pool, offsets, longest } = packTokens(tokens);
  const slots = new Int32Array(tableSize(tokens.length));
  const shift = Math.clz32(slots.length - 1);
  const mask = slots.length - 1;
  const pairs = new Int32Array(65_536).fill(NO_RANK);

  for (let token = 0; token < tokens.length; token++) {
    const start = offsets[token]!;
    const end = offsets[token + 1]!;
    if (end - start === 2) pairs[(pool[start]! << 8) | pool[start + 1]!] = token;
    let slot = hash(pool, start, end) >>> shift;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = token + 1;
  }

  return {
    rank(bytes, start, end) {
      const length = end - start;
      if (length === 2) return pairs[(bytes[start]! << 8) | bytes[start + 1]!]!;
      if (length > longest) return NO_RANK;
      let slot = hash(bytes, start, end) >>> shift;
      for (let entry = slots[slot]!; entry !== 0; entry = slots[slot]!) {
        const offset = offsets[entry - 1]!;
        if (offsets[entry]! - offset === length && sameBytes(pool, offset, bytes, start, length)) {
          return entry - 1;
        }
        slot = (slot + 1) & mask;
      }
      return NO_RANK;
    },
  };
}

function sameBytes(left: Uint8Array, leftAt: number, right: Uint8Array, rightAt: number, length: number) {
  for (let k = 0; k < length; k++) if (left[leftAt + k] !== right[rightAt + k]) return false;
  return true;
}

/** Multiplicative; the top bits are the good ones. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let state = end - start;
  for (let k = start; k < end; k++) state = Math.imul(state ^ bytes[k]!, 0x9e3779b1) ^ (state >>> 13);
  return Math.imul(state ^ (state >>> 15), 0x85ebca6b);
}

/** A power of two at least twice the entries, so that probes stay short. */
function tableSize(entries: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(entries, 1) * 2));
}

/** Token k stands in `pool` from `offsets[k]` to `offsets[k + 1]`. */
function packTokens(tokens: readonly Token[]) {
  const pool = new Uint8Array(tokens.reduce((sum, token) => sum + token.length * 3, 0));
  const offsets = new Uint32Array(tokens.length + 1);
  let longest = 0;
  for (let token = 0; token < tokens.length; token++) {
    const start = offsets[token]!;
    const end = writeToken(tokens[token]!, pool, start);
    offsets[token + 1] = end;
    longest = Math.max(longest, end - start);
  }
  return { pool: pool.slice(0, offsets[tokens.length]), offsets, longest };
}

const encoder = new TextEncoder();

/** Returns where the token ends. */
function writeToken(token: Token, pool: Uint8Array, start: number): number {
  for (let k = 0; k < token.length; k++) {
    const unit = typeof token === 'string' ? token.charCodeAt(k) : token[k]!;
    if (typeof token === 'string' && unit >= 0x80) {
      return start + encoder.encodeInto(token, pool.subarray(start)).written;
    }
    pool[start + k] = unit;
  }
  return start + token.length;
}
