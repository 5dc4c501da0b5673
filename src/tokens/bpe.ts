/**
 * Counts the tokens of a text by byte-pair merging, over a vocabulary packed into typed arrays: byte strings and their ranks, found by
 * hashing a range of bytes in place. No text is copied, sliced or kept as a key, and there is no object per token for the garbage
 * collector. Words repeat, so the counts of short pieces are remembered by their bytes. Other short pieces scan an array
 * for the lowest rank; long pieces keep the pairs in a heap, so that a megabyte without a break costs n log n and not n squared. Pure,
 * without I/O.
 */
import type { CountingSteps } from './token-counter.ts';

/** Returns the end of the piece that starts at `at`. It is always past `at`; do not call it at the end of the text. */
export type Splitter = (bytes: Uint8Array, at: number) => number;

/** Follows the last byte of a text: it is no UTF-8 byte and has no class. */
export const END = 0xff;

/** Counts the tokens of texts. */
export type TextCount = {
  count(text: string): number;
  /** Counts a long text in steps of about a millisecond. */
  countInSteps(text: string): CountingSteps;
};

/** UTF-16 units that are encoded and counted before a caller may pause. */
const STEP_UNITS = 16_384;

/** Bytes of a run without a break that are merged at once: merging takes n log n, and a run this long is not text. */
const MAX_RUN_BYTES = 16_384;

/**
 * Creates the count of texts that are split by `split`. It keeps a buffer and the counts of short pieces. A long text is counted part by part:
 * no pass over it is longer than a step.
 */
export function createTextCount(split: Splitter, vocabulary: Vocabulary): TextCount {
  const merger = createMerger(vocabulary);
  const remembered = rememberPieces(merger);
  // A UTF-16 unit takes at most three bytes, `END` one, and a short piece is read as a whole.
  const buffer = openText(STEP_UNITS * 3 + 1 + MAX_PIECE_BYTES);
  /** Counts a text of at most `STEP_UNITS`. A long run without a break is cut into pieces. */
  function countPart(text: string): number {
    write(text, buffer);
    const { bytes, written } = buffer;
    let tokens = 0;
    for (let at = 0; at < written; ) {
      const end = split(bytes, at);
      for (; end - at > MAX_RUN_BYTES; at += MAX_RUN_BYTES)
        tokens += merger.count(bytes, at, at + MAX_RUN_BYTES);
      tokens += end - at <= MAX_PIECE_BYTES ? remembered(buffer, at, end) : merger.count(bytes, at, end);
      at = end;
    }
    return tokens;
  }
  return {
    count(text) {
      let tokens = 0;
      for (let at = 0; at < text.length; ) {
        const end = partEnd(text, at);
        tokens += countPart(text.slice(at, end));
        at = end;
      }
      return tokens;
    },
    *countInSteps(text) {
      let tokens = 0;
      for (let at = 0; at < text.length; yield) {
        const end = partEnd(text, at);
        tokens += countPart(text.slice(at, end));
        at = end;
      }
      return tokens;
    },
  };
}

/** UTF-16 units in which the end of a part is looked for. */
const SEARCHED_UNITS = 2_048;

/**
 * Returns where the part that starts at `start` ends: between two pieces, so that the parts count as the text does. Units without such a
 * place are no text, and are cut anywhere.
 */
function partEnd(text: string, start: number): number {
  const max = start + STEP_UNITS;
  if (max >= text.length) return text.length;
  for (let at = max; at > max - SEARCHED_UNITS; at--)
    if (isBetweenPieces(text[at - 1]!, text[at]!)) return at;
  return text.codePointAt(max - 1)! > 0xffff ? max - 1 : max;
}

/** True where no piece of any encoding holds both units: after a word, a number or a line end. False where it depends on more than these two. */
function isBetweenPieces(left: string, right: string): boolean {
  if (lineEnd.test(left)) return !followsLineEnd.test(right);
  if (letter.test(left)) return afterLetter.test(right);
  return number.test(left) && afterNumber.test(right);
}

const lineEnd = /[\r\n]/;
/** Matches what may be in one piece with the line end before it: in o200k_base, that is also a slash. */
const followsLineEnd = /[\p{White_Space}/]/u;
const letter = /\p{L}/u;
/** An apostrophe may begin the end of a word, as in "it's". */
const afterLetter = /(?!')[\p{White_Space}\p{N}\p{S}\p{P}]/u;
const number = /\p{N}/u;
const afterNumber = /[\p{White_Space}\p{L}\p{S}\p{P}]/u;

/** A text as bytes, which `END` follows. `view` is of the same bytes. */
type TextBytes = { readonly bytes: Uint8Array; readonly view: DataView; written: number };

function openText(room: number): TextBytes {
  const bytes = new Uint8Array(room);
  return { bytes, view: new DataView(bytes.buffer), written: 0 };
}

/** Writes a text, and `END` after it. */
function write(text: string, into: TextBytes): void {
  into.written = encoder.encodeInto(text, into.bytes).written;
  into.bytes[into.written] = END;
}

/** Bytes of the longest piece whose count is remembered: nearly all words. */
const MAX_PIECE_BYTES = 12;

/** Places for counts of short pieces: 1 MB. Twice as many are 5 % faster, half as many 15 % slower. */
const PIECE_SLOTS = 65_536;

/** Words of a place: the bytes of the piece, and its length times 256 with its tokens. A place is in one line of the processor's cache. */
const SLOT_WORDS = 4;

/** Selects the bytes of a 32-bit word that belong to a piece, by their number. */
const byteMasks = new Int32Array([0, 0xff, 0xffff, 0xffffff, -1]);

/**
 * Returns a count of pieces of up to `MAX_PIECE_BYTES` bytes that remembers the newest. The bytes of a piece are its key, so no two pieces
 * share a count.
 */
function rememberPieces(merger: Merger): (text: TextBytes, start: number, end: number) => number {
  const slots = new Int32Array(PIECE_SLOTS * SLOT_WORDS);
  const shift = Math.clz32(PIECE_SLOTS - 1);
  return ({ bytes, view }, start, end) => {
    const length = end - start;
    if (length === 1) return 1;
    let first = view.getInt32(start, true);
    let second = 0;
    let third = 0;
    if (length <= 4) first &= byteMasks[length]!;
    else {
      second = view.getInt32(start + 4, true);
      if (length <= 8) second &= byteMasks[length - 4]!;
      else third = view.getInt32(start + 8, true) & byteMasks[length - 8]!;
    }
    const mixed =
      Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b) ^ Math.imul(third, 0xc2b2ae35) ^ length;
    const slot = (Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> shift) * SLOT_WORDS;
    const known = slots[slot + 3]!;
    if (
      known >> 8 === length &&
      slots[slot] === first &&
      slots[slot + 1] === second &&
      slots[slot + 2] === third
    )
      return known & 0xff;
    const tokens = merger.count(bytes, start, end);
    slots[slot] = first;
    slots[slot + 1] = second;
    slots[slot + 2] = third;
    slots[slot + 3] = (length << 8) | tokens;
    return tokens;
  };
}

/** Below this many bytes the scan is faster than the heap (measured: they cross between 60 and 120). */
const SCAN_LIMIT = 80;

export interface Merger {
  /** Counts the tokens of the bytes from `start` to `end` (exclusive). */
  count(bytes: Uint8Array, start: number, end: number): number;
}

export function createMerger(vocabulary: Vocabulary): Merger {
  const scratch = { bounds: new Int32Array(SCAN_LIMIT + 1), ranks: new Int32Array(SCAN_LIMIT + 1) };
  return {
    count(bytes, start, end) {
      const length = end - start;
      if (length < 2 || vocabulary.rank(bytes, start, end) !== NO_RANK) return Math.min(length, 1);
      return length <= SCAN_LIMIT
        ? countByScan(vocabulary, scratch, bytes, start, end)
        : countByHeap(vocabulary, bytes, start, end);
    },
  };
}

type Scratch = { readonly bounds: Int32Array; readonly ranks: Int32Array };

/** `bounds[k]` is the start of part k, `ranks[k]` the rank of part k joined with part k + 1. */
function countByScan(
  vocabulary: Vocabulary,
  { bounds, ranks }: Scratch,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  let parts = end - start;
  for (let k = 0; k < parts; k++) {
    bounds[k] = start + k;
    ranks[k] = k + 1 < parts ? vocabulary.rank(bytes, start + k, start + k + 2) : NO_RANK;
  }
  bounds[parts] = end;
  for (;;) {
    let best = 0;
    for (let k = 1; k < parts; k++) if (ranks[k]! < ranks[best]!) best = k;
    if (ranks[best] === NO_RANK) return parts;
    parts--;
    // For so few elements a call of copyWithin costs more than this loop.
    for (let k = best + 1; k < parts; k++) {
      bounds[k] = bounds[k + 1]!;
      ranks[k] = ranks[k + 1]!;
    }
    bounds[parts] = end;
    ranks[best] = best + 1 < parts ? vocabulary.rank(bytes, bounds[best]!, bounds[best + 2]!) : NO_RANK;
    if (best > 0) ranks[best - 1] = vocabulary.rank(bytes, bounds[best - 1]!, bounds[best + 1]!);
  }
}

/** Parts are a linked list of places; the heap holds `rank * 2^32 + place`, so equal ranks merge from the left. */
function countByHeap(vocabulary: Vocabulary, bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const next = new Int32Array(length);
  const previous = new Int32Array(length + 1);
  const ranks = new Int32Array(length);
  const heap = createHeap(length);

  const rankPair = (place: number): void => {
    const middle = next[place]!;
    const rank = middle < length ? vocabulary.rank(bytes, start + place, start + next[middle]!) : NO_RANK;
    ranks[place] = rank;
    if (rank !== NO_RANK) heap.push(rank * PLACES + place);
  };

  for (let place = 0; place < length; place++) {
    next[place] = place + 1;
    previous[place + 1] = place;
  }
  for (let place = 0; place < length; place++) rankPair(place);
  let parts = length;
  for (let key = heap.pop(); key !== undefined; key = heap.pop()) {
    const rank = Math.floor(key / PLACES);
    const place = key - rank * PLACES;
    // Entries stay in the heap when a neighbor merges; an outdated rank identifies them.
    if (ranks[place] !== rank) continue;
    const gone = next[place]!;
    next[place] = next[gone]!;
    previous[next[gone]!] = place;
    ranks[gone] = NO_RANK;
    parts--;
    rankPair(place);
    if (place > 0) rankPair(previous[place]!);
  }
  return parts;
}

const PLACES = 2 ** 32;

/** A binary min-heap of numbers. */
function createHeap(capacity: number) {
  let keys = new Float64Array(capacity);
  let size = 0;
  return {
    push(key: number): void {
      if (size === keys.length) keys = grown(keys);
      let at = size++;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (keys[parent]! <= key) break;
        keys[at] = keys[parent]!;
        at = parent;
      }
      keys[at] = key;
    },
    pop(): number | undefined {
      if (size === 0) return undefined;
      const top = keys[0]!;
      const key = keys[--size]!;
      let at = 0;
      for (let child = 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && keys[child + 1]! < keys[child]!) child++;
        if (keys[child]! >= key) break;
        keys[at] = keys[child]!;
        at = child;
      }
      keys[at] = key;
      return top;
    },
  };
}

function grown(keys: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(keys.length * 2 + 16);
  larger.set(keys);
  return larger;
}

/** The rank of bytes that are no token: later than every rank, so they never merge. */
export const NO_RANK = 0x7fffffff;

export interface Vocabulary {
  /** Returns the rank of the bytes from `start` to `end` (exclusive, at least one byte), or `NO_RANK`. */
  rank(bytes: Uint8Array, start: number, end: number): number;
}

/**
 * A vocabulary in one piece of memory, which threads can share and files can hold. It begins with 32-bit words: the format, the number of
 * tokens, the bytes of the longest token, the number of slots, and the bytes of the pool; the offsets of the tokens in the pool; the slots
 * of a hash table, each a token plus 1, or 0; and the tokens of two bytes. The pool follows: the bytes of all tokens.
 */
export type PackedVocabulary = ArrayBufferLike;

/** Identifies the layout of a packed vocabulary. */
export const PACKED_FORMAT = 0x4c455001;
export const PAIRS = 65_536;

/** Returns the parts of a packed vocabulary; undefined for memory that holds something else. */
export function partsOf(packed: PackedVocabulary) {
  if (packed.byteLength < 20) return undefined;
  const [format, tokens, longest, slotCount, poolBytes] = new Int32Array(packed, 0, 5);
  const offsetsAt = 20;
  const slotsAt = offsetsAt + (tokens! + 1) * 4;
  const pairsAt = slotsAt + slotCount! * 4;
  const poolAt = pairsAt + PAIRS * 4;
  if (format !== PACKED_FORMAT || packed.byteLength !== poolAt + poolBytes!) return undefined;
  return {
    longest: longest!,
    offsets: new Int32Array(packed, offsetsAt, tokens! + 1),
    slots: new Int32Array(packed, slotsAt, slotCount),
    pairs: new Int32Array(packed, pairsAt, PAIRS),
    pool: new Uint8Array(packed, poolAt),
  };
}

/** Opens a packed vocabulary. Throws for memory that holds something else. */
export function openVocabulary(packed: PackedVocabulary): Vocabulary {
  const parts = partsOf(packed);
  if (!parts) throw new TypeError('These bytes are not a packed vocabulary: pack the vocabulary again.');
  const { longest, offsets, slots, pairs, pool } = parts;
  const shift = Math.clz32(slots.length - 1);
  const mask = slots.length - 1;
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

/** Returns a multiplicative hash; its top bits are the best distributed. */
export function hash(bytes: Uint8Array, start: number, end: number): number {
  let state = end - start;
  for (let k = start; k < end; k++) state = Math.imul(state ^ bytes[k]!, 0x9e3779b1) ^ (state >>> 13);
  return Math.imul(state ^ (state >>> 15), 0x85ebca6b);
}

const encoder = new TextEncoder();
