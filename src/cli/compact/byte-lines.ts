/** Cuts a byte stream into lines, one in memory at a time. Bytes stay what they are; only a byte order mark at the start goes. */

export type Line = {
  /** From 1. */
  readonly number: number;
  /** Without the `\n` that ends it. */
  readonly bytes: Uint8Array;
  /** The `\n`, or nothing where the last line has none. */
  readonly end: Uint8Array;
};

const lineFeed = new Uint8Array([10]);
const nothing = new Uint8Array(0);

export async function* byteLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let begun: Uint8Array[] = [];
  let number = 1;
  for await (const chunk of chunks) {
    let from = 0;
    for (let to = chunk.indexOf(10); to >= 0; to = chunk.indexOf(10, from)) {
      yield lineOf([...begun, chunk.subarray(from, to)], number, lineFeed);
      begun = [];
      number += 1;
      from = to + 1;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  }
  if (begun.length > 0) yield lineOf(begun, number, nothing);
}

function lineOf(pieces: readonly Uint8Array[], number: number, end: Uint8Array): Line {
  const bytes = joined(pieces);
  const marked = number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return { number, bytes: marked ? bytes.subarray(3) : bytes, end };
}

/** The pieces as one array; a single one comes back as it is. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
