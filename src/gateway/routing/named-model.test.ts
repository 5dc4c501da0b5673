import { describe, expect, it } from 'vitest';
import { asArray, eventsUrl, namedModelRoute, promptUrl } from './named-model.ts';

const models = 'https://x.example/v1beta/models/m:streamGenerateContent';
const bytes = (text: string) => new TextEncoder().encode(text);

async function* chunked(text: string, size: number) {
  for (let at = 0; at < text.length; at += size) yield bytes(text.slice(at, at + size));
}

async function textOf(body: AsyncIterable<Uint8Array> | Uint8Array | undefined): Promise<string> {
  if (body === undefined || body instanceof Uint8Array) return new TextDecoder().decode(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new TextDecoder().decode(Buffer.concat(chunks));
}

describe('a stream as one JSON array', () => {
  it.each([
    [models, `${models}?alt=sse`],
    [`${models}?`, `${models}?alt=sse`],
    [`${models}?alt=json`, `${models}?alt=sse`],
    [`${models}?alt=json&key=k`, `${models}?key=k&alt=sse`],
    [`${models}?key=k`, `${models}?key=k&alt=sse`],
    [`${models}?alt=sse&key=k`, `${models}?alt=sse&key=k`],
  ])('is requested as events: %s', (url, sent) => {
    expect(eventsUrl(url)).toBe(sent);
  });

  it('is not written in forms that are not JSON', () => {
    const forms = [
      '',
      'key=k',
      'alt=json',
      'alt=sse',
      'alt=proto',
      '$alt=json;enum-encoding=int',
      '%24alt=proto',
    ];
    const path = '/v1beta/models/m:streamGenerateContent';
    const kinds = forms.map((form) => namedModelRoute(path, form)?.kind);
    expect(kinds).toEqual(['model', 'model', 'model', 'model', 'pass', 'pass', 'pass']);
  });

  it.each([1, 7, 1_000])('has the data of all events as items, in chunks of %s bytes', async (size) => {
    const events = ': comment\n\ndata: {"a":1}\r\n\r\ndata: {"b":"x,\\ny"}\n\n';
    const headers = [['content-type', 'text/event-stream']] as const;
    const { headers: sent, body } = asArray({ status: 200, headers, body: chunked(events, size) });
    expect(sent).toEqual([['content-type', 'application/json; charset=UTF-8']]);
    expect(await textOf(body)).toBe('[{"a":1},\r\n{"b":"x,\\ny"}\n]');
  });

  it('is empty without events, and leaves other responses alone', async () => {
    const headers = [['content-type', 'text/event-stream']] as const;
    expect(await textOf(asArray({ status: 200, headers, body: chunked('', 1) }).body)).toBe('[]');
    const json = {
      status: 200,
      headers: [['content-type', 'application/json']],
      body: bytes('[1]'),
    } as const;
    expect(asArray(json)).toBe(json);
  });

  it.each(['bytes', 'chunks'])('has an error as its only item: %s', async (kind) => {
    const error = '{"error":{"code":429}}';
    const headers = [
      ['content-type', 'application/json'],
      ['content-length', String(error.length)],
    ] as const;
    const body = kind === 'bytes' ? bytes(error) : chunked(error, 5);
    const array = asArray({ status: 429, headers, body });
    expect([array.status, array.headers]).toEqual([
      429,
      [['content-type', 'application/json; charset=UTF-8']],
    ]);
    expect(await textOf(array.body)).toBe(`[${error}]`);
  });

  it('ends the stream of the upstream when the client leaves, also before its first item', async () => {
    for (const items of [0, 1]) {
      let isEnded = false;
      const events = {
        [Symbol.asyncIterator]: () => ({
          next: async () => ({ done: false, value: bytes('data: 1\n\n') }),
          async return() {
            isEnded = true;
            return { done: true as const, value: undefined };
          },
        }),
      };
      const { body } = asArray({
        status: 200,
        headers: [['content-type', 'text/event-stream']],
        body: events,
      });
      const iterator = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
      for (let at = 0; at < items; at++) await iterator.next();
      await iterator.return?.();
      expect(isEnded).toBe(true);
    }
  });
});

describe("a request of the gateway's own", () => {
  it("goes to the conversation's provider, not streamed, for the given model", () => {
    const named = 'https://three.example/v1beta/models';
    expect(promptUrl('https://one.example/v1/responses?a=b', 'small')).toBe(
      'https://one.example/v1/responses?a=b',
    );
    expect(promptUrl(`${named}/big:streamGenerateContent?alt=sse&key=k`, 'small')).toBe(
      `${named}/small:generateContent?key=k`,
    );
    // Half of a surrogate pair cannot be encoded in a URL.
    expect(promptUrl(`${named}/big:generateContent`, 'small\ud800')).toBe(
      `${named}/small%EF%BF%BD:generateContent`,
    );
    expect(promptUrl(`${named}/big:streamGenerateContent?alt=sse`, undefined)).toBe(
      `${named}/big:generateContent`,
    );
  });
});
