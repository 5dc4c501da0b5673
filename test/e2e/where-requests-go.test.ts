import { connect } from 'node:net';
import { array, assert, asyncProperty, constantFrom } from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assembleGateway } from '../../src/gateway/app.ts';
import { fetchUpstream } from '../../src/gateway/http/fetch.ts';
import { serveNode } from '../../src/gateway/http/node-server.ts';
import { undiciUpstream } from '../../src/gateway/http/undici-upstream.ts';
import { inMemoryStore } from '../../src/store/in-memory.ts';

const adminToken = 'administrator-16';
const upstreams = { undici: undiciUpstream(), fetch: fetchUpstream() };
type Transport = keyof typeof upstreams;

/** Parts of paths that servers interpret differently. */
const pieces =
  '. .. %2e %2E %252e / // \\ %2f %5c %252f ; ;a ? # % %23 %3f %00 %20 %09 : @ a models v1 é \u00ad host * | ^'.split(
    ' ',
  );

let host: Awaited<ReturnType<typeof serveNode>>;
let gateways: Record<Transport, Awaited<ReturnType<typeof serveNode>>>;
/** Targets that reached the upstream's host since the last `sendRaw`. */
let reached: string[] = [];

beforeAll(async () => {
  host = await serveNode(
    async ({ target, headers }) => {
      reached.push(target);
      return { status: 200, headers: [['x-got', String(headers.length)]], body: new Uint8Array(0) };
    },
    { port: 0, host: '127.0.0.1' },
  );
  const base = `http://127.0.0.1:${host.port}/tenant`;
  const serve = (transport: Transport) =>
    serveNode(
      assembleGateway(
        { adminToken, urls: { openai: `${base}/v1`, anthropic: base, gemini: `${base}/v1beta` } },
        {
          store: inMemoryStore(),
          secret: new Uint8Array(32).fill(1),
          upstream: upstreams[transport],
          log: { info: () => undefined, warn: () => undefined },
        },
      ),
      { port: 0, host: '127.0.0.1' },
    );
  gateways = { undici: await serve('undici'), fetch: await serve('fetch') };
});

afterAll(async () => {
  await Promise.all([gateways.undici.close(0), gateways.fetch.close(0)]);
  await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
  await host.close(0);
});

/** Sends a target exactly as given, which no HTTP client would; resolves to the response's status. */
function sendRaw(transport: Transport, method: string, target: string, headers: readonly string[] = []) {
  reached = [];
  return new Promise<number>((resolve, reject) => {
    const socket = connect(gateways[transport].port, '127.0.0.1');
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0)));
    const lines = [`${method} ${target} HTTP/1.1`, 'host: localhost', 'connection: close', ...headers];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  });
}

describe.each<Transport>(['undici', 'fetch'])('over %s', (transport) => {
  it.each([
    '/v1/..',
    '/v1/../admin',
    '/v1/models/../../../admin',
    '/v1/models/%2e%2e/%2E%2E/%2e./admin',
    '/v1/models/.%2e/x',
    '/v1/models/..\\..\\..\\admin',
    '/v1/models/..%5c..%5c..%5cadmin',
    '/v1/models/..%2f..%2f..%2fadmin',
    '/v1/models/%252e%252e%252f%252e%252e/admin',
    '/v1/models/%25252e%25252e/admin',
    '/v1/models/%%32%65%%32%65/admin',
    '/v1/models/..;/..;a=b/admin',
    '/v1/models/..%20/admin',
    '/v1/models/..%3fx/admin',
    '/v1/models/./x',
    '/v1beta/models/../../../admin:generateContent',
    '/v1/models#/../admin',
    'http://127.0.0.1:1/v1/models',
    'http://evil.example/v1/models',
    '*',
  ])('%s is refused with 400 and reaches no upstream', async (target) => {
    expect([await sendRaw(transport, 'GET', target), reached]).toEqual([400, []]);
  });

  it.each([
    ['/v1/models', '/tenant/v1/models'],
    ['/v1/models?a=../..&b=%2e%2e', '/tenant/v1/models?a=../..&b=%2e%2e'],
    ['/v1/models/meta%2Fllama-3', '/tenant/v1/models/meta%2Fllama-3'],
    ['/v1/models/v1.5..turbo', '/tenant/v1/models/v1.5..turbo'],
    ['/v1/models/...', '/tenant/v1/models/...'],
    ['/v1/models/a%zz%', '/tenant/v1/models/a%zz%'],
    ['/v1//models', '/tenant/v1//models'],
    ['/v1/models/a\\b', '/tenant/v1/models/a%5Cb'],
    ['/v1beta/models/a%zz', '/tenant/v1beta/models/a%zz'],
  ])('%s reaches %s', async (target, path) => {
    expect([await sendRaw(transport, 'GET', target), reached]).toEqual([200, [path]]);
  });

  it('a malformed % in a model name is left to the provider to refuse', async () => {
    const body = ['content-type: application/json', 'content-length: 0'];
    const target = '/v1beta/models/a%zz:generateContent';
    expect([await sendRaw(transport, 'POST', target, body), reached]).toEqual([200, [`/tenant${target}`]]);
  });

  it('no target reaches anything outside the base path', async () => {
    const piece = constantFrom(...pieces);
    const start = constantFrom(
      '/v1',
      '/v1/',
      '/v1beta/',
      '/v1/models/',
      '/v1/messages/',
      '/responses/',
      '//',
      '',
    );
    let arrived = 0;
    await assert(
      asyncProperty(start, array(piece, { maxLength: 12 }), async (first, rest) => {
        const status = await sendRaw(transport, 'GET', first + rest.join(''));
        expect(status).not.toBe(500);
        expect(status).not.toBe(502);
        arrived += reached.length;
        for (const target of reached) expect(pathsOutside(target)).toEqual([]);
      }),
      { numRuns: 400 },
    );
    expect(arrived).toBeGreaterThan(20);
  });

  it.each([
    [['authorization: Bearer administrator-16'], '/v1/models'],
    [['x-api-key: administrator-16'], '/v1/messages/batches'],
    [['x-goog-api-key: administrator-16'], '/v1beta/models'],
    [['cookie: a=administrator-16', 'authorization: Bearer k'], '/v1/models'],
    [['x-api-key: sk-ant-1', 'authorization: Bearer administrator-16'], '/v1/messages/batches'],
    [[], '/v1beta/models?key=administrator-16'],
    [[], '/v1beta/models?key=administrator%2D16'],
  ])("the gateway's own token in %j %s reaches no upstream", async (headers, target) => {
    expect([await sendRaw(transport, 'GET', target, headers), reached]).toEqual([401, []]);
  });

  it("no model call sends the gateway's token to a provider", async () => {
    const headers = ['authorization: Bearer administrator-16', 'content-length: 2'];
    for (const target of ['/v1/chat/completions', '/v1/messages', '/v1/responses/input_tokens'])
      expect([await sendRaw(transport, 'POST', target, headers), reached]).toEqual([401, []]);
  });
});

/** Returns the paths outside `/tenant` that a server could read in a target by decoding it up to three times and taking a backslash for a slash. */
function pathsOutside(target: string): readonly string[] {
  const readings = [target];
  for (let round = 0; round < 3; round++) {
    readings.push(
      readings
        .at(-1)!
        .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    );
  }
  return readings
    .map((reading) => resolvedPath(reading.split('?', 1)[0]!.replaceAll('\\', '/')))
    .filter((path) => !/^\/tenant\/v1(?:beta)?(?:\/|$|[^a-z])/.test(path));
}

function resolvedPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    const name = segment.split(';', 1)[0]!.trim();
    if (name === '..') segments.pop();
    else if (name !== '.' && segment !== '') segments.push(segment);
  }
  return `/${segments.join('/')}`;
}
