import { describe, expect, it } from 'vitest';
import { readBody } from './http.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function* chunksOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

describe('readBody', () => {
  it('joins the chunks in order', async () => {
    expect(await readBody(chunksOf(bytes('ab'), bytes(''), bytes('c')), 3)).toEqual(bytes('abc'));
  });

  it('gives a single chunk back without copying it', async () => {
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
