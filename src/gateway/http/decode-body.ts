/** Unpacks compressed response bodies as they stream, for upstreams that compress although nobody asked for it. */
import { pipeline } from 'node:stream';
import type { Duplex, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { HeaderList } from './http.ts';

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
  deflate: createInflate,
};

type Encoded = { readonly headers: HeaderList; readonly body: Readable };

/**
 * The response unpacked, without the headers that spoke of the packed one. What has no encoding, or one that is not known
 * here, comes back as it is. Destroying the stream that comes back destroys the one that went in.
 */
export function decoded(headers: HeaderList, body: Readable): Encoded {
  const applied = headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== 'identity' && encoding !== '');
  if (applied.length === 0 || !applied.every((name) => Object.hasOwn(decoders, name))) {
    return { headers, body };
  }
  const stages = applied.toReversed().map((name) => decoders[name]!());
  const last = stages.at(-1)!;
  // Errors come out of `last`, where the reader stands.
  pipeline([body, ...stages], () => undefined);
  return {
    headers: headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length'),
    body: last,
  };
}
