import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { GatewayRequest, GatewayResponse, Handler, HeaderList } from './http.ts';
import { readBody } from './body.ts';
import { idleMoment, type NodeServer, serveNode } from './node-server.ts';

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const empty: GatewayResponse = { status: 204, headers: [], body: undefined };

let server: NodeServer | undefined;
const errors: unknown[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close(0);
  server = undefined;
  errors.length = 0;
});

async function serve(handler: Handler): Promise<string> {
  server = await serveNode(handler, {
    port: 0,
    host: '127.0.0.1',
    onError: (error, stage) => errors.push([stage, error instanceof Error ? error.message : error]),
  });
  return `http://127.0.0.1:${server.port}`;
}

async function dial(): Promise<Socket> {
  const socket = connect(server!.port, '127.0.0.1');
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Resolves with everything that the server sends until it closes the connection, or with `reset` when it resets it. */
async function untilClosed(socket: Socket): Promise<string> {
  let seen = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    seen += chunk;
  });
  return new Promise((resolve) => {
    socket.once('end', () => resolve(seen));
    socket.once('error', () => resolve(`${seen}<reset>`));
  });
}

async function exchange(request: string): Promise<string> {
  const socket = await dial();
  socket.write(request);
  return untilClosed(socket);
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

async function settle(value: () => number): Promise<number> {
  let last = -1;
  for (let same = 0; same < 200; same = value() === last ? same + 1 : 0) {
    last = value();
    await nextTurn();
  }
  return last;
}

const tooLarge: Handler = async ({ body }) => {
  await readBody(body, 1000).catch(() => undefined);
  return { status: 413, headers: [], body: utf8.encode('too large') };
};

const upgrade = (to: string, rest: string): string =>
  `POST / HTTP/1.1\r\nhost: h\r\nconnection: upgrade${rest}\r\nupgrade: ${to}\r\ncontent-length: 2\r\n\r\nok`;
const echo: Handler = async ({ body }) => ({ status: 200, headers: [], body: await readBody(body, 10) });

async function* broken(): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(utf8.encode('part'));
  throw new Error('upstream broke');
}

describe('a request', () => {
  it('reaches the handler with target, repeated headers and body as they were sent', async () => {
    let seen: [GatewayRequest, string] | undefined;
    await serve(async (request) => {
      seen = [request, text(await readBody(request.body, 100))];
      return empty;
    });
    await exchange(
      'POST /v1//a%2Fb/../c?q=%20&r HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\nconnection: close\r\nX-TWO: \u00e9\r\nContent-Length: 5\r\n\r\nhello',
    );
    const [request, body] = seen!;
    const headers: HeaderList = [
      ['host', 'h'],
      ['x-two', '1'],
      ['connection', 'close'],
      ['x-two', '\u00c3\u00a9'],
      ['content-length', '5'],
    ];
    expect({ ...request, body, signal: undefined }).toEqual({
      method: 'POST',
      target: '/v1//a%2Fb/../c?q=%20&r',
      headers,
      body: 'hello',
      signal: undefined,
    });
  });

  it('has no body when none was sent', async () => {
    const bodies: unknown[] = [];
    const url = await serve(async ({ body }) => {
      bodies.push(body);
      return empty;
    });
    await fetch(url);
    await fetch(url, { method: 'POST' });
    expect(bodies).toEqual([undefined, undefined]);
  });

  it('is not read faster than the handler reads it', async () => {
    const ready = gate();
    const size = 64 * 1024 * 1024;
    await serve(async ({ body }) => {
      await ready.opened;
      return { status: 200, headers: [], body: utf8.encode(String((await readBody(body, size)).length)) };
    });
    const socket = await dial();
    socket.write(`POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: ${size}\r\n\r\n`);
    for (let i = 0; i < 64; i += 1) socket.write(Buffer.alloc(1024 * 1024));
    const waiting = await settle(() => socket.writableLength);
    ready.open();
    expect(waiting).toBeGreaterThan(size / 2);
    expect(await untilClosed(socket)).toMatch(/\r\n\r\n67108864$/);
  });

  it('is asked for its body only when the handler reads it', async () => {
    await serve(async ({ target, body }) =>
      target === '/refuse'
        ? { status: 413, headers: [], body: undefined }
        : { status: 200, headers: [], body: await readBody(body, 10) },
    );
    const head = 'HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n';
    expect(await exchange(`POST /refuse ${head}\r\n`)).toMatch(/^HTTP\/1\.1 413 /);
    const socket = await dial();
    socket.write(`POST /read ${head}connection: close\r\n\r\n`);
    const [go] = (await once(socket, 'data')) as [Buffer];
    socket.write('ok');
    expect(go.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 200 [^]*ok$/);
  });
});

describe('an answer before the body is read', () => {
  it('reaches a client that sends everything before it reads', async () => {
    await serve(tooLarge);
    const socket = await dial();
    socket.write('POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n');
    for (let i = 0; i < 20; i += 1) socket.write(`100000\r\n${'x'.repeat(0x100000)}\r\n`);
    await new Promise((resolve) => {
      socket.write('0\r\n\r\n', resolve);
    });
    const answer = await untilClosed(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*connection: close\r\n[^]*too large$/);
  });

  it('keeps the connection when little is left to read', async () => {
    await serve(tooLarge);
    const socket = await dial();
    const body = 'x'.repeat(200_000);
    for (const end of ['', 'connection: close\r\n']) {
      socket.write(`POST / HTTP/1.1\r\nhost: h\r\n${end}content-length: ${body.length}\r\n\r\n${body}`);
    }
    expect((await untilClosed(socket)).split('too large').length).toBe(3);
  });
});

describe('a response', () => {
  it('is sent with status, repeated headers and bytes unchanged', async () => {
    await serve(async () => ({
      status: 429,
      headers: [
        ['set-cookie', 'a=1'],
        ['x-odd', '\u00e9'],
        ['set-cookie', 'b=2'],
        ['date', 'D'],
      ],
      body: utf8.encode('{}'),
    }));
    expect(await exchange('GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n')).toBe(
      'HTTP/1.1 429 Too Many Requests\r\nset-cookie: a=1\r\nx-odd: \u00e9\r\nset-cookie: b=2\r\ndate: D\r\ncontent-length: 2\r\nConnection: close\r\n\r\n{}',
    );
  });

  it('sends its headers before the first chunk', async () => {
    const ready = gate();
    async function* body(): AsyncGenerator<Uint8Array> {
      await ready.opened;
      yield utf8.encode('late');
    }
    const url = await serve(async () => ({ status: 200, headers: [], body: body() }));
    const response = await fetch(url);
    ready.open();
    expect([response.status, await response.text()]).toEqual([200, 'late']);
  });

  it('to HEAD has the headers and no body, and the body is ended', async () => {
    let ended = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield await Promise.resolve(utf8.encode('x'));
      } finally {
        ended = true;
      }
    }
    await serve(async () => ({ status: 200, headers: [['content-length', '9']], body: body() }));
    const answer = await exchange('HEAD / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-length: 9\r\n[^]*\r\n\r\n$/);
    expect(ended).toBe(true);
  });

  it('is not produced faster than the client reads, and ends when the client disconnects', async () => {
    let chunks = 0;
    const ended = gate();
    let signal: AbortSignal | undefined;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          chunks += 1;
          yield await Promise.resolve(new Uint8Array(65_536));
        }
      } finally {
        ended.open();
      }
    }
    await serve(async (request) => {
      ({ signal } = request);
      return { status: 200, headers: [], body: body() };
    });
    const socket = await dial();
    socket.pause().write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
    const produced = await settle(() => chunks);
    expect(produced).toBeGreaterThan(0);
    expect(produced).toBeLessThan(1000);
    socket.destroy();
    await ended.opened;
    expect(signal?.aborted).toBe(true);
    expect(errors).toEqual([]);
  });

  it('that is silent is ended when the client disconnects', async () => {
    const asked = gate();
    const ended = gate();
    const body: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          asked.open();
          return new Promise(() => undefined);
        },
        return: async () => {
          ended.open();
          return { done: true, value: undefined };
        },
      }),
    };
    await serve(async () => ({ status: 200, headers: [], body }));
    const socket = await dial();
    socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
    await asked.opened;
    socket.destroy();
    await ended.opened;
  });
});

describe('a failure', () => {
  it('of the handler is a 500 that reveals nothing of the request', async () => {
    const url = await serve(async () => {
      throw new Error('secret');
    });
    const response = await fetch(url);
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' } },
    ]);
    expect(errors).toEqual([['handler', 'secret']]);
  });

  it('to write the headers is also a 500', async () => {
    const url = await serve(async () => ({ status: 200, headers: [['x', 'a\nb']], body: undefined }));
    expect((await fetch(url)).status).toBe(500);
    expect(errors).toEqual([['handler', 'Invalid character in header content ["x"]']]);
  });

  it('within the body breaks the connection off after what was sent', async () => {
    await serve(async () => ({ status: 200, headers: [], body: broken() }));
    expect(await exchange('GET / HTTP/1.1\r\nhost: h\r\n\r\n')).toMatch(/\r\n\r\n4\r\npart\r\n$/);
    expect(await exchange('GET / HTTP/1.0\r\n\r\n')).toMatch(/<reset>$/);
    expect(errors).toEqual([
      ['body', 'upstream broke'],
      ['body', 'upstream broke'],
    ]);
  });
});

describe('upgrades', () => {
  it('to WebSocket are refused with 426', async () => {
    await serve(echo);
    expect(await exchange(upgrade('websocket', ''))).toMatch(
      /^HTTP\/1\.1 426 [^]*upgrade: HTTP\/1\.1\r\nconnection: upgrade, close\r\n[^]*"upgrade_required"/,
    );
  });

  it('to anything else are ignored', async () => {
    await serve(echo);
    expect(await exchange(upgrade('h2c', ', close'))).toMatch(/^HTTP\/1\.1 200 [^]*ok$/);
  });
});

describe('closing', () => {
  it('ends idle connections, refuses new ones and lets requests in progress finish', async () => {
    const asked = gate();
    const ready = gate();
    const url = await serve(async ({ target }) => {
      if (target === '/slow') {
        asked.open();
        await ready.opened;
      }
      return { status: 200, headers: [], body: utf8.encode('done') };
    });
    await (await fetch(url)).text();
    const slow = fetch(`${url}/slow`);
    await asked.opened;
    const closed = server!.close(3e9); // Longer than a timer can wait.
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    ready.open();
    const response = await slow;
    expect([response.headers.get('connection'), await response.text()]).toEqual(['close', 'done']);
    await closed;
  });

  it('closes the connection of a stream that began before, when it ends', async () => {
    const ready = gate();
    async function* body(): AsyncGenerator<Uint8Array> {
      yield utf8.encode('first ');
      await ready.opened;
      yield utf8.encode('last');
    }
    const url = await serve(async () => ({ status: 200, headers: [], body: body() }));
    const response = await fetch(url);
    const closed = server!.close(60_000);
    ready.open();
    expect([response.headers.get('connection'), await response.text()]).toEqual(['keep-alive', 'first last']);
    await closed;
  });

  it('writes out a response that has ended but is not yet read', async () => {
    const size = 32 * 1024 * 1024;
    await serve(async () => ({ status: 200, headers: [['date', 'D']], body: new Uint8Array(size) }));
    const socket = await dial();
    socket.pause().write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
    await once(socket, 'readable');
    const closed = server!.close(60_000);
    const answer = await untilClosed(socket);
    expect(answer.length - answer.indexOf('\r\n\r\n') - 4).toBe(size);
    await closed;
  });

  it('cuts the remaining connections after the grace period', async () => {
    const asked = gate();
    const gone = gate();
    const url = await serve(async ({ signal }) => {
      signal.addEventListener('abort', gone.open);
      asked.open();
      return new Promise(() => undefined);
    });
    const cut = expect(fetch(url)).rejects.toThrow('fetch failed');
    await asked.opened;
    await server!.close(1);
    await cut;
    await gone.opened;
  });

  it('rejects when the port is in use', async () => {
    await serve(async () => empty);
    const again = serveNode(async () => empty, { port: server!.port, host: '127.0.0.1' });
    await expect(again).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

it('an idle moment comes when the thread has no more work', async () => {
  const order: string[] = [];
  const idle = idleMoment().then(() => order.push('an idle moment'));
  for (const end = performance.now() + 100; performance.now() < end; ) await nextTurn();
  order.push('the end of the work');
  await idle;
  expect(order).toEqual(['the end of the work', 'an idle moment']);
});
