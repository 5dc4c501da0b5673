import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { memoryServer } from '../../examples/memory-server.ts';
import { storeSuite } from '../../test/support/store-suite.ts';
import { httpStore, type MemoryService, storeOfService } from './http.ts';

/** Long enough for a loaded machine: nothing here may depend on it. */
const timeoutMs = 10 * 60_000;

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  if (server.listening) await once(server, 'close');
}

const bytes = (...values: number[]) => new Uint8Array(values);

describe('the store in a service', () => {
  const servers: Server[] = [];
  let urls = 0;

  afterAll(() => Promise.all(servers.map(stop)));

  storeSuite('http', {
    async open(clock) {
      const server = memoryServer();
      servers.push(server);
      return httpStore({ url: `${await listening(server)}/suite${urls++}/`, clock, timeoutMs });
    },
  });

  const services: Map<string, Uint8Array>[] = [];
  const serviceOver = (kept: Map<string, Uint8Array>): MemoryService => ({
    save: async (key, value) => void kept.set(key, value),
    read: async (key) => kept.get(key),
  });
  storeSuite('two calls', {
    open(clock) {
      services.push(new Map());
      return storeOfService(serviceOver(services.at(-1)!), { clock });
    },
    reopen: (clock) => storeOfService(serviceOver(services.at(-1)!), { clock }),
    sweeps: 'by itself',
  });

  it('of two calls keeps deleted and expired entries, which read as absent', async () => {
    const kept = new Map<string, Uint8Array>([['other', bytes(1, 2)]]);
    let now = 1_000;
    const store = storeOfService(serviceOver(kept), { clock: () => now });
    await store.putMany([
      { key: 'a', value: bytes(1), expiresAt: undefined },
      { key: 'b', value: bytes(2), expiresAt: 2_000 },
    ]);
    await store.delete(['a']);
    now = 3_000;
    expect(await store.getMany(['a', 'b', 'other'])).toEqual([undefined, undefined, undefined]);
    expect([...kept].map(([key, value]) => [key, value.length])).toEqual([
      ['other', 2],
      ['a', 0],
      ['b', 10],
    ]);
  });

  it('of two calls saves and renews several entries at once, and originals ahead of the records that need them', async () => {
    const kept = new Map<string, Uint8Array>();
    const calls: { readonly what: string; readonly answer: () => void }[] = [];
    const slowly = async <T>(what: string, answer: () => T): Promise<T> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      calls.push({ what, answer: resolve });
      await promise;
      return answer();
    };
    const store = storeOfService({
      save: (key, value) => slowly(`save ${key}`, () => void kept.set(key, value)),
      read: (key) => slowly(`read ${key}`, () => kept.get(key)),
    });
    /** Answers the calls that wait, all at once, and returns them. Each list is one wait for the service. */
    const waits = async (work: Promise<unknown>): Promise<readonly string[][]> => {
      const lists: string[][] = [];
      let isOver = false;
      void work.finally(() => (isOver = true));
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (isOver) return lists;
        const waiting = calls.splice(0);
        lists.push(waiting.map(({ what }) => what));
        for (const { answer } of waiting) answer();
      }
    };
    const entry = (key: string) => ({ key, value: bytes(1), expiresAt: 5 });
    const originals = Array.from({ length: 20 }, (_, at) => `memory/${at}`);
    const entries = [...originals, 'sealed/t/fold', 'sealed/t/prefix'].map(entry);
    expect(await waits(store.putUnless(['sealed/t/fold'], entries))).toEqual([
      ['read sealed/t/fold'],
      originals.slice(0, 16).map((key) => `save ${key}`),
      originals.slice(16).map((key) => `save ${key}`),
      ['save sealed/t/fold', 'save sealed/t/prefix'],
    ]);
    const renewed = await waits(store.touch(originals, 10 ** 15));
    expect(renewed.map(({ length }) => length)).toEqual([16, 4]);
  });

  it('of two calls takes null for no value, and anything but bytes for a failure', async () => {
    const answers: unknown[] = [null, 'AQID'];
    const store = storeOfService({
      save: async () => undefined,
      read: async () => answers.shift() as null,
    });
    expect(await store.get('a')).toBeUndefined();
    await expect(store.get('a')).rejects.toMatchObject({
      code: 'store-failed',
      message:
        'The memory service could not read: its value is string, not a Uint8Array; decode it in `read`',
    });
  });

  it('of two calls says what the service could not do', async () => {
    const failing: MemoryService = {
      save: () => Promise.reject(new Error('quota exceeded')),
      read: () => Promise.reject(new Error('no such bucket')),
    };
    const store = storeOfService(failing);
    const entries = [{ key: 'a', value: bytes(1), expiresAt: undefined }];
    await expect(store.putMany(entries)).rejects.toMatchObject({
      code: 'store-failed',
      message: 'The memory service could not save: quota exceeded',
    });
    await expect(store.get('a')).rejects.toMatchObject({
      code: 'store-failed',
      message: 'The memory service could not read: no such bucket',
    });
  });
});

describe('a service that does not do what it should', () => {
  let server: Server;
  let url: string;
  let answer: { readonly status?: number; readonly text: string } | undefined;
  const seen: {
    readonly path: string | undefined;
    readonly token: string | undefined;
    readonly body: unknown;
  }[] = [];

  beforeAll(async () => {
    const respond = async (request: IncomingMessage, response: ServerResponse) => {
      const { url: path, headers: given } = request;
      seen.push({ path, token: given.authorization, body: await json(request) });
      // Without an answer the call stays open.
      if (answer) response.writeHead(answer.status ?? 200).end(answer.text);
    };
    server = createServer((request, response) => {
      respond(request, response).catch(() => response.destroy());
    });
    url = await listening(server);
  });

  afterEach(() => {
    answer = undefined;
    seen.length = 0;
  });

  afterAll(() => stop(server));

  const headers = { authorization: 'Bearer hush' };

  async function saidTo(call: (store: ReturnType<typeof httpStore>) => Promise<unknown>, wait = timeoutMs) {
    const store = httpStore({ url, headers, timeoutMs: wait });
    const error = await call(store).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: 'LeporelloError', code: 'store-failed' });
    const { message } = error as Error;
    expect(message).not.toContain('hush');
    return message.replace(url, 'URL');
  }

  it('gets each call as a POST of JSON with the headers and the time', async () => {
    answer = { text: '{"values":[null]}' };
    const store = httpStore({ url: `${url}/base/`, headers, timeoutMs: Infinity, clock: () => 5 });
    expect(await store.get('a')).toBeUndefined();
    answer = { text: '{}' };
    await store.putMany([{ key: 'a', value: bytes(255, 0), expiresAt: Number.POSITIVE_INFINITY }]);
    await store.touch(['a'], 7);
    const token = 'Bearer hush';
    expect(seen).toEqual([
      { path: '/base/get-many', token, body: { keys: ['a'], now: 5 } },
      {
        path: '/base/put-many',
        token,
        body: { entries: [{ key: 'a', value: '/wA=', expiresAt: null }], now: 5 },
      },
      { path: '/base/touch', token, body: { keys: ['a'], expiresAt: 7, now: 5 } },
    ]);
  });

  it('is named with the call and the reason', async () => {
    answer = { status: 503, text: 'busy' };
    expect(await saidTo((store) => store.get('a'))).toBe(
      'The HTTP store at URL failed at get-many: it answered with status 503.',
    );
    answer = { text: '<html>' };
    expect(await saidTo((store) => store.delete(['a']))).toBe(
      'The HTTP store at URL failed at delete: its answer is not a JSON object.',
    );
    answer = { text: '{"values":["AQ=="]}' };
    expect(await saidTo((store) => store.getMany(['a', 'b']))).toBe(
      "The HTTP store at URL failed at get-many: its answer has no list 'values' of 2 base64 texts or nulls. docs/http-store.md shows the answers.",
    );
    answer = { text: '{"found":{"at":"0"}}' };
    expect(await saidTo((store) => store.putUnless(['a'], []))).toBe(
      "The HTTP store at URL failed at put-unless: its answer has no member 'found': null, or an object with at and value. docs/http-store.md shows the answers.",
    );
  });

  it('is not waited for longer than the time limit', async () => {
    expect(await saidTo((store) => store.get('a'), 1)).toBe(
      'The HTTP store at URL failed at get-many: it did not answer within 1 ms.',
    );
  });

  it('is not reachable', async () => {
    const gone = createServer();
    const there = await listening(gone);
    await stop(gone);
    const store = httpStore({ url: there, timeoutMs });
    await expect(store.get('a')).rejects.toMatchObject({
      code: 'store-failed',
      message: expect.stringMatching(
        /^The HTTP store at \S+ failed at get-many: it cannot be reached: .+\.$/,
      ) as string,
    });
  });

  it('has a URL without a credential', () => {
    for (const bad of [
      'memory.internal',
      'ftp://memory',
      'http://user:hush@memory',
      'http://memory?token=hush',
    ])
      expect(() => httpStore({ url: bad })).toThrow(
        'The url of the HTTP store must be an http or https URL without user, query and fragment, such as https://memory.internal/leporello. Put a credential into headers.',
      );
  });
});
