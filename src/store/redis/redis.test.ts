import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Cluster, Redis } from 'iovalkey';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { isRedisMissing, type RedisProcess, startRedis } from '../../../test/support/redis-server.ts';
import { storeSuite } from '../../../test/support/store-suite.ts';
import { type RedisClient, type RedisOptions, redisStore } from './redis.ts';
import type { Store, StoreEntry } from '../store.ts';

describe.skipIf(isRedisMissing)('the store in Redis', () => {
  let redis: RedisProcess;
  let port: number;
  /** Reads the content of the server. */
  let raw: Redis;
  const stores: Store[] = [];
  let prefixes = 0;

  beforeAll(async () => {
    redis = await startRedis();
    ({ port } = redis);
    raw = new Redis(port);
  });

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
  });

  afterAll(async () => {
    raw.disconnect();
    await redis[Symbol.asyncDispose]();
  });

  async function open(options: RedisOptions): Promise<Store> {
    const store = await redisStore({ timeoutMs: 30_000, ...options });
    stores.push(store);
    return store;
  }

  storeSuite('redis', {
    open: (clock) => redisStore({ port, clock, prefix: `suite${++prefixes}:`, timeoutMs: 30_000 }),
    reopen: (clock) => redisStore({ port, clock, prefix: `suite${prefixes}:`, timeoutMs: 30_000 }),
    sweeps: 'by itself',
  });

  describe('the content of the server', () => {
    it('has keys with the prefix, and no other key is changed', async () => {
      await raw.flushall();
      await raw.set('a', 'not ours');
      const [one, other] = [await open({ port }), await open({ port, prefix: 'other:' })];
      await one.putMany([entry('a', [1]), entry('b', [2])]);
      await other.putMany([entry('a', [3])]);
      expect((await raw.keys('*')).toSorted()).toEqual(['a', 'other:a', '{leporello}:a', '{leporello}:b']);
      expect([await one.get('a'), await other.get('a'), await other.get('b')]).toEqual([
        bytes(1),
        bytes(3),
        undefined,
      ]);
      await one.delete(['a', 'b']);
      expect((await raw.keys('*')).toSorted()).toEqual(['a', 'other:a']);
    });

    it('is in the configured database', async () => {
      await (await open({ port, database: 3, prefix: 'base:' })).putMany([entry('a', [1])]);
      expect(await raw.exists('base:a')).toBe(0);
      await raw.select(3);
      expect(await raw.exists('base:a')).toBe(1);
      await raw.select(0);
    });

    it('is deleted by the server one minute after it expired by our clock, never before', async () => {
      const store = await open({ port, prefix: 'swept:', clock: () => 5_000 });
      await store.putMany([entry('soon', [1], 5_500.25), entry('ever', [2]), entry('gone', [3])]);
      await store.putMany([entry('gone', [4], 5_000), entry('endless', [5], Number.POSITIVE_INFINITY)]);
      const more = [entry('a soon', [1], 5_500.25), entry('a ever', [2]), entry('a gone', [3], 5_000)];
      expect(await store.putUnless(['none'], more)).toBeUndefined();
      expect(await raw.pttl('swept:a soon')).toBeLessThanOrEqual(60_501);
      expect(await raw.pttl('swept:a ever')).toBe(-1);
      expect(await raw.exists('swept:a gone')).toBe(0);
      const left = await raw.pttl('swept:soon');
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(60_501);
      expect([await raw.pttl('swept:ever'), await raw.pttl('swept:endless')]).toEqual([-1, -1]);
      expect(await raw.exists('swept:gone')).toBe(0);
    });

    it('reads as absent if it has another format', async () => {
      await raw.mset({ 'strange:short': 'x', 'strange:later': Buffer.alloc(20, 2) });
      await raw.lpush('strange:list', 'x');
      const store = await open({ port, prefix: 'strange:' });
      expect(await store.getMany(['short', 'later', 'list'])).toEqual([undefined, undefined, undefined]);
      expect(await store.getFirst(['short', 'later', 'list'])).toBeUndefined();
      await store.putMany([entry('list', [1])]);
      expect(await store.get('list')).toEqual(bytes(1));
    });
  });

  describe('closing', () => {
    it('waits for pending writes', async () => {
      const store = await open({ port, prefix: 'closing:' });
      const write = store.putMany([entry('a', [1])]);
      await Promise.all([store.close(), write]);
      expect(await raw.exists('closing:a')).toBe(1);
    });

    it('works while the server is unreachable, and lets the process exit', () => {
      const { stdout, stderr } = program(`
        const { redisStore } = await import(process.argv[1]);
        const away = await redisStore({ port: 1 });
        console.log(await away.get('a').catch((error) => error.code));
        const there = await redisStore({ port: ${port} });
        console.log(await there.get('never written'));
        await Promise.all([away.close(), there.close()]);
        await (await redisStore({ port: ${port} })).close();`);
      expect({ stdout, stderr }).toEqual({ stdout: 'store-failed\nundefined\n', stderr: '' });
    });
  });

  it('names the client library if it is not installed', () => {
    const { stdout } = program(`
      import { registerHooks } from 'node:module';
      registerHooks({
        resolve(specifier, context, next) {
          if (specifier === 'iovalkey') throw new Error('Cannot find package');
          return next(specifier, context);
        },
      });
      const { redisStore } = await import(process.argv[1]);
      await redisStore().catch((error) => console.log(error.code + ': ' + error.message));`);
    expect(stdout).toBe(
      'bad-config: The Redis store needs the package iovalkey, which is not installed: npm install iovalkey.\n',
    );
  });

  const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
  it.skipIf(!hasOpenssl)('encrypts the connection, and checks the certificate (needs openssl)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-tls-'));
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    const request = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=redis';
    const names = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    spawnSync('openssl', ['req', ...request.split(' '), ...names, '-keyout', key, '-out', certificate]);
    await using server = await startRedis(
      ...'--port 0 --tls-port PORT --tls-auth-clients no --requirepass hush'.split(' '),
      '--tls-cert-file',
      certificate,
      '--tls-key-file',
      key,
      '--tls-ca-cert-file',
      certificate,
    );
    const ask = `
      const { redisStore } = await import(process.argv[1]);
      const store = await redisStore({ port: ${server.port}, password: 'hush', tls: true, timeoutMs: 30_000 });
      await store.get('a').then(() => console.log('fine'), (error) => console.log(error.message));
      await store.close();`;
    expect(program(ask, { NODE_EXTRA_CA_CERTS: certificate }).stdout).toBe('fine\n');
    expect(program(ask).stdout).toMatch(
      /failed: self-signed certificate.*\. Check its certificate \(NODE_EXTRA_CA_CERTS names .*\), and whether it speaks TLS on this port\.\n$/,
    );
    expect(program(ask.replace('tls: true', 'tls: false')).stdout).toMatch(
      /failed: .*ECONNRESET\. The server ended the connection\. The store reconnects by itself, unless only one side uses TLS\.\n$/,
    );
    rmSync(folder, { recursive: true });
  });

  describe("a client of the caller's", () => {
    it('of another kind is rejected', async () => {
      const other = { get: () => undefined } as unknown as RedisClient;
      await expect(redisStore({ client: other })).rejects.toThrow(
        'The client given to the Redis store has no mgetBuffer: pass a client of the package iovalkey or ioredis.',
      );
    });

    it('is used and left open', async () => {
      const store = await redisStore({ client: raw, prefix: 'given:' });
      await store.putMany([entry('a', [1])]);
      expect(await store.get('a')).toEqual(bytes(1));
      await store.close();
      await expect(store.get('a')).rejects.toThrow('The Redis store of the given client is closed');
      expect(await raw.exists('given:a')).toBe(1);
    });

    it('may be a cluster client: all keys are on one node, in every call', async () => {
      await using one = await startRedis('--cluster-enabled', 'yes');
      await using two = await startRedis('--cluster-enabled', 'yes');
      await joinCluster(one, two);
      const client = new Cluster([{ host: '127.0.0.1', port: one.port }]);
      const store = await open({ client, timeoutMs: 30_000 });
      const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
      await store.putMany(keys.map((key, i) => entry(key, [i])));
      expect(await store.getMany(keys)).toEqual(keys.map((_, i) => bytes(i)));
      expect(await store.getFirst(['none', ...keys])).toEqual({ at: 1, value: bytes(0) });
      expect(await store.putUnless(['none'], [entry('other', [9])])).toBeUndefined();
      await store.delete(keys);
      expect(await store.getMany(keys)).toEqual(keys.map(() => undefined));

      const scattered = await open({ client, timeoutMs: 30_000, prefix: 'scattered:' });
      await expect(scattered.putMany(keys.map((key, i) => entry(key, [i])))).rejects.toMatchObject({
        code: 'store-failed',
        message: expect.stringContaining('a prefix with a part in braces') as string,
      });
      client.disconnect();

      const plain = await Promise.all([one, two].map((node) => open({ port: node.port })));
      const outcomes = await Promise.allSettled(plain.map((single) => single.get('a')));
      const reasons = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected'
          ? [String(outcome.reason).replace(/\d+ 127.0.0.1:\d+/, 'SLOT PLACE')]
          : [],
      );
      expect(reasons).toEqual([
        expect.stringMatching(
          /failed: MOVED SLOT PLACE\. It is a cluster: pass redisStore a cluster client, and a prefix with a part in braces\.$/,
        ),
      ]);
    });
  });
});

/** Each node has half of the slots. */
async function joinCluster(one: RedisProcess, two: RedisProcess): Promise<void> {
  const [first, second] = [new Redis(one.port), new Redis(two.port)];
  await first.cluster('ADDSLOTSRANGE', 0, 8_191);
  await second.cluster('ADDSLOTSRANGE', 8_192, 16_383);
  await first.cluster('MEET', '127.0.0.1', two.port);
  await eventually(async () => {
    for (const node of [first, second]) expect(await node.cluster('INFO')).toContain('cluster_state:ok');
    for (const node of [first, second]) expect(await node.cluster('SLOTS')).toHaveLength(2);
  });
  first.disconnect();
  second.disconnect();
}

/** Runs in another process, with the URL of redis.ts as its argument. */
function program(code: string, env: Readonly<Record<string, string>> = {}) {
  const source = pathToFileURL('src/store/redis/redis.ts').href;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', code, source], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  });
}

function bytes(...values: number[]): Uint8Array {
  return new Uint8Array(values);
}

function entry(key: string, value: readonly number[], expiresAt?: number): StoreEntry {
  return { key, value: new Uint8Array(value), expiresAt };
}
