import { describe, expect, it } from 'vitest';
import { readBody } from './http.ts';
import { peekBody } from './peek-body.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

async function* chunks(texts: readonly string[], ending?: Error): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield bytes(text);
  if (ending) throw ending;
}

describe('peeking into a body', () => {
  it('gives the text of a short one, and the body again', async () => {
    const { text, body } = await peekBody(chunks(['a\xc3', 'b']), 10);
    expect(text).toBe('a\xc3b');
    expect(await readBody(body, 100)).toEqual(bytes('a\xc3b'));
  });

  it('gives a long one whole, but no text', async () => {
    const { text, body } = await peekBody(chunks(['12345', '67890', 'abc', 'def']), 8);
    expect(text).toBeUndefined();
    expect(await readBody(body, 100)).toEqual(bytes('1234567890abcdef'));
  });

  it('gives one that broke off as far as it came, and the same error', async () => {
    const { text, body } = await peekBody(chunks(['123'], new Error('cut')), 100);
    expect(text).toBeUndefined();
    const iterator = body[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual(bytes('123'));
    await expect(iterator.next()).rejects.toThrow('cut');
  });

  it('ends what it looked at when its reader ends, begun or not', async () => {
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
