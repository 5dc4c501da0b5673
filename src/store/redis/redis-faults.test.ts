import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { inspect } from 'node:util';
import { Redis } from 'iovalkey';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { isRedisMissing, type RedisProcess, startRedis } from '../../../test/support/redis-server.ts';
import { type RedisOptions, redisStore } from './redis.ts';
import type { Store, StoreEntry } from '../store.ts';

describe.skipIf(isRedisMissing)('failures of Redis', () => {
  let redis: RedisProcess;
  let port: number;
  /** Reads the content of the server. */
  let raw: Redis;
  const stores: Store[] = [];

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

  describe('a server that cannot be used', () => {
    /** Returns the errors of a read and a write; undefined for one that works. */
    async function said(options: RedisOptions): Promise<readonly (string | undefined)[]> {
      const store = await redisStore(options);
      const read = await store.get('a').catch((error: Error) => error);
      const write = await store.putMany([entry('a', [1])]).catch((error: Error) => error);
      await store.close();
      return [read, write].map((outcome) => {
        if (!(outcome instanceof Error)) return undefined;
        expect(outcome).toMatchObject({ name: 'LeporelloError', code: 'store-failed' });
        expect(inspect(outcome, { depth: null, showHidden: true })).not.toContain('hush');
        return outcome.message.replaceAll(String(options.port), 'PORT');
      });
    }

    /** A test that waits would time out. */
    const patient = { timeoutMs: 10 * 60_000 };
    const failed = 'The Redis store at 127.0.0.1:PORT failed:';

    it('is not running: calls fail at once and say so', async () => {
      const gone = await startRedis();
      await gone[Symbol.asyncDispose]();
      const refused = `${failed} connect ECONNREFUSED 127.0.0.1:PORT. Start the server, or check host and port.`;
      expect(await said({ port: gone.port, ...patient })).toEqual([refused, refused]);
    });

    it('has an unknown host name', async () => {
      const [read] = await said({ host: 'redis.invalid', port, timeoutMs: 30_000 });
      expect(read).toMatch(
        /^The Redis store at redis\.invalid:PORT failed: getaddrinfo \w+ redis\.invalid\. Check the host name\.$/,
      );
    });

    it('requires a password, or a different one', async () => {
      await using locked = await startRedis('--requirepass', 'hush');
      const there = { port: locked.port, ...patient };
      const missing = `${failed} NOAUTH Authentication required. Check username and password.`;
      expect(await said(there)).toEqual([missing, missing]);
      const wrong = `${failed} WRONGPASS invalid username-password pair or user is disabled. Check username and password.`;
      expect(await said({ ...there, password: 'hush!' })).toEqual([wrong, wrong]);
      expect(await said({ ...there, username: 'ada', password: 'hush!' })).toEqual([wrong, wrong]);
      expect(await said({ ...there, password: 'hush' })).toEqual([undefined, undefined]);
    });

    it('does not let this user write', async () => {
      await using locked = await startRedis('--user', ...'ada on >hush ~* +@read +info'.split(' '));
      const [read, write] = await said({
        port: locked.port,
        username: 'ada',
        password: 'hush',
        ...patient,
      });
      expect(read).toBeUndefined();
      expect(write).toMatch(
        /failed: NOPERM .* 'multi' command\. Let this user run MGET, GET, SET, DEL, MULTI, EXEC, EVAL, SELECT and INFO, with keys that begin with \{leporello\}:\.$/,
      );
    });

    it('permits this user only the commands the store needs', async () => {
      const rights = 'ada on >hush ~{leporello}:* +mget +get +set +del +multi +exec +eval +info'.split(' ');
      await using narrow = await startRedis('--user', ...rights);
      const ada = { port: narrow.port, username: 'ada', password: 'hush', ...patient };
      expect(await said(ada)).toEqual([undefined, undefined]);
      expect((await said({ ...ada, prefix: 'other:' }))[0]).toMatch(/NOPERM .* begin with other:\.$/);
    });

    it('has no such database: nothing is stored in another one', async () => {
      const none = `${failed} ERR DB index is out of range. Choose a database that exists.`;
      expect(await said({ port, database: 99, ...patient })).toEqual([none, none]);
    });

    it('is a replica', async () => {
      await using replica = await startRedis('--replicaof', '127.0.0.1', '1');
      expect(await said({ port: replica.port, ...patient })).toEqual([
        undefined,
        `${failed} READONLY You can't write against a read only replica. It is a replica: use the address of the primary.`,
      ]);
    });

    it('is full: none of the entries is written, and reads and deletes still work', async () => {
      const store = await open({ port, prefix: 'full:' });
      await store.putMany([entry('before', [1])]);
      await raw.config('SET', 'maxmemory', '1');
      await expect(store.putMany([entry('before', [2]), entry('new', [3])])).rejects.toThrow(
        `OOM command not allowed when used memory > 'maxmemory'. Its memory is full: raise its maxmemory, or give Leporello a server of its own.`,
      );
      await expect(store.putUnless(['none'], [entry('before', [2]), entry('new', [3])])).rejects.toThrow(
        'OOM',
      );
      expect(await store.getMany(['before', 'new'])).toEqual([bytes(1), undefined]);
      await store.delete(['before']);
      await raw.config('SET', 'maxmemory', '0');
      await store.putMany([entry('new', [3])]);
      expect(await store.getMany(['before', 'new'])).toEqual([undefined, bytes(3)]);
    });

    it('is not Redis', async () => {
      const web = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad\r\n'));
      const [read] = await said({ port: await listening(web), timeoutMs: 30_000 });
      web.close();
      expect(read).toBe(
        `${failed} Protocol error, got "H" as reply type byte. Please report this. The server that answers is not Redis: check host and port.`,
      );
    });

    it('accepts connections and never answers', async () => {
      const mute = createServer((socket) => socket.on('error', () => undefined));
      const silence = `${failed} no answer within 50 ms. Check the network, whether both sides use TLS, and how busy the server is, or allow more time.`;
      expect((await said({ port: await listening(mute), timeoutMs: 50 }))[0]).toBe(silence);
      mute.close();
    });

    it('closes each connection', async () => {
      const rude = createServer((socket) => socket.on('error', () => undefined).end());
      const lost = `${failed} the connection was lost. The store reconnects by itself once the server is back.`;
      expect((await said({ port: await listening(rude), timeoutMs: 30_000 }))[0]).toBe(lost);
      rude.close();
    });
  });

  describe('a server that becomes unreachable', () => {
    it('and returns: calls fail at once meanwhile, and then work again', async () => {
      await using server = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
      const store = await open({ port: server.port, timeoutMs: 10 * 60_000 });
      await store.putMany([entry('a', [1])]);
      await server.kill();
      await eventually(() => expect(store.get('a')).rejects.toThrow('ECONNREFUSED'));
      await expect(store.putMany([entry('a', [2])])).rejects.toThrow('ECONNREFUSED');
      await server.restart();
      expect(await eventually(() => store.get('a'))).toEqual(bytes(1));
    });

    it('stops answering: a call fails at its deadline, the next ones at once, and all work when it answers again', async () => {
      await using server = await startRedis();
      const store = await open({ port: server.port, timeoutMs: 100 });
      await store.putMany([entry('a', [1])]);
      server.freeze();
      await expect(store.get('a')).rejects.toThrow(/no answer (in time|within 100 ms)/);
      await expect(store.putMany([entry('a', [2])])).rejects.toThrow(/no answer|lost/);
      server.thaw();
      expect(await eventually(() => store.get('a'))).toBeDefined();
    });

    it('is not reported as slow while this thread is busy', async () => {
      const store = await open({ port, prefix: 'busy:', timeoutMs: 60 });
      await eventually(() => store.putMany([entry('a', [1])]));
      // Retried if the machine itself was too slow. A timer that does not read what has arrived fails every time, not sometimes.
      const answeredBetween = async () => {
        busyFor(150);
        const answer = store.get('a');
        busyFor(150);
        return answer;
      };
      for (let i = 0; i < 3; i += 1) expect(await eventually(answeredBetween)).toEqual(bytes(1));
    });

    it('closes an idle connection: the next call does not notice', async () => {
      const store = await open({ port, prefix: 'idle:' });
      await store.putMany([entry('a', [1])]);
      for (let i = 0; i < 5; i += 1) {
        await raw.call('CLIENT', 'KILL', 'TYPE', 'normal');
        // The client may or may not know by now that the connection has ended.
        expect([undefined, 1]).toContain((await store.get('a').catch(() => undefined))?.[0]);
        expect(await eventually(() => store.get('a'))).toEqual(bytes(1));
      }
    });

    it('is killed during writes: it has only whole batches, and all that it acknowledged', async () => {
      await using server = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
      const store = await open({ port: server.port });
      const batch = (writer: number, at: number): StoreEntry[] =>
        Array.from({ length: 10 }, (_, i) => ({
          key: `${writer}/${at}/${i}`,
          value: new Uint8Array(3_000).fill(at),
          expiresAt: undefined,
        }));
      const written = await Promise.all(
        Array.from({ length: 8 }, async (_, writer) => {
          for (let at = 0; ; at += 1) {
            try {
              await store.putMany(batch(writer, at));
              if (writer === 0 && at === 20) void server.kill();
            } catch {
              return at;
            }
          }
        }),
      );
      expect(written[0]).toBeGreaterThanOrEqual(20);
      await server.restart();
      await eventually(() => store.get('a'));
      for (const [writer, count] of written.entries()) {
        for (let at = 0; at <= count; at += 1) {
          const values = await store.getMany(batch(writer, at).map(({ key }) => key));
          const whole = values.filter(
            (value) => value?.length === 3_000 && value.every((byte) => byte === at % 256),
          );
          if (at < count) expect(whole.length).toBe(10);
          else expect([0, 10]).toContain(values.filter((value) => value !== undefined).length);
        }
      }
    });
  });
});

function busyFor(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function bytes(...values: number[]): Uint8Array {
  return new Uint8Array(values);
}

function entry(key: string, value: readonly number[], expiresAt?: number): StoreEntry {
  return { key, value: new Uint8Array(value), expiresAt };
}
