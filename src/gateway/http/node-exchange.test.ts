/** Tests how long a client may take to send its request, and how long headers may be, over real sockets. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Handler } from './http.ts';
import { readBody } from './body.ts';
import { serveNode } from './node-server.ts';
import { undiciUpstream } from './undici-upstream.ts';

const utf8 = new TextEncoder();
const errors: unknown[] = [];
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  errors.length = 0;
});

/** Opens a connection to a server with this handler. */
async function dial(handler: Handler, uploadIdleMs: number): Promise<Socket> {
  const onError = (error: unknown): void => void errors.push(error);
  const server = await serveNode(handler, { port: 0, host: '127.0.0.1', uploadIdleMs, onError });
  closers.push(() => server.close(0));
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

const echo: Handler = async ({ body }) => ({ status: 200, headers: [], body: await readBody(body, 10) });

describe('an upload', () => {
  const head = 'POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n';

  it('is accepted as long as bytes arrive, however long it takes', async () => {
    const socket = await dial(echo, 1_500);
    socket.write(head);
    for (const byte of 'slow bytes') {
      await pause(200);
      socket.write(byte);
    }
    expect(await answer(socket, 'slow bytes')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  /** Resolves with the server's bytes when the answer ends with these characters. */
  async function answer(socket: Socket, ending: string): Promise<string> {
    let seen = '';
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      seen += String(chunk);
      if (seen.endsWith(ending)) break;
    }
    socket.resume();
    return seen;
  }

  const refusal =
    /^HTTP\/1\.1 408 Request Timeout\r\n[^]*connection: close\r\n[^]*\{"error":\{"type":"timeout_error","message":"The gateway received nothing of the request body for 20 ms\. Send the request again\."\}\}$/;

  it.each<[string, Handler]>([
    ['reads it whole', echo],
    [
      'answers what failed after it',
      async (request) => {
        const failed = { status: 502, headers: [], body: utf8.encode('upstream failed') };
        return echo(request).catch(() => failed);
      },
    ],
  ])('that stalls is answered with 408 when the handler %s', async (_, handler) => {
    const socket = await dial(handler, 20);
    socket.write(`${head}slow`);
    expect(await answer(socket, '}}')).toMatch(refusal);
    socket.write(' bytes');
    await once(socket, 'end');
    expect(errors).toEqual([]);
  });

  it('that is not read yet does not time out', async () => {
    const ready = Promise.withResolvers<void>();
    const late: Handler = async (request) => {
      await ready.promise;
      return echo(request);
    };
    const socket = await dial(late, 1_500);
    socket.write(head);
    await pause(1_600);
    socket.write('slow bytes');
    ready.resolve();
    expect(await answer(socket, 'slow bytes')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });
});

it('headers of 60,000 bytes, as those of some logins, pass in both directions', async () => {
  const echoHeader: Handler = async ({ headers }) => ({
    status: 200,
    headers: headers.filter(([name]) => name === 'x-long'),
    body: undefined,
  });
  const server = await serveNode(echoHeader, { port: 0, host: '127.0.0.1' });
  closers.push(() => server.close(0));
  const upstream = undiciUpstream();
  closers.push(() => upstream.close());
  const long = ['x-long', 'a'.repeat(60_000)] as const;
  const { status, headers } = await upstream.send({
    method: 'GET',
    url: `http://127.0.0.1:${server.port}`,
    headers: [long],
    body: undefined,
    signal: new AbortController().signal,
  });
  expect([status, headers.filter(([name]) => name === 'x-long')]).toEqual([200, [long]]);
});
