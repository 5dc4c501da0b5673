/**
 * Makes bytes smaller before they are encrypted. Small ones at once, large ones in Node's thread pool, so that the event
 * loop is never held for long. The first byte of a record says which way was used, so that ways can change.
 */
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

/** High four bits: version of the record. Low four bits: how its content is compressed. */
export const formats = { stored: 0x10, deflated: 0x11, zstd: 0x12 } as const;

export type Packed = { readonly format: number; readonly bytes: Uint8Array };

/** Measured on recorded tool output, Node 24: zstd takes 0.2 ms for 64 kB at once, 0.5 ms through the thread pool. */
const largeBytes = 64 * 1024;

/** Not worth the start of a compressor: 30 us to win nothing. A record of what a request was sent with is shorter. */
const smallBytes = 200;

// Other runtimes have node:zlib without zstd.
const best = 'zstdCompress' in zlib ? formats.zstd : formats.deflated;

/** Content that does not get smaller is stored as it is. */
export async function pack(bytes: Uint8Array, format: number = best): Promise<Packed> {
  if (bytes.length <= smallBytes) return { format: formats.stored, bytes };
  const packed = await compress(bytes, format);
  return packed.length < bytes.length ? { format, bytes: packed } : { format: formats.stored, bytes };
}

/** Throws for a format it does not know and for content that is damaged. */
export async function unpack({ format, bytes }: Packed): Promise<Uint8Array> {
  const large = bytes.length > largeBytes;
  switch (format) {
    case formats.stored:
      return bytes;
    case formats.deflated:
      return plain(large ? await promisify(zlib.inflateRaw)(bytes) : zlib.inflateRawSync(bytes));
    case formats.zstd:
      return plain(large ? await promisify(zlib.zstdDecompress)(bytes) : zlib.zstdDecompressSync(bytes));
    default:
      throw new Error(`A record has the unknown format ${format}.`);
  }
}

async function compress(bytes: Uint8Array, format: number): Promise<Uint8Array> {
  const large = bytes.length > largeBytes;
  switch (format) {
    case formats.stored:
      return bytes;
    case formats.deflated: {
      const options = { level: 1 };
      return large ? promisify(zlib.deflateRaw)(bytes, options) : zlib.deflateRawSync(bytes, options);
    }
    case formats.zstd: {
      const options = { params: { [zlib.constants.ZSTD_c_compressionLevel]: 3 } };
      return large ? promisify(zlib.zstdCompress)(bytes, options) : zlib.zstdCompressSync(bytes, options);
    }
    default:
      throw new Error(`Nothing is written in the format ${format}.`);
  }
}

/** A plain view of Node's buffer: the rest of the code knows bytes only. */
function plain(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
