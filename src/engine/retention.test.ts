/** Retention counts from the last use: everything that a conversation still uses is renewed, across restarts, in every store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createKeptReplies } from '../store/hidden-recalls.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { createEncryptedStore, memoryIdsIn } from '../store/encrypted-store.ts';
import { redisStore } from '../store/redis/redis.ts';
import { sqliteStore } from '../store/sqlite/sqlite.ts';
import type { Clock, Store } from '../store/store.ts';
import { chatBody, jobSteps, type Step } from '../../test/support/chat-conversation.ts';
import { isRedisMissing, type RedisProcess, startRedis } from '../../test/support/redis-server.ts';
import { createDefaultEngine } from '../library/default-engine.ts';

const dayMs = 24 * 60 * 60 * 1_000;
const tenant = 'local';
const settings = { models: { '*': { windowTokens: 20_000 } }, shrinks: false } as const;
const jobs = jobSteps(30);

/** Opens the same store each time, as a restarted process does. */
type StoreLocation = { open(clock: Clock): Promise<Store>; leave(store: Store): Promise<void> };

function inProcess(): StoreLocation {
  let store: Store | undefined;
  return {
    open: async (clock) => (store ??= inMemoryStore({ clock })),
    leave: () => Promise.resolve(),
  };
}

/** Runs processes one after the other on one store, on the days that the test names. */
function history(place: StoreLocation) {
  let day = 0;
  const clock = () => Date.UTC(2026, 0, 1) + day * dayMs;
  return {
    async on<T>(
      newDay: number,
      visit: (process: Awaited<ReturnType<typeof started>>) => Promise<T>,
    ): Promise<T> {
      day = newDay;
      const process = await started();
      try {
        return await visit(process);
      } finally {
        await new Promise((resolve) => setImmediate(resolve));
        await place.leave(process.store);
      }
    },
  };

  async function started() {
    const store = await place.open(clock);
    const encryptedStore = createEncryptedStore({
      store,
      clock,
      secret: new Uint8Array(32).fill(5),
      storeDeadlineMs: 60_000,
    });
    const parts = { clock };
    const engine = createDefaultEngine(settings, encryptedStore, parts);
    const keeping = createDefaultEngine(settings, encryptedStore, { ...parts, isHistoryKept: true });
    return {
      store,
      encryptedStore,
      keptReplies: createKeptReplies({ encryptedStore, clock }),
      async prepare(steps: readonly Step[]) {
        const body = chatBody(steps, { tools: ['run'] });
        const prepared = await engine.prepare({ codec: openaiChat, body, tenant });
        await prepared.known;
        return prepared;
      },
      async compact(body: Uint8Array) {
        return (await keeping.prepare({ codec: openaiChat, body, tenant })).body;
      },
      async found(ids: readonly string[]) {
        const recalled = await Promise.all(ids.map((id) => encryptedStore.recallAny(id)));
        return recalled.filter(({ status }) => status === 'found').length;
      },
    };
  }
}

const messagesOf = (body: Uint8Array) =>
  (JSON.parse(new TextDecoder().decode(body)) as { messages: readonly object[] }).messages;

describe('a store that keeps records for 30 days', () => {
  let folder: string;
  let redis: RedisProcess | undefined;
  let places = 0;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'leporello-retention-'));
    if (!isRedisMissing) redis = await startRedis();
  });

  afterAll(async () => {
    await redis?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const onDisk = (): StoreLocation => {
    const file = join(folder, `${++places}.db`);
    return { open: (clock) => sqliteStore({ file, clock }), leave: (store) => store.close() };
  };
  const onServer = (): StoreLocation => {
    const prefix = `{p${++places}}:`;
    return {
      open: (clock) => redisStore({ port: redis?.port, prefix, clock, timeoutMs: 60_000 }),
      leave: (store) => store.close(),
    };
  };

  describe.each([
    ['in this process', inProcess, false],
    ['in SQLite', onDisk, false],
    ['in Redis', onServer, isRedisMissing],
  ] as const)('%s', (_, place, isMissing) => {
    it.skipIf(isMissing)(
      'still has everything of a conversation that is used every 20 days, after 100 days',
      async () => {
        const { on } = history(place());
        const first = await on(0, ({ prepare }) => prepare(jobs));
        const ids = first.report.memories;
        expect(ids.length).toBeGreaterThan(10);
        let sent = messagesOf(first.body);
        for (const day of [20, 40, 60, 80, 100]) {
          const steps = [...jobs, ...Array.from({ length: day / 20 }, (__, at) => said(at))];
          const prepared = await on(day, ({ prepare }) => prepare(steps));
          expect([day, prepared.report.steps, prepared.report.replayed > 0]).toEqual([day, [], true]);
          expect(messagesOf(prepared.body).slice(0, sent.length)).toEqual(sent);
          sent = messagesOf(prepared.body);
        }
        expect(await on(100, ({ found }) => found(ids))).toBe(ids.length);
        expect(await on(129, ({ found }) => found(ids))).toBe(ids.length);
        expect(await on(131, ({ found }) => found(ids))).toBe(0);
      },
    );

    it.skipIf(isMissing)('has nothing of a conversation that was not used for 31 days', async () => {
      const { on } = history(place());
      const { report } = await on(0, ({ prepare }) => prepare(jobs));
      expect(await on(29, ({ found }) => found(report.memories))).toBe(report.memories.length);
      await on(31, async ({ found, prepare }) => {
        expect(await found(report.memories)).toBe(0);
        const again = await prepare([...jobs, said(0)]);
        expect([again.report.replayed, again.report.steps.length > 0]).toEqual([0, true]);
      });
    });

    it.skipIf(isMissing)('keeps the content that a branch shares with an unused conversation', async () => {
      const { on } = history(place());
      const { report } = await on(0, ({ prepare }) => prepare([...jobs, said(0)]));
      const branch = [...jobs, { user: 'Rather do something else.' }];
      for (const day of [0, 20, 40, 60]) {
        const { report: its } = await on(day, ({ prepare }) => prepare(branch));
        expect([day, its.replayed > 0, its.steps]).toEqual([day, true, []]);
      }
      expect(await on(85, ({ found }) => found(report.memories))).toBe(report.memories.length);
    });

    it.skipIf(isMissing)('keeps the one original that is recalled', async () => {
      const { on } = history(place());
      const { report } = await on(0, ({ prepare }) => prepare(jobs));
      const [id = ''] = report.memories;
      for (const day of [20, 40, 60]) {
        const { status } = await on(day, ({ encryptedStore }) => encryptedStore.recall(tenant, id));
        expect([day, status]).toEqual([day, 'found']);
      }
      expect(await on(61, ({ found }) => found(report.memories))).toBe(1);
    });

    it.skipIf(isMissing)('keeps hidden recalls as long as they are put back', async () => {
      const { on } = history(place());
      const turn = { role: 'assistant', content: null, tool_calls: [recallCall] };
      const round = {
        turn: new TextEncoder().encode(JSON.stringify(turn)),
        answers: [
          { call: { id: 'c1', name: 'read_memory', argumentsJson: '{"id":"m"}' }, text: 'It was 7.' },
        ],
      };
      await on(0, async ({ prepare }) => {
        const { remember } = await prepare(jobs);
        await remember({ rounds: [round], closing: undefined });
      });
      const steps = [...jobs, { assistant: 'Seven.' }, { user: 'Sure?' }];
      for (const day of [20, 40, 60]) {
        const { report, body } = await on(day, ({ prepare }) => prepare(steps));
        expect([day, report.hiddenRecalls]).toEqual([day, 1]);
        expect(new TextDecoder().decode(body)).toContain('It was 7.');
      }
      expect((await on(91, ({ prepare }) => prepare(steps))).report.hiddenRecalls).toBe(0);
    });

    it.skipIf(isMissing)('keeps how to continue a reply as long as a client does', async () => {
      const { on } = history(place());
      const reply = { name: 'resp_2', pendingAnswers: [] };
      await on(0, ({ keptReplies }) => keptReplies.record(tenant, 'resp_1', reply));
      for (const day of [20, 40, 60])
        expect(await on(day, ({ keptReplies }) => keptReplies.find(tenant, 'resp_1'))).toEqual(reply);
      expect(await on(91, ({ keptReplies }) => keptReplies.find(tenant, 'resp_1'))).toBeUndefined();
    });
  });

  it('keeps the originals of stubs in the messages of a program that keeps its own history', async () => {
    const { on } = history(inProcess());
    let body = await on(0, ({ compact }) => compact(chatBody(jobs, { tools: ['run', 'read_memory'] })));
    const ids = memoryIdsIn(body);
    expect(ids.length).toBeGreaterThan(0);
    for (const day of [20, 40, 60]) {
      const messages = [...messagesOf(body), { role: 'user', content: `Day ${day}` }];
      const frame = JSON.parse(new TextDecoder().decode(body)) as object;
      const next = new TextEncoder().encode(JSON.stringify({ ...frame, messages }));
      body = await on(day, ({ compact }) => compact(next));
    }
    expect(await on(61, ({ found }) => found(ids))).toBe(ids.length);
  });

  it('is not written to with every request', async () => {
    const { on } = history(inProcess());
    const touched: number[] = [];
    await on(0, ({ prepare }) => prepare(jobs));
    await on(20, async ({ store, prepare }) => {
      const { touch } = store;
      Object.assign(store, {
        touch(keys: readonly string[], expiresAt: number) {
          touched.push(keys.length);
          return touch(keys, expiresAt);
        },
      });
      for (let more = 0; more < 5; more++) {
        await prepare([...jobs, ...Array.from({ length: more }, (__, at) => said(at))]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    expect(touched.length).toBe(1);
  });
});

const recallCall = { id: 'c1', type: 'function', function: { name: 'read_memory', arguments: '{"id":"m"}' } };

const said = (at: number): Step => ({ user: `And then? ${at}` });
