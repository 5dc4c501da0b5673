import { describe, expect, it } from 'vitest';
import { createFetchHandler, fetchUpstream } from './fetch.ts';
import type { GatewayRequest, Handler, HeaderList } from './http.ts';
import { readBody } from './body.ts';

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const target: Handler = async (request) => ({ status: 200, headers: [], body: utf8.encode(request.target) });

/** Returns a body that counts the chunks read from it, and notes when it was ended. */
function endless() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const taken = { count: 0 };
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        taken.count += 1;
        yield await Promise.resolve(utf8.encode('more '));
      }
    } finally {
      resolve();
    }
  }
  return { body: body(), taken, ended: promise };
}

describe('the fetch handler', () => {
  it('passes method, target, headers and body, and returns status, headers and body', async () => {
    let seen: [GatewayRequest, string] | undefined;
    const handle = createFetchHandler(async (request) => {
      seen = [request, text(await readBody(request.body, 100))];
      const headers: HeaderList = [
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['x-odd', '\u00e9'],
      ];
      return { status: 429, headers, body: utf8.encode('{}') };
    });
    const response = await handle(
      new Request('http://h/v1//a%2Fb?q=%20#f', {
        method: 'POST',
        headers: { Authorization: 'Bearer k' },
        body: utf8.encode('hello'),
      }),
    );
    const [request, body] = seen!;
    expect({ ...request, body, signal: undefined }).toEqual({
      method: 'POST',
      target: '/v1//a%2Fb?q=%20',
      headers: [['authorization', 'Bearer k']],
      body: 'hello',
      signal: undefined,
    });
    expect([response.status, [...response.headers], await response.text()]).toEqual([
      429,
      [
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['x-odd', '\u00e9'],
      ],
      '{}',
    ]);
  });

  it('pulls chunks only as they are read, and ends the body when the reader stops', async () => {
    const { body, taken, ended } = endless();
    let signal: AbortSignal | undefined;
    const handle = createFetchHandler(async (request) => {
      ({ signal } = request);
      return { status: 200, headers: [], body };
    });
    const reader = (await handle(new Request('http://h/'))).body!.getReader();
    expect(text((await reader.read()).value!)).toBe('more ');
    expect(taken.count).toBe(1);
    await reader.cancel();
    await ended;
    expect(signal?.aborted).toBe(true);
  });

  it('forwards the abort of the request', async () => {
    const gone = new AbortController();
    const handle = createFetchHandler(async ({ signal }) => {
      gone.abort();
      return { status: 200, headers: [['x-aborted', String(signal.aborted)]], body: undefined };
    });
    const response = await handle(new Request('http://h/', { signal: gone.signal }));
    expect(response.headers.get('x-aborted')).toBe('true');
  });

  it("sends no body for HEAD and 204, and ends the handler's body", async () => {
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
    ] as const) {
      const { body, ended } = endless();
      const handle = createFetchHandler(async () => ({ status, headers: [], body }));
      expect((await handle(new Request('http://h/', { method }))).body).toBe(null);
      await ended;
    }
    const whole = createFetchHandler(async () => ({ status: 204, headers: [], body: utf8.encode('x') }));
    expect((await whole(new Request('http://h/'))).status).toBe(204);
  });

  it('turns a failure of the handler into a 500, and a failure of the body into a broken stream', async () => {
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const secret = new Error('secret');
    const handler: Handler = () => Promise.reject(secret);
    const response = await createFetchHandler(handler, { onError })(new Request('http://h/'));
    expect(errors).toEqual([secret]);
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' } },
    ]);
    async function* body(): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(utf8.encode('part'));
      throw new Error('broke');
    }
    const broken = createFetchHandler(async () => ({ status: 200, headers: [], body: body() }));
    await expect((await broken(new Request('http://h/'))).text()).rejects.toThrow('broke');
  });

  it('removes the path under which another app mounts it', async () => {
    const ask = async (basePath: string, path: string): Promise<string> =>
      (await createFetchHandler(target, { basePath })(new Request(`http://h${path}`))).text();
    expect([
      await ask('/llm', '/llm/v1/chat?q=1'),
      await ask('/llm/', '/llm/v1/chat'),
      await ask('/llm', '/llm'),
      await ask('/llm', '/llm?q=1'),
      await ask('/', '/v1/x'),
      // The path of another app.
      await ask('/llm', '/llmfoo/v1/chat'),
    ]).toEqual(['/v1/chat?q=1', '/v1/chat', '/', '/?q=1', '/v1/x', '/llmfoo/v1/chat']);
  });
});

describe('fetch handler and fetch upstream together', () => {
  const upstreamOf = (handler: Handler) => {
    const handle = createFetchHandler(handler);
    return fetchUpstream((url, init) => handle(new Request(url, init)));
  };
  const signal = new AbortController().signal;

  it('stream a request and a response at the same time', async () => {
    const upstream = upstreamOf(async ({ body }) => ({ status: 200, headers: [], body }));
    const { body, taken, ended } = endless();
    const request = { method: 'POST', url: 'http://h/v1', headers: [], body, signal };
    const response = await upstream.send(request);
    let read = 0;
    for await (const chunk of response.body) {
      expect(text(chunk)).toBe('more ');
      read += 1;
      if (read === 10) break;
    }
    await ended;
    expect(taken.count).toBeLessThan(15);
  });
});
