/**
 * Unpacks compressed request bodies, so that they can be read and folded. Runs on every runtime: with the codings of Node's zlib where
 * there is one, else with those of the platform's DecompressionStream. The bytes that came are kept beside, to be sent where nothing of
 * the request changes.
 */
import type * as zlibTypes from 'node:zlib';
import { LeporelloError } from '../../errors.ts';
import type { HeaderList } from './http.ts';
import { iterate, readBody } from './body.ts';

/** A request body as it came, and as it reads. */
export type Arrived = {
  /** The client's own bytes, packed or not. */
  readonly wire: Uint8Array;
  /** Unpacked; `wire` itself where it was not packed, or cannot be unpacked. */
  readonly body: Uint8Array;
  /** Why it cannot be read, where it cannot. */
  readonly unread: string | undefined;
};

/** Throws `body-too-large` where more than `maxBytes` would come out; no more than that is ever held. */
export async function unpackBody(headers: HeaderList, wire: Uint8Array, maxBytes: number): Promise<Arrived> {
  const applied = codingsOf(headers);
  const [coding] = applied;
  if (coding === undefined) return { wire, body: wire, unread: undefined };
  const unread = (reason: string): Arrived => ({ wire, body: wire, unread: reason });
  if (applied.length > 1) return unread(`the body is packed more than once (${told(applied.join(', '))})`);
  const unpacked = unpack(coding, wire);
  if (!unpacked) return unread(`the body is in a coding that is not read here (${told(coding)})`);
  try {
    return { wire, body: await readBody(unpacked, maxBytes), unread: undefined };
  } catch (error) {
    if (LeporelloError.isInstance(error) && error.code === 'body-too-large') throw error;
    return unread(`the body is not what its content-encoding says (${told(coding)})`);
  }
}

/** The codings of the body, in the order in which they were applied; `identity` is none. */
function codingsOf(headers: HeaderList): readonly string[] {
  return headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
}

/** A name from outside, bounded. */
function told(coding: string): string {
  return coding.slice(0, 40).replaceAll(/[^\w, -]/g, '?');
}

/** Undefined for codings that this runtime does not know. */
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

/** Asked of the process instead of imported, as the file would not load where there is no such module. */
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
      // Over HTTP a window has 8 MiB at most (RFC 9659); a larger one would only cost memory.
      const params = { [zlib.constants.ZSTD_d_windowLogMax]: 23 };
      return zlib.createZstdDecompress({ chunkSize, params });
    }
    default:
      return undefined;
  }
}

const chunkSize = 64 * 1024;

/** The platform's names of the codings. Platforms differ in which of them they know. */
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
