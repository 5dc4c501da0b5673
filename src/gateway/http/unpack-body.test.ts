import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { unpackBody } from './body.ts';

const utf8 = new TextEncoder();
const plain = utf8.encode('{"model":"m","messages":[{"role":"user","content":"Ünïcode"}]}'.repeat(50));
const headers = (...values: string[]) => values.map((value) => ['content-encoding', value] as const);

afterEach(() => {
  vi.unstubAllGlobals();
});

describe.each(['with zlib', 'without zlib'])('a request body on a runtime %s', (where) => {
  const hasZlib = where === 'with zlib';
  const onRuntime = (): void => {
    if (!hasZlib) vi.stubGlobal('process', { ...process, getBuiltinModule: undefined });
  };

  it.each([[], [''], ['identity'], ['Identity, identity'], ['identity', '']])(
    'that is not compressed is returned itself: %j',
    async (...values) => {
      onRuntime();
      expect(await unpackBody(headers(...values.flat()), plain, 10)).toEqual({
        wire: plain,
        body: plain,
        unreadReason: undefined,
      });
    },
  );

  it.each<[string, Uint8Array]>([
    ['gzip', gzipSync(plain)],
    ['X-GZIP', gzipSync(plain)],
    ['identity, gzip', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['br', brotliCompressSync(plain)],
    ...(hasZlib ? [['zstd', zstdCompressSync(plain)] as [string, Uint8Array]] : []),
  ])('is decompressed from %s, and its own bytes are kept', async (coding, wire) => {
    onRuntime();
    const arrived = await unpackBody(headers(coding), wire, plain.length);
    expect(arrived.wire).toBe(wire);
    expect(Buffer.from(arrived.body).equals(plain)).toBe(true);
    expect(arrived.unreadReason).toBe(undefined);
  });

  it('that is larger than allowed when decompressed is refused, and so is a decompression bomb', async () => {
    onRuntime();
    const refused = { code: 'body-too-large' };
    await expect(unpackBody(headers('gzip'), gzipSync(plain), plain.length - 1)).rejects.toMatchObject(
      refused,
    );
    const bomb = gzipSync(new Uint8Array(64 * 1024 * 1024));
    const before = process.memoryUsage().arrayBuffers;
    await expect(unpackBody(headers('gzip'), bomb, 1024 * 1024)).rejects.toMatchObject(refused);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });

  it.each<[string, Uint8Array, string]>([
    [
      'gzip',
      plain,
      'the body cannot be decompressed with its content-encoding (gzip): correct or remove that header',
    ],
    [
      'gzip',
      gzipSync(plain).subarray(0, -9),
      'the body cannot be decompressed with its content-encoding (gzip): correct or remove that header',
    ],
    [
      'br',
      plain,
      'the body cannot be decompressed with its content-encoding (br): correct or remove that header',
    ],
    ['compress', plain, 'the gateway cannot read this content-encoding (compress)'],
    ['x\u00e9', plain, 'the gateway cannot read this content-encoding (x?)'],
    ['toString', plain, 'the gateway cannot read this content-encoding (tostring)'],
    ['gzip, br', brotliCompressSync(gzipSync(plain)), 'the body is compressed more than once (gzip, br)'],
  ])(
    'that cannot be decompressed is returned unchanged, with the reason: %s',
    async (coding, wire, unread) => {
      onRuntime();
      expect(await unpackBody(headers(coding), wire, 1e6)).toEqual({
        wire,
        body: wire,
        unreadReason: unread,
      });
    },
  );
});

it('a zstd body with a window that HTTP does not allow is not decompressed', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_enableLongDistanceMatching]: 1 };
  const wire = zstdCompressSync(new Uint8Array(20 * 1024 * 1024), { params });
  expect((await unpackBody(headers('zstd'), wire, 64 * 1024 * 1024)).unreadReason).toBe(
    'the body cannot be decompressed with its content-encoding (zstd): correct or remove that header',
  );
});
