import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { LeporelloError } from '../../errors.ts';
import type { Handler, HeaderList, Upstream, UpstreamRequest } from './http.ts';
import { readBody } from './body.ts';
import { serveNode } from './node-server.ts';
import { undiciUpstream } from './undici-upstream.ts';
import type { UndiciUpstreamOptions } from './undici-upstream.ts';

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function provider(handler: Handler): Promise<string> {
  const server = await serveNode(handler, { port: 0, host: '127.0.0.1' });
  closers.push(() => server.close(0));
  return `http://127.0.0.1:${server.port}`;
}

function upstream(options?: UndiciUpstreamOptions): Upstream {
  const made = undiciUpstream(options);
  closers.push(() => made.close());
  return made;
}

function get(url: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  const signal = new AbortController().signal;
  return { method: 'GET', url, headers: [], body: undefined, signal, ...more };
}

async function* chunksOf(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(utf8.encode(chunk));
}

/** Returns a response that continues until it is ended, and a promise of that end. */
function endless(): { handler: Handler; ended: Promise<void>; isAborted: () => boolean | undefined } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let signal: AbortSignal | undefined;
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        yield utf8.encode('more ');
        await nextTurn();
      }
    } finally {
      resolve();
    }
  }
  const handler: Handler = async (request) => {
    ({ signal } = request);
    return { status: 200, headers: [], body: body() };
  };
  return { handler, ended: promise, isAborted: () => signal?.aborted };
}

async function* broken(): AsyncGenerator<Uint8Array> {
  yield utf8.encode('part');
  await nextTurn();
  throw new Error('broke');
}

describe('a request', () => {
  it('is sent with its method, path, repeated headers and bytes unchanged', async () => {
    const url = await provider(async ({ method, target, headers, body }) => {
      const seen = { method, target, headers, body: text(await readBody(body, 100)) };
      return { status: 200, headers: [], body: utf8.encode(JSON.stringify(seen)) };
    });
    const headers: HeaderList = [
      ['x-two', '1'],
      ['x-two', '\u00e9'],
      ['authorization', 'Bearer k'],
    ];
    const send = async (body: UpstreamRequest['body']): Promise<unknown> => {
      const request = get(`${url}/v1//a%2Fb/../c?q=%20`, { method: 'POST', headers, body });
      return JSON.parse(text(await readBody((await upstream().send(request)).body, 1000)));
    };
    const seen = (lengthHeader: [string, string]): unknown => ({
      method: 'POST',
      target: '/v1//a%2Fb/../c?q=%20',
      headers: [['host', url.slice(7)], ['connection', 'keep-alive'], ...headers, lengthHeader],
      body: 'hello',
    });
    expect(await send(utf8.encode('hello'))).toEqual(seen(['content-length', '5']));
    expect(await send(chunksOf('hel', 'lo'))).toEqual(seen(['transfer-encoding', 'chunked']));
  });

  it('to an origin without a path asks for the root', async () => {
    const url = await provider(async ({ target }) => ({
      status: 200,
      headers: [],
      body: utf8.encode(target),
    }));
    expect(text(await readBody((await upstream().send(get(url))).body, 10))).toBe('/');
  });

  it('gets an early answer while its body is still being sent', async () => {
    const url = await provider(async () => ({ status: 401, headers: [], body: utf8.encode('no') }));
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* body(): AsyncGenerator<Uint8Array> {
      yield utf8.encode('part');
      await promise;
    }
    const response = await upstream().send(get(url, { method: 'POST', body: body() }));
    expect([response.status, text(await readBody(response.body, 10))]).toEqual([401, 'no']);
    resolve();
  });
});

describe('a response', () => {
  it('arrives with its status, repeated headers and bytes unchanged', async () => {
    const packed = gzipSync('packed');
    const url = await provider(async () => ({
      status: 529,
      headers: [
        ['set-cookie', 'a=1'],
        ['content-encoding', 'gzip'],
        ['set-cookie', 'b=2'],
        ['date', '\u00e9'],
      ],
      body: packed,
    }));
    const response = await upstream().send(get(url));
    expect([response.status, ...response.headers]).toEqual([
      529,
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['content-encoding', 'gzip'],
      ['date', '\u00e9'],
      ['content-length', String(packed.length)],
      ['connection', 'keep-alive'],
      ['keep-alive', 'timeout=75'],
    ]);
    expect(Buffer.from(await readBody(response.body, 100))).toEqual(packed);
  });

  it('leaves its connection to the next request', async () => {
    const sockets = new Set<number>();
    const server = createServer((socket) => {
      sockets.add(socket.remotePort!);
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
    }).listen(0, '127.0.0.1');
    closers.push(async () => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pool = upstream();
    for (let i = 0; i < 3; i += 1) {
      const response = await pool.send(get(`http://127.0.0.1:${port}/`));
      expect(text(await readBody(response.body, 10))).toBe('ok');
      await nextTurn();
    }
    expect(sockets.size).toBe(1);
  });

  it('waits for its reader, and loses nothing', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(1);
    let sent = 0;
    async function* body(): AsyncGenerator<Uint8Array> {
      for (; sent < 48; sent += 1) yield chunk;
    }
    const response = await upstream().send(
      get(await provider(async () => ({ status: 200, headers: [], body: body() }))),
    );
    // The bytes that nobody reads fill the buffers of the system and stay there.
    for (let before = -1; before < sent; await delay(100)) before = sent;
    expect(sent).toBeLessThan(48);
    expect((await readBody(response.body, 1e9)).length).toBe(48 * chunk.length);
  });

  it('is canceled by leaving the loop', async () => {
    const { handler, ended } = endless();
    const response = await upstream().send(get(await provider(handler)));
    for await (const chunk of response.body) {
      expect(text(chunk)).toMatch(/^more /);
      break;
    }
    await ended;
  });

  it('is canceled by ending an iteration that never began', async () => {
    const { handler, ended, isAborted } = endless();
    const response = await upstream().send(get(await provider(handler)));
    await response.body[Symbol.asyncIterator]().return?.();
    await ended;
    expect(isAborted()).toBe(true);
  });

  it('is canceled by the signal, read or unread', async () => {
    const { handler, ended } = endless();
    const controller = new AbortController();
    const response = await upstream().send(get(await provider(handler), { signal: controller.signal }));
    controller.abort();
    await ended;
    await expect(readBody(response.body, 1e9)).rejects.toMatchObject({ code: 'upstream-failed' });
  });
});

describe('an interim response', () => {
  const final = 'HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\nHTTP/1.1 100 Body!';
  const goOn = 'HTTP/1.1 100 Continue\r\n\r\n';

  /** Starts a server that answers each request with these bytes, one packet after the other. */
  async function rawProvider(packets: readonly string[]): Promise<{ url: string; sockets: Set<number> }> {
    const sockets = new Set<number>();
    const server = createServer((socket) => {
      sockets.add(socket.remotePort!);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('data', () => {
        void (async () => {
          for (const packet of packets) {
            socket.write(packet);
            await nextTurn();
            await nextTurn();
          }
        })();
      });
    }).listen(0, '127.0.0.1');
    closers.push(async () => server.close());
    await once(server, 'listening');
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sockets };
  }

  it.each([
    ['before the response', [goOn + final]],
    ['in a packet of its own', [goOn, final]],
    ['byte by byte', Array.from(goOn + final)],
    ['with headers', [`HTTP/1.1 100 Continue\r\nx-a: 1\r\nx-b: 2\r\n\r\n${final}`]],
    ['without a reason', [`HTTP/1.1 100\r\n\r\n${final}`]],
    ['several times', [goOn + goOn, `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${goOn}`, final]],
    ['of another kind', [`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${final}`]],
  ])('that was not requested is skipped %s', async (_, packets) => {
    const { url, sockets } = await rawProvider(packets);
    const pool = upstream();
    for (let i = 0; i < 3; i += 1) {
      const response = await pool.send(get(url, { method: 'POST', body: utf8.encode('{}') }));
      expect([response.status, text(await readBody(response.body, 100))]).toEqual([
        200,
        'HTTP/1.1 100 Body!',
      ]);
      await nextTurn();
    }
    expect(sockets.size).toBe(1);
  });

  it('does not hide a response that never comes', async () => {
    const { url } = await rawProvider([goOn]);
    await expect(upstream({ headersTimeoutMs: 50 }).send(get(url))).rejects.toMatchObject({
      code: 'deadline',
    });
  });
});

describe('decode', () => {
  const plain = 'data: {"text":"é"}\n\n'.repeat(100);
  const packings: [string, Uint8Array][] = [
    ['gzip', gzipSync(plain)],
    ['x-gzip', gzipSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['zstd', zstdCompressSync(plain)],
    ['deflate', deflateSync(plain)],
    ['gzip, BR', brotliCompressSync(gzipSync(plain))],
    ['identity', utf8.encode(plain)],
  ];

  it.each(packings)('decompresses %s', async (encoding, body) => {
    const headers: HeaderList = [
      ['content-encoding', encoding],
      ['x-kept', '1'],
    ];
    const url = await provider(async () => ({ status: 200, headers, body }));
    const response = await upstream().send({ ...get(url), decode: true });
    expect(text(await readBody(response.body, 1e6))).toBe(plain);
    const names = response.headers.map(([name]) => name);
    expect(names).toContain('x-kept');
    expect(names.includes('content-length')).toBe(encoding === 'identity');
    expect(names.includes('content-encoding')).toBe(encoding === 'identity');
  });

  it('does not change an unknown encoding or an empty response', async () => {
    const url = await provider(async ({ target }) => ({
      status: target === '/none' ? 204 : 200,
      headers: [['content-encoding', target === '/odd' ? 'odd' : 'gzip']],
      body: utf8.encode('odd'),
    }));
    const pool = upstream();
    expect(text(await readBody((await pool.send({ ...get(`${url}/odd`), decode: true })).body, 10))).toBe(
      'odd',
    );
    expect((await readBody((await pool.send({ ...get(`${url}/none`), decode: true })).body, 10)).length).toBe(
      0,
    );
    const head = await pool.send({ ...get(`${url}/head`, { method: 'HEAD' }), decode: true });
    expect((await readBody(head.body, 10)).length).toBe(0);
  });

  it('fails on broken compression, and ends the upstream when the reader stops', async () => {
    const url = await provider(async () => ({
      status: 200,
      headers: [['content-encoding', 'gzip']],
      body: gzipSync(plain).subarray(0, -8),
    }));
    const response = await upstream().send({ ...get(url), decode: true });
    await expect(readBody(response.body, 1e6)).rejects.toMatchObject({ code: 'upstream-failed' });

    const { handler, ended } = endless();
    const packed = await provider(async (request) => ({
      ...(await handler(request)),
      headers: [['content-encoding', 'gzip']],
    }));
    const stopped = await upstream().send({ ...get(packed), decode: true });
    await stopped.body[Symbol.asyncIterator]().return?.();
    await ended;
  });
});

describe('a failure', () => {
  it('to connect says where, without the path', async () => {
    const failed = upstream().send(get('http://127.0.0.1:1/v1?key=secret'));
    await expect(failed).rejects.toMatchObject({
      code: 'upstream-failed',
      message:
        'http://127.0.0.1:1 could not be reached, or the connection broke (ECONNREFUSED). Check that it is up and its URL is right.',
    });
  });

  it('of an invalid URL is also an upstream failure', async () => {
    await expect(upstream().send(get('ftp://x/'))).rejects.toMatchObject({ code: 'upstream-failed' });
    await expect(upstream().send(get('/v1'))).rejects.toMatchObject({ code: 'upstream-failed' });
  });

  it('to answer in time is a deadline', async () => {
    const url = await provider(() => new Promise(() => undefined));
    await expect(upstream({ headersTimeoutMs: 20 }).send(get(url))).rejects.toMatchObject({
      code: 'deadline',
    });
  });

  it('to continue in time is a deadline', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* body(): AsyncGenerator<Uint8Array> {
      yield utf8.encode('part');
      await promise;
    }
    const url = await provider(async () => ({ status: 200, headers: [], body: body() }));
    const response = await upstream({ bodyTimeoutMs: 20 }).send(get(url));
    await expect(readBody(response.body, 10)).rejects.toMatchObject({ code: 'deadline' });
    resolve();
  });

  it('within the body follows the bytes that were read', async () => {
    const url = await provider(async () => ({ status: 200, headers: [], body: broken() }));
    const response = await upstream().send(get(url));
    let seen = '';
    const reading = async (): Promise<void> => {
      for await (const chunk of response.body) seen += text(chunk);
    };
    await expect(reading()).rejects.toMatchObject({ code: 'upstream-failed' });
    expect(seen).toBe('part');
  });

  it('by the signal throws its reason if that is a LeporelloError', async () => {
    const url = await provider(() => new Promise(() => undefined));
    const late = new LeporelloError('deadline', 'Too late.');
    await expect(upstream().send(get(url, { signal: AbortSignal.abort(late) }))).rejects.toBe(late);
    await expect(upstream().send(get(url, { signal: AbortSignal.abort() }))).rejects.toMatchObject({
      code: 'upstream-failed',
      message: `The request to ${url} was canceled.`,
    });
  });
});

describe('close', () => {
  it('can happen at once, with requests in progress', async () => {
    const url = await provider(() => new Promise(() => {}));
    const pool = undiciUpstream();
    const asked = pool.send(get(url));
    const failed = expect(asked).rejects.toMatchObject({ code: 'upstream-failed' });
    await pool.cut();
    await failed;
  });

  it('can be called twice; later requests fail', async () => {
    const pool = undiciUpstream();
    await pool.close();
    await pool.close();
    await expect(pool.send(get('http://127.0.0.1:1/'))).rejects.toMatchObject({ code: 'upstream-failed' });
  });
});
