/**
 * Byte-pair merging: how many tokens a piece of bytes becomes. Pure algorithm over a vocabulary, no text, no I/O.
 * Short pieces scan an array for the lowest rank; long ones keep the pairs in a heap, so that a megabyte without a
 * break costs n log n and not n squared.
 */
import { NO_RANK, type Vocabulary } from './vocabulary.ts';

/** Below this many bytes the scan is quicker than the heap (measured: they cross between 60 and 120). */
const SCAN_LIMIT = 80;

export interface Merger {
  /** Tokens of the bytes from `start` to `end` (exclusive). */
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

/** `bounds[k]` is where part k starts, `ranks[k]` the rank of part k joined with part k + 1. */
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
    // By hand: for so few elements a call of copyWithin costs more than the copy.
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
    // Entries are not taken out when a neighbour merges: they are told by their old rank.
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
