/**
 * Proves on real processes that a shadow spends no more than its cap and compares nothing twice: two gateways on one Redis and on one SQLite file, which
 * repeat requests at the same time, and a gateway that is killed while the provider answers a repeated request. The scripted provider adds up what it bills.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBudget } from '../../src/experiment/budget.ts';
import type { ExperimentResults } from '../../src/experiment/spell.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import { storeFile } from '../../src/store/data-folder.ts';
import { redisStore } from '../../src/store/redis/redis.ts';
import { sqliteStore } from '../../src/store/sqlite/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider/fake-provider.ts';
import type { Reply, Script } from '../support/fake-provider/script.ts';
import { isRedisMissing, startRedis } from '../support/redis-server.ts';
import { longBody, postStream } from './bodies.ts';
import { foldingEarly } from './stack.ts';

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const price = { input: 10, cacheRead: 1, cacheWrite: 12.5, output: 50 };
const secret = 'a secret of these tests, long enough';
const capReached = 'the cap of the day might have been exceeded';

/** Characters of the longest request that is served, folded or small. */
const foldedLength = 26_000;

let folder: string;
const children: ChildProcess[] = [];
const providers: FakeProvider[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'leporello-shadow-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const provider of providers.splice(0)) await provider.close();
  await rm(folder, { recursive: true, force: true });
});

async function scripted(script: Script): Promise<FakeProvider> {
  const provider = await startFakeProvider({ script });
  providers.push(provider);
  return provider;
}

/** Starts `leporello serve` with a shadow of every folded request. */
async function gateway(provider: FakeProvider, usdPerDay: number, memory: object = {}) {
  const { tenant, triggers, calibration, offerRecall } = foldingEarly;
  const config = {
    tenant,
    models: { '*': { windowTokens: 200_000, tokenizer: 'o200k_base' } },
    triggers,
    calibrate: calibration,
    recall: { offer: offerRecall },
    usdPerMillionTokens: { '*': price },
    memory,
    experiment: { shadow: { share: 1, usdPerDay, billShare: 1 } },
  };
  const file = join(folder, `${children.length}.json`);
  await writeFile(file, JSON.stringify(config));
  const flags = ['serve', '--port', '0', '--json', '--config', file, '--data', join(folder, 'data')];
  const child = spawn(process.execPath, [main, ...flags, '--anthropic-url', provider.url], {
    env: { PATH: process.env['PATH'], HOME: folder, LEPORELLO_SECRET: secret },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  await eventually(() => expect(said).toContain('"url"'));
  const { url } = JSON.parse(said.split('\n').find((line) => line.includes('"url"'))!) as { url: string };
  return { child, url };
}

type Billed = { usd: number; calls: number };

/** Bills requests by their length. A request that comes again, or is longer than any that is served, is one of the shadow. */
function billing(billed: Billed, hold?: (calls: number) => Promise<void>): Script {
  const seen = new Set<string>();
  return async ({ body }): Promise<Reply> => {
    const text = JSON.stringify(body);
    const isRepeated = seen.has(text) || text.length > foldedLength;
    seen.add(text);
    const usage = { input: Math.ceil(text.length / 30), cacheRead: 0, cacheWrite: 0, output: 40 };
    if (isRepeated) {
      billed.calls += 1;
      billed.usd += (usage.input * price.input + usage.output * price.output) / 1e6;
      await hold?.(billed.calls);
    }
    return { type: 'turn', parts: [{ type: 'text', text: 'Done with all of it.' }], usage };
  };
}

async function ask(url: string, name: string, jobs: number): Promise<void> {
  const { messages } = JSON.parse(longBody('messages', jobs).replace('Run all jobs.', name)) as {
    messages: object;
  };
  const response = await postStream(url, 'messages', { messages });
  expect(response.status).toBe(200);
  await response.text();
}

async function resultsOf(url: string): Promise<ExperimentResults> {
  return (await (await fetch(`${url}/_leporello/experiment`)).json()) as ExperimentResults;
}

/** Returns the USD of today that are spent or reserved, and closes the store. */
async function takenIn(store: Store): Promise<number> {
  const encryptedStore = createEncryptedStore({ store, secret: new TextEncoder().encode(secret) });
  const taken = await createBudget({ encryptedStore, usdPerDay: 1, clock: Date.now }).today('local');
  await store.close();
  return taken;
}

/** Waits until the provider gets no more requests. */
async function quiet({ requests }: FakeProvider): Promise<void> {
  for (let count = -1; count !== requests.length; ) {
    count = requests.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Starts nothing for a SQLite file: both gateways have one data folder. */
async function sharedMemory(name: 'Redis' | 'SQLite file') {
  if (name === 'SQLite file') {
    const open = () => sqliteStore({ file: storeFile(join(folder, 'data')) });
    return { memory: {}, open, [Symbol.asyncDispose]: async () => undefined };
  }
  const redis = await startRedis();
  return {
    memory: { redis: { port: redis.port, timeoutMs: 60_000 } },
    open: () => redisStore({ port: redis.port }),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

const stores = isRedisMissing ? (['SQLite file'] as const) : (['SQLite file', 'Redis'] as const);

describe.each(stores)('two gateways on one %s', (name) => {
  it('never spend more on repeated requests than the cap, together', async () => {
    const usdPerDay = 0.3;
    const billed: Billed = { usd: 0, calls: 0 };
    await using shared = await sharedMemory(name);
    const provider = await scripted(billing(billed));
    const urls: string[] = [];
    for (let at = 0; at < 2; at++) urls.push((await gateway(provider, usdPerDay, shared.memory)).url);
    for (let batch = 0; batch < 40; batch++) {
      await Promise.all(
        [0, 1, 2, 3].map((at) => ask(urls[at % 2]!, `Job ${batch} ${at}`, batch < 15 ? 6 : 12)),
      );
      // A shadow sends while its gateway is idle, and the next request is drawn only when it has ended.
      if (batch >= 30) await quiet(provider);
    }
    await quiet(provider);
    const taken = await takenIn(await shared.open());
    const [one, other] = await Promise.all(urls.map(resultsOf));
    expect(other).toEqual(one);
    const tallies = one!.shadows.map(({ tally }) => tally);
    expect(tallies.flatMap(({ dropped }) => Object.keys(dropped))).toContain(capReached);
    expect(billed.calls).toBeGreaterThan(3);
    expect(taken).toBeLessThanOrEqual(usdPerDay);
    expect(taken).toBeCloseTo(billed.usd, 8);
    expect(tallies.reduce((sum, { usd }) => sum + usd, 0)).toBeCloseTo(billed.usd, 6);
  });

  it('compare one request at a time, and none twice, also when a client sends each to both at once', async () => {
    await using shared = await sharedMemory(name);
    let atOnce = 0;
    let highest = 0;
    const wholes = new Map<string, number>();
    const provider = await scripted(async ({ body }): Promise<Reply> => {
      const text = JSON.stringify(body);
      const usage = { input: Math.ceil(text.length / 30), cacheRead: 0, cacheWrite: 0, output: 40 };
      const reply: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Done with all of it.' }], usage };
      if (text.length <= foldedLength) return reply;
      // Only the shadow sends a whole request: twice for each comparison.
      const [conversation = ''] = /Job \d+/.exec(text) ?? [];
      wholes.set(conversation, (wholes.get(conversation) ?? 0) + 1);
      atOnce += 1;
      highest = Math.max(highest, atOnce);
      await new Promise((resolve) => setTimeout(resolve, 50));
      atOnce -= 1;
      return reply;
    });
    const urls: string[] = [];
    for (let at = 0; at < 2; at++) urls.push((await gateway(provider, 100, shared.memory)).url);
    for (let at = 0; at < 60; at++) await Promise.all(urls.map((url) => ask(url, `Small ${at}`, 6)));
    for (let at = 0; at < 12; at++) {
      await Promise.all(urls.map((url) => ask(url, `Job ${at}`, 12)));
      await quiet(provider);
    }
    expect(highest).toBe(1);
    expect([...wholes.values()]).toEqual(Array.from({ length: 12 }, () => 2));
  });
});

describe('a gateway that is killed while the provider answers a repeated request', () => {
  it.each([1, 2, 3])('keeps what it has reserved, before call %i is answered', async (killedAt) => {
    const billed: Billed = { usd: 0, calls: 0 };
    const reached = Promise.withResolvers<void>();
    const hold = async (calls: number): Promise<void> => {
      if (calls !== killedAt) return;
      reached.resolve();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    };
    const provider = await scripted(billing(billed, hold));
    const first = await gateway(provider, 0.3);
    // A repeated request must wait until the tenant's bill allows it.
    for (let at = 0; at < 60; at++) await ask(first.url, `Job ${at}`, 6);
    await ask(first.url, 'All jobs', 12);
    await reached.promise;
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    expect(billed.calls).toBe(killedAt);

    const reserved = await takenIn(await sqliteStore({ file: storeFile(join(folder, 'data')) }));
    expect(reserved).toBeGreaterThan(billed.usd);
    // This cap leaves half of what a comparison reserves.
    const next = await gateway(provider, reserved * 1.5);
    for (let at = 0; at < 60; at++) await ask(next.url, `Later job ${at}`, 6);
    for (let dropped = 1; dropped <= 3; dropped++) {
      await ask(next.url, `All jobs again ${dropped}`, 12);
      await eventually(async () => {
        const { shadows } = await resultsOf(next.url);
        expect(shadows.map(({ tally }) => tally.dropped)).toEqual([{ [capReached]: dropped }]);
      });
    }
    await quiet(provider);
    // Nothing more was sent: what the killed process had reserved stays spent, and covers what the provider billed.
    expect(billed.calls).toBe(killedAt);
    next.child.kill('SIGKILL');
    await once(next.child, 'exit');
    expect(await takenIn(await sqliteStore({ file: storeFile(join(folder, 'data')) }))).toBe(reserved);
  });
});
