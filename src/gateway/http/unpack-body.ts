/**
 * Decompresses request bodies, so that they can be read and folded. Runs on every runtime: with Node's zlib if there is one, otherwise with
 * the platform's DecompressionStream. The client's bytes are kept, to be sent when nothing in the request changes.
 */
import type * as zlibTypes from 'node:zlib';
import { LeporelloError } from '../../errors.ts';
import type { HeaderList } from './http.ts';
import { iterate, readBody } from './body.ts';

/** A request body as the client sent it, and decompressed. */
export type ReceivedBody = {
  /** The client's own bytes, compressed or not. */
  readonly wire: Uint8Array;
  /** The decompressed bytes; `wire` itself when it is not compressed or cannot be decompressed. */
  readonly body: Uint8Array;
  /** The reason why the body cannot be read; undefined when it can. */
  readonly unread: string | undefined;
};

/** Decompresses a request body. Throws `body-too-large` for more than `maxBytes` decompressed bytes, and never holds more than that. */
export async function unpackBody(
  headers: HeaderList,
  wire: Uint8Array,
  maxBytes: number,
): Promise<ReceivedBody> {
  const applied = codingsOf(headers);
  const [coding] = applied;
  if (coding === undefined) return { wire, body: wire, unread: undefined };
  const unread = (reason: string): ReceivedBody => ({ wire, body: wire, unread: reason });
  if (applied.length > 1)
    return unread(`the body is compressed more than once (${sanitized(applied.join(', '))})`);
  const unpacked = unpack(coding, wire);
  if (!unpacked) return unread(`the gateway cannot read this content-encoding (${sanitized(coding)})`);
  try {
    return { wire, body: await readBody(unpacked, maxBytes), unread: undefined };
  } catch (error) {
    if (LeporelloError.isInstance(error) && error.code === 'body-too-large') throw error;
    return unread(`the body does not match its content-encoding (${sanitized(coding)})`);
  }
}

/** Returns the encodings of the body in the order in which they were applied, without `identity`. */
function codingsOf(headers: HeaderList): readonly string[] {
  return headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
}

/** Returns a name from the client in a form that is safe to log. */
function sanitized(coding: string): string {
  return coding.slice(0, 40).replaceAll(/[^\w, -]/g, '?');
}

/** Decompresses; undefined for an encoding that this runtime does not know. */
function unpack(coding: string, packed: Uint8Array): AsyncIterable<Uint8Array> | undefined {
  const decoder = zlibDecoder(coding);
  if (decoder) {
    decoder.end(packed);
    return decoder as AsyncIterable<Uint8Array>;
  }
  return platformDecoder(coding, packed);
}

type Zlib = Pick<
  typeof zlibTypes,
  'constants' | 'createBrotliDecompress' | 'createGunzip' | 'createInflate' | 'createZstdDecompress'
>;

type NodeProcess = { readonly getBuiltinModule?: (name: 'node:zlib') => Zlib };

/** Returns Node's decoder. The module is not imported, because this file must also load on runtimes without it. */
function zlibDecoder(coding: string) {
  const zlib = (globalThis as { readonly process?: NodeProcess }).process?.getBuiltinModule?.('node:zlib');
  if (!zlib) return undefined;
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip({ chunkSize });
    case 'deflate':
      return zlib.createInflate({ chunkSize });
    case 'br':
      return zlib.createBrotliDecompress({ chunkSize });
    case 'zstd': {
      // Over HTTP the zstd window is at most 8 MiB (RFC 9659); a larger one would only cost memory.
      const params = { [zlib.constants.ZSTD_d_windowLogMax]: 23 };
      return zlib.createZstdDecompress({ chunkSize, params });
    }
    default:
      return undefined;
  }
}

const chunkSize = 64 * 1024;

/** The platform's names of the encodings. Not every platform supports all of them. */
const platformNames: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
  zstd: 'zstd',
};

function platformDecoder(coding: string, packed: Uint8Array): AsyncIterable<Uint8Array> | undefined {
  const name = Object.hasOwn(platformNames, coding) ? platformNames[coding] : undefined;
  if (name === undefined) return undefined;
  try {
    const decoder = new DecompressionStream(name as CompressionFormat);
    const bytes = new Blob([packed as Uint8Array<ArrayBuffer>]).stream();
    return iterate(bytes.pipeThrough(decoder));
  } catch {
    return undefined;
  }
}
