/**
 * Tests on every store that several instances send one history: whatever they are asked, in turn or at once, each of them sends a prefix
 * with the same bytes until that branch is folded.
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
import { type Action, play, type Counts } from './instances/play.ts';

const act: fc.Arbitrary<Action> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('continues' as const) },
    { weight: 2, arbitrary: fc.constant('repeats' as const) },
    { weight: 2, arbitrary: fc.constant('forks' as const) },
  ),
  branch: fc.nat(3),
  instance: fc.nat(2),
  lines: fc.constantFrom(0, 50, 100, 150),
  back: fc.nat(4),
  recalls: fc.integer({ min: 0, max: 4 }).map((chance) => chance === 0),
  reported: fc.constantFrom(80, 100, 125),
});

/** Actions one by one. New conversations begin only here. */
const oneByOne = fc
  .array(fc.oneof({ weight: 8, arbitrary: act }, { weight: 1, arbitrary: act.map(begins) }), {
    minLength: 10,
    maxLength: 40,
  })
  .map((acts) => acts.map((one): readonly Action[] => [one]));
const atOnce = fc.array(fc.array(act, { minLength: 1, maxLength: 3 }), { minLength: 5, maxLength: 20 });
/** Whether another conversation was folded before, and the rounds of actions. */
const history = fc.tuple(fc.boolean(), fc.oneof(oneByOne, atOnce));

function begins(one: Action): Action {
  return { ...one, kind: 'begins' };
}

/**
 * Plays so many random histories, and as many again, at most four times, until enough was played for the law to mean something: how many recalls a history has
 * is chance, and depends on whose answer comes first.
 */
async function playEnough(
  histories: number,
  property: (played: Counts) => fc.IAsyncProperty<unknown>,
): Promise<void> {
  const played: Counts = { folds: 0, hiddenRecalls: 0, branches: 0 };
  const isEnough = () => Object.values(played).every((count) => count > 10);
  for (let round = 0; round < 5 && !isEnough(); round++)
    await fc.assert(property(played), { numRuns: histories });
  expect(played.folds).toBeGreaterThan(10);
  expect(played.hiddenRecalls).toBeGreaterThan(10);
  expect(played.branches).toBeGreaterThan(10);
}

describe('several instances on one store send one history', () => {
  it.each([
    { name: 'as if in several processes', isShared: true },
    { name: 'in one process', isShared: false },
  ])('$name, however their store calls interleave', async ({ isShared }) => {
    await playEnough(60, (played) =>
      fc.asyncProperty(fc.scheduler(), history, async (scheduler, acts) => {
        const store = inMemoryStore();
        const later = () => scheduler.schedule(Promise.resolve());
        const slow: Store = {
          ...store,
          isShared,
          getMany: (...given) => later().then(() => store.getMany(...given)),
          getFirst: (...given) => later().then(() => store.getFirst(...given)),
          putMany: (...given) => later().then(() => store.putMany(...given)),
          putUnless: (...given) => later().then(() => store.putUnless(...given)),
        };
        await scheduler.waitFor(play([slow, slow, slow], ...acts, played));
      }),
    );
  });

  it('in SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leporello-instances-'));
    let files = 0;
    try {
      await playEnough(100, (played) =>
        fc.asyncProperty(history, async (acts) => {
          const file = join(folder, `${files++}.db`);
          await withStores(
            () => sqliteStore({ file, isShared: true }),
            (stores) => play(stores, ...acts, played),
          );
        }),
      );
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
      let prefixes = 0;
      await playEnough(150, (played) =>
        fc.asyncProperty(history, async (acts) => {
          const prefix = `{${prefixes++}}:`;
          const open = () => redisStore({ port: redis.port, prefix, timeoutMs: 30_000 });
          await withStores(open, (stores) => play(stores, ...acts, played));
        }),
      );
    });
  });
});

/** Opens several stores, each with its own connection. */
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
