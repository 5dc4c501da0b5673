/**
 * Packs a vocabulary into one piece of memory (`PackedVocabulary` in bpe.ts says how it is laid out). Threads share this memory, and nothing
 * of it is on the heap, where each full garbage collection would visit it.
 */
import { type PackedVocabulary, hash, NO_RANK, PACKED_FORMAT, PAIRS, partsOf } from './bpe.ts';

/** Text if the bytes of a token are valid UTF-8, else the bytes. */
export type Token = string | readonly number[];

/** Packs tokens that are in the order of their ranks. */
export function packVocabulary(tokens: readonly Token[]): PackedVocabulary {
  const { pool, offsets, longest } = poolOf(tokens);
  const slotCount = tableSize(tokens.length);
  const packed = allocate((5 + offsets.length + slotCount + PAIRS) * 4 + pool.length);
  new Int32Array(packed, 0, 5).set([PACKED_FORMAT, tokens.length, longest, slotCount, pool.length]);
  const parts = partsOf(packed)!;
  parts.offsets.set(offsets);
  parts.pool.set(pool);
  parts.pairs.fill(NO_RANK);
  const { slots, pairs } = parts;
  const shift = Math.clz32(slotCount - 1);
  const mask = slotCount - 1;
  for (let token = 0; token < tokens.length; token++) {
    const start = offsets[token]!;
    const end = offsets[token + 1]!;
    if (end - start === 2) pairs[(pool[start]! << 8) | pool[start + 1]!] = token;
    let slot = hash(pool, start, end) >>> shift;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = token + 1;
  }
  return packed;
}

/** Allocates memory that threads can share, where the platform has it. */
function allocate(bytes: number): PackedVocabulary {
  return typeof SharedArrayBuffer === 'undefined' ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes);
}

/** Returns a power of two of at least twice the entries, so that probes stay short. */
function tableSize(entries: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(entries, 1) * 2));
}

/** Joins the tokens: token k is in `pool` from `offsets[k]` to `offsets[k + 1]`. */
function poolOf(tokens: readonly Token[]) {
  const pool = new Uint8Array(tokens.reduce((sum, token) => sum + token.length * 3, 0));
  const offsets = new Int32Array(tokens.length + 1);
  let longest = 0;
  for (let token = 0; token < tokens.length; token++) {
    const start = offsets[token]!;
    const end = writeToken(tokens[token]!, pool, start);
    offsets[token + 1] = end;
    longest = Math.max(longest, end - start);
  }
  return { pool: pool.subarray(0, offsets[tokens.length]), offsets, longest };
}

const encoder = new TextEncoder();

/** Returns the end of the token. */
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
