/**
 * The law of one history: whatever several instances on one store are asked, one after the other or at once, what was sent for a prefix is
 * sent for it again, by all of them, until a fold is made on that very branch. On every store.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inMemoryStore } from '../src/store/in-memory.ts';
import { redisStore } from '../src/store/redis/redis.ts';
import { sqliteStore } from '../src/store/sqlite/sqlite.ts';
import type { Store } from '../src/store/store.ts';
import { isRedisMissing, type RedisProcess, startRedis } from './support/redis-server.ts';
import { type Act, play, type Played } from './instances/play.ts';

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('goes on' as const) },
    { weight: 2, arbitrary: fc.constant('again' as const) },
    { weight: 2, arbitrary: fc.constant('forks' as const) },
  ),
  branch: fc.nat(3),
  instance: fc.nat(2),
  lines: fc.constantFrom(0, 50, 100, 150),
  back: fc.nat(4),
  recalls: fc.integer({ min: 0, max: 4 }).map((chance) => chance === 0),
  reported: fc.constantFrom(80, 100, 125),
});

/** Conversations that begin while the first of their agent is folded may be offered the recall tool by one instance and not by another. */
const oneByOne = fc
  .array(fc.oneof({ weight: 8, arbitrary: act }, { weight: 1, arbitrary: act.map(begins) }), {
    minLength: 10,
    maxLength: 40,
  })
  .map((acts) => acts.map((one): readonly Act[] => [one]));
const atOnce = fc.array(fc.array(act, { minLength: 1, maxLength: 3 }), { minLength: 5, maxLength: 20 });
/** Whether their agent had a fold before, and what is done. */
const history = fc.tuple(fc.boolean(), fc.oneof(oneByOne, atOnce));

function begins(one: Act): Act {
  return { ...one, kind: 'begins' };
}

/** That there was something to get wrong. */
function expectMuch({ folds, hiddenRecalls, branches }: Played): void {
  expect(folds).toBeGreaterThan(10);
  expect(hiddenRecalls).toBeGreaterThan(10);
  expect(branches).toBeGreaterThan(10);
}

describe('several instances on one store send one history', () => {
  it('in this process, however their calls of the store come in between each other', async () => {
    const played: Played = { folds: 0, hiddenRecalls: 0, branches: 0 };
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), history, async (scheduler, acts) => {
        const store = inMemoryStore();
        const later = () => scheduler.schedule(Promise.resolve());
        const slow: Store = {
          ...store,
          getMany: (...given) => later().then(() => store.getMany(...given)),
          getFirst: (...given) => later().then(() => store.getFirst(...given)),
          putMany: (...given) => later().then(() => store.putMany(...given)),
          putUnless: (...given) => later().then(() => store.putUnless(...given)),
        };
        await scheduler.waitFor(play([slow, slow, slow], ...acts, played));
      }),
      { numRuns: 60 },
    );
    expectMuch(played);
  });

  it('in SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-instances-'));
    const played: Played = { folds: 0, hiddenRecalls: 0, branches: 0 };
    let files = 0;
    try {
      await fc.assert(
        fc.asyncProperty(history, async (acts) => {
          const file = join(folder, `${files++}.db`);
          await withStores(
            () => sqliteStore({ file, isShared: true }),
            (stores) => play(stores, ...acts, played),
          );
        }),
        { numRuns: 45 },
      );
      expectMuch(played);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  describe.skipIf(isRedisMissing)('on a server', () => {
    let redis: RedisProcess;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis[Symbol.asyncDispose]());

    it('in Redis', async () => {
      const played: Played = { folds: 0, hiddenRecalls: 0, branches: 0 };
      let prefixes = 0;
      await fc.assert(
        fc.asyncProperty(history, async (acts) => {
          const prefix = `{${prefixes++}}:`;
          const open = () => redisStore({ port: redis.port, prefix, timeoutMs: 30_000 });
          await withStores(open, (stores) => play(stores, ...acts, played));
        }),
        { numRuns: 45 },
      );
      expectMuch(played);
    });
  });
});

/** Each with a connection of its own. */
async function withStores(
  open: () => Promise<Store>,
  use: (stores: readonly Store[]) => Promise<void>,
): Promise<void> {
  const stores = await Promise.all([open(), open(), open()]);
  try {
    await use(stores);
  } finally {
    for (const store of stores) await store.close();
  }
}
