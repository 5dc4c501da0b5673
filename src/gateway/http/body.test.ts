import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { peekBody, readBody, receiveBody } from './body.ts';
import type { HeaderList } from './http.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

async function* chunks(texts: readonly string[], ending?: Error): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield bytes(text);
  if (ending) throw ending;
}

async function* chunksOf(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(part);
}

describe('peeking into a body', () => {
  it('returns the text of a short body, and the body again', async () => {
    const { text, body } = await peekBody(chunks(['a\xc3', 'b']), 10);
    expect(text).toBe('a\xc3b');
    expect(await readBody(body, 100)).toEqual(bytes('a\xc3b'));
  });

  it('returns a long body completely, but no text', async () => {
    const { text, body } = await peekBody(chunks(['12345', '67890', 'abc', 'def']), 8);
    expect(text).toBeUndefined();
    expect(await readBody(body, 100)).toEqual(bytes('1234567890abcdef'));
  });

  it('returns the beginning of a broken body, and the same error', async () => {
    const { text, body } = await peekBody(chunks(['123'], new Error('cut')), 100);
    expect(text).toBeUndefined();
    const iterator = body[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual(bytes('123'));
    await expect(iterator.next()).rejects.toThrow('cut');
  });

  it('ends the source when its reader ends, even before the first chunk', async () => {
    let ended = 0;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.resolve({ done: false as const, value: bytes('x') }),
        return: () => Promise.resolve({ done: true as const, value: (ended++, undefined) }),
      }),
    };
    const { body } = await peekBody(source, 3);
    await body[Symbol.asyncIterator]().return?.();
    expect(ended).toBe(1);
  });
});

describe('readBody', () => {
  it('joins the chunks in order', async () => {
    expect(await readBody(chunksOf(bytes('ab'), bytes(''), bytes('c')), 3)).toEqual(bytes('abc'));
  });

  it('frees the chunks that it has joined if the body owns them', async () => {
    const whole = [bytes('ab'), bytes('cd')];
    const part = bytes('efgh').subarray(1, 3);
    const lengths = () => [...whole, part].map(({ length }) => length);
    expect(await readBody(chunksOf(...whole, part), 6)).toEqual(bytes('abcdfg'));
    expect(lengths()).toEqual([2, 2, 2]);
    const owning = Object.assign(chunksOf(...whole, part), { ownsChunks: true } as const);
    expect(await readBody(owning, 6)).toEqual(bytes('abcdfg'));
    // Others may see the rest of the memory of a part.
    expect(lengths()).toEqual('transfer' in ArrayBuffer.prototype ? [0, 0, 2] : [2, 2, 2]);
  });

  it('returns a single chunk without copying it', async () => {
    const only = bytes('abc');
    expect(await readBody(chunksOf(only), 3)).toBe(only);
  });

  it('reads no body and an empty body as no bytes', async () => {
    expect(await readBody(undefined, 0)).toEqual(new Uint8Array(0));
    expect(await readBody(chunksOf(), 0)).toEqual(new Uint8Array(0));
  });

  it('stops at the chunk that passes the limit and ends the iteration', async () => {
    let given = 0;
    let ended = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          given += 1;
          yield await Promise.resolve(bytes('0123456789'));
        }
      } finally {
        ended = true;
      }
    }
    await expect(readBody(endless(), 25)).rejects.toMatchObject({ code: 'body-too-large' });
    expect({ given, ended }).toEqual({ given: 3, ended: true });
  });
});

describe('a request body that is too large', () => {
  const limit = 'limits.maxBodyBytes (LEPORELLO_LIMITS_MAX_BODY_BYTES) allows only 5';
  const advice = 'send a smaller body, or raise that limit.';
  const sent = () => chunksOf(bytes('0123456789'));
  const refusal = (headers: HeaderList, body = sent(), path?: string) =>
    receiveBody({ headers, body }, 5, path).catch((error: unknown) => String(error));

  it('is refused with its size, the option and its value', async () => {
    expect(await refusal([['content-length', '10']])).toBe(
      `LeporelloError: The body has 10 bytes, but ${limit}: ${advice}`,
    );
    expect(await refusal([])).toBe(`LeporelloError: The body has more than 5 bytes, but ${limit}: ${advice}`);
  });

  it('is refused for its size when decompressed', async () => {
    const packed = chunksOf(gzipSync(bytes('0123456789')));
    const headers: HeaderList = [
      ['content-encoding', 'gzip'],
      ['content-length', '4'],
    ];
    expect(await receiveBody({ headers, body: packed }, 9).catch(String)).toContain(
      'The body has more than 9 bytes',
    );
  });

  it('names another limit than the option', async () => {
    expect(await refusal([], sent(), 'this path')).toBe(
      'LeporelloError: The body has more than 5 bytes, but this path allows only 5: send a smaller body.',
    );
  });
});
