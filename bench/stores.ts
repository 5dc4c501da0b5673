/**
 * Measures the stores: put and get of 10 kB, a look-up of 64 keys of which two exist (the look-up of a request), and 50 concurrent calls. Run
 * `node bench/stores.ts`; it starts its own Redis, prints tables and writes bench/results/stores.json. It takes about half a minute. Without
 * redis-server or valkey-server the rows of Redis are left out.
 *
 * Traps: (1) Redis runs on this machine and shares its cores. Over a real network each call takes one more round trip, but the server uses none
 * of this machine's CPU. (2) The in-memory store only copies: it is the lower bound, not an alternative. (3) SQLite calls block the thread,
 * so 50 concurrent calls run one after the other and the gateway does nothing else meanwhile. Redis calls leave the thread free; compare the
 * CPU time of this process. (4) Values are random bytes, like encrypted ones, so no store can compress them. (5) All stores run in every round,
 * in turn, and figures are over all rounds. Compare figures of one run only.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { redisStore } from '../src/store/redis/redis.ts';
import { sqliteStore } from '../src/store/sqlite/sqlite.ts';
import type { Store } from '../src/store/store.ts';
import { isRedisMissing, startRedis } from '../test/support/redis-server.ts';
import { writeResult } from './results.ts';
import { median, quantile, round } from './tokens/arithmetic.ts';

const rounds = 5;
const calls = 1_000;
const concurrency = 50;
const value = new Uint8Array(randomBytes(10_000));
const month = 30 * 24 * 60 * 60 * 1_000;

type Call = (store: Store, at: number) => Promise<unknown>;

const put: Call = (store, at) => store.putMany([{ key: `key/${at}`, value, expiresAt: Date.now() + month }]);
const get: Call = (store, at) => store.get(`key/${at}`);
const kinds: Readonly<Record<string, Call>> = {
  put,
  get,
  'look up 64 keys, 2 exist': (store, at) =>
    store.getMany(Array.from({ length: 64 }, (_, i) => (i < 2 ? `key/${at}` : `none/${at}/${i}`))),
};

await main();

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'leporello-bench-stores-'));
  const server = isRedisMissing ? undefined : await startRedis();
  const stores = [
    inMemoryStore({ maxBytes: 1e9 }),
    await sqliteStore({ file: join(folder, 'memory.sqlite') }),
    ...(server ? [await redisStore({ port: server.port })] : []),
  ];
  try {
    const { sequential, concurrent } = await measure(stores);
    for (const [title, rows] of [
      ['sequential calls, µs', sequential],
      [`${concurrency} concurrent calls, calls/s`, concurrent],
    ] as const) {
      console.log(`\n${title}`);
      console.table(rows);
    }
    writeResult('stores', { rounds, calls, bytes: value.length, sequential, concurrent });
  } finally {
    for (const store of stores) await store.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
}

async function measure(stores: readonly Store[]) {
  const times = new Map<string, number[]>();
  const cpu = new Map<string, number>();
  const rates = new Map<string, number[]>();
  for (let turn = -1; turn < rounds; turn++) {
    for (const store of stores) {
      for (const [kind, call] of Object.entries(kinds)) {
        const key = `${store.name} ${kind}`;
        const before = process.cpuUsage();
        const callTimes = await timesOf(call, store, turn);
        const { user, system } = process.cpuUsage(before);
        const rate = await rateOf(call, store, turn);
        if (turn < 0) continue;
        times.set(key, [...(times.get(key) ?? []), ...callTimes]);
        cpu.set(key, (cpu.get(key) ?? 0) + user + system);
        rates.set(key, [...(rates.get(key) ?? []), rate]);
      }
    }
  }
  const sequential = stores.flatMap(({ name }) =>
    Object.keys(kinds).map((kind) => {
      const callTimes = times.get(`${name} ${kind}`)!;
      const at = (share: number) => round(quantile(callTimes, share), 0);
      const cpuPerCall = round(cpu.get(`${name} ${kind}`)! / callTimes.length, 0);
      return {
        store: name,
        call: kind,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        'CPU of this process': cpuPerCall,
      };
    }),
  );
  const concurrent = stores.map(({ name }) => ({
    store: name,
    ...Object.fromEntries(
      Object.keys(kinds).map((kind) => [kind, round(median(rates.get(`${name} ${kind}`)!), 0)]),
    ),
  }));
  return { sequential, concurrent };
}

/** Returns the microseconds of each call. */
async function timesOf(call: Call, store: Store, turn: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let i = 0; i < calls; i++) {
    const start = performance.now();
    await call(store, (turn + 1) * calls + i);
    times.push((performance.now() - start) * 1_000);
  }
  return times;
}

/** Returns calls per second. */
async function rateOf(call: Call, store: Store, turn: number): Promise<number> {
  const start = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < calls) await call(store, (turn + 1) * calls + next++);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return (calls * 1_000) / (performance.now() - start);
}
