import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchUpstream } from './fetch.ts';
import type { Handler, UpstreamRequest } from './http.ts';
import { readBody } from './body.ts';
import { serveNode } from './node-server.ts';
import type { NodeServer } from './node-server.ts';

const utf8 = new TextEncoder();
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const upstream = fetchUpstream();

let server: NodeServer | undefined;

afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

async function provider(handler: Handler): Promise<string> {
  server = await serveNode(handler, { port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${server.port}`;
}

function get(url: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { method: 'GET', url, headers: [], body: undefined, signal: new AbortController().signal, ...more };
}

async function* chunksOf(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(utf8.encode(chunk));
}

describe('fetchUpstream', () => {
  it('sends whole and streamed bodies with the headers given', async () => {
    const url = await provider(async ({ method, target, headers, body }) => {
      const kept = headers.filter(([name]) => name === 'authorization' || name === 'content-length');
      const seen = { method, target, kept, body: text(await readBody(body, 100)) };
      return { status: 200, headers: [], body: utf8.encode(JSON.stringify(seen)) };
    });
    const send = async (body: UpstreamRequest['body']): Promise<unknown> => {
      const request = get(`${url}/v1?q`, { method: 'POST', headers: [['authorization', 'Bearer k']], body });
      return JSON.parse(text(await readBody((await upstream.send(request)).body, 1000)));
    };
    const seen = { method: 'POST', target: '/v1?q', body: 'hello' };
    const auth = ['authorization', 'Bearer k'];
    expect(await send(utf8.encode('hello'))).toEqual({ ...seen, kept: [auth, ['content-length', '5']] });
    expect(await send(chunksOf('hel', 'lo'))).toEqual({ ...seen, kept: [auth] });
  });

  it('returns redirects, errors and repeated headers unchanged', async () => {
    const url = await provider(async () => ({
      status: 302,
      headers: [
        ['location', '/elsewhere'],
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
      ],
      body: undefined,
    }));
    const { status, headers, body } = await upstream.send(get(url));
    expect(status).toBe(302);
    expect(headers.filter(([name]) => name === 'set-cookie' || name === 'location')).toEqual([
      ['location', '/elsewhere'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]);
    expect(await readBody(body, 0)).toEqual(new Uint8Array(0));
  });

  it('drops the headers of a compression that fetch has undone', async () => {
    const url = await provider(async () => ({
      status: 200,
      headers: [['content-encoding', 'gzip']],
      body: gzipSync('plain'),
    }));
    const { headers, body } = await upstream.send(get(url));
    expect(text(await readBody(body, 10))).toBe('plain');
    expect(headers.map(([name]) => name)).not.toContain('content-encoding');
    expect(headers.map(([name]) => name)).not.toContain('content-length');
  });

  it('is canceled by leaving the loop and by the signal', async () => {
    const ended: Promise<void>[] = [];
    const url = await provider(async ({ signal }) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      ended.push(promise);
      signal.addEventListener('abort', () => resolve());
      async function* body(): AsyncGenerator<Uint8Array> {
        yield utf8.encode('part');
        await promise;
      }
      return { status: 200, headers: [], body: body() };
    });
    for await (const chunk of (await upstream.send(get(url))).body) {
      expect(text(chunk)).toBe('part');
      break;
    }
    const controller = new AbortController();
    const { body } = await upstream.send(get(url, { signal: controller.signal }));
    controller.abort();
    await expect(readBody(body, 10)).rejects.toMatchObject({ code: 'upstream-failed' });
    await Promise.all(ended);
  });

  it('says which origin failed or took too long', async () => {
    await expect(upstream.send(get('http://127.0.0.1:1/v1?key=secret'))).rejects.toMatchObject({
      code: 'upstream-failed',
      message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 could not be reached/),
    });
    const url = await provider(() => new Promise(() => undefined));
    await expect(fetchUpstream(fetch, { headersTimeoutMs: 5 }).send(get(url))).rejects.toMatchObject({
      code: 'deadline',
      message: `${url} took too long to answer.`,
    });
    await upstream.close();
  });

  it('waits for headers also with more time than a timer can wait', async () => {
    const url = await provider(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { status: 204, headers: [], body: undefined };
    });
    const patient = fetchUpstream(fetch, { headersTimeoutMs: Number.POSITIVE_INFINITY });
    expect((await patient.send(get(url))).status).toBe(204);
  });
});
