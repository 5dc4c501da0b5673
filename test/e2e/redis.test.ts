/** Tests the whole gateway with a real Redis: round trips, sharing between two gateways, and a killed server. */
import { Redis } from 'iovalkey';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { redisStore } from '../../src/store/redis/redis.ts';
import type { Store } from '../../src/store/store.ts';
import { createEncryptedStore } from '../../src/store/encrypted-store.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { freshReading } from '../support/chat-conversation.ts';
import type { NeutralTurn } from '../support/codec-suite/fixture.ts';
import { chatFixture } from '../support/codec-suite/openai-chat/fixture.ts';
import type { ScriptRequest, Turn } from '../support/fake-provider/script.ts';
import { isRedisMissing, startRedis } from '../support/redis-server.ts';
import { longBody, post } from './bodies.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { type Stack, startStack } from './stack.ts';
import { stubIdsIn } from '../support/stub-texts.ts';

const small = { models: { '*': { windowTokens: 12_000 } }, shrinks: false } as const;

/** The secret that startStack uses. */
const secret = new Uint8Array(32).fill(9);

describe.skipIf(isRedisMissing)('a gateway with a Redis store', () => {
  it('makes two round trips for a request, and one more for a recall', async () => {
    await using redis = await startRedis();
    await using proxy = await startCountingProxy(redis.port);
    const { script, recallNext } = model();
    const store = await redisStore({ port: proxy.port });
    await store.get('connected');
    await using stack = await startStack(script, small, { store });
    const agent = client();
    const trips = new Map<string, Set<number>>();
    const count = async (url: string, where: string) => {
      proxy.taken();
      const { receipt } = await agent.request(url);
      const folded = receipt.steps.some(({ edits }) => edits > 0) ? ', a fold' : '';
      const recalled = receipt.recalls.length > 0 ? ', a recall' : '';
      const hiddenRecalls = receipt.hiddenRecalls > 0 ? ' with recalls before' : '';
      const kind = `${where}${hiddenRecalls}${folded}${recalled}`;
      trips.set(kind, (trips.get(kind) ?? new Set()).add(proxy.taken()));
    };
    for (let at = 0; at < 62; at++) {
      if (at === 30 || at === 31) recallNext();
      await count(stack.url, 'a request');
    }
    const another = await redisStore({ port: proxy.port });
    await another.get('connected');
    await using fresh = await startStack(script, small, { store: another });
    await count(fresh.url, 'the first in another process');

    expect(Object.fromEntries([...trips].map(([kind, counts]) => [kind, [...counts]]))).toEqual({
      // The second round trip records what was sent; nothing waits for it.
      'a request': [2],
      'a request, a fold': [2],
      // A recall is stored after the provider's reply and before the end of the client's.
      'a request, a recall': [3],
      'a request with recalls before': [2],
      'a request with recalls before, a fold': [2],
      'a request with recalls before, a recall': [3],
      'the first in another process with recalls before': [2],
    });
  });

  it('shares it with another gateway: a conversation that alternates between them is sent as by one', async () => {
    await using redis = await startRedis();
    const { script, recallNext } = model();
    await using one = await startStack(script, small, { store: await redisStore({ port: redis.port }) });
    await using other = await startStack(script, small, { store: await redisStore({ port: redis.port }) });
    const agent = client();
    let before: readonly string[] = [];
    const seen = { folds: 0, recalls: 0 };
    for (let at = 0; at < 60; at++) {
      if (at % 10 === 9) recallNext();
      const stack = at % 3 === 0 ? one : other;
      const first = stack.provider.requests.length;
      const { receipt } = await agent.request(stack.url);
      const folded = receipt.steps.some(({ edits }) => edits > 0);
      for (const [order, { body }] of stack.provider.requests.slice(first).entries()) {
        const sent = messagesOf(body);
        if (!folded || order > 0)
          expect(sent.slice(0, before.length), `request ${at}.${order}`).toEqual(before);
        before = sent;
      }
      seen.folds += folded ? 1 : 0;
      seen.recalls += receipt.recalls.length;
    }
    expect(seen.folds).toBeGreaterThan(4);
    expect(seen.recalls).toBe(5);
  });

  it('puts a recall back on both gateways, also if one looked for it before the other had stored it', async () => {
    await using redis = await startRedis();
    const { script, recallNext } = model();
    const store = await redisStore({ port: redis.port });
    const stored = Promise.withResolvers<void>();
    const late: Store = {
      ...store,
      async putUnless(guards, entries) {
        if (entries.some(({ key }) => key.includes('ghost/'))) await stored.promise;
        return store.putUnless(guards, entries);
      },
    };
    const settings = { ...small, storeDeadlineMs: 60_000 };
    await using one = await startStack(script, settings, { store: late });
    await using other = await startStack(script, settings, { store: await redisStore({ port: redis.port }) });
    const agent = client();
    const recallsPutBack = async ({ url }: Stack) => (await agent.request(url)).receipt.hiddenRecalls;
    for (let at = 0; at < 30; at++) await agent.request(one.url);
    recallNext();
    expect((await agent.request(one.url)).receipt.recalls.length).toBe(1);
    expect(await recallsPutBack(other)).toBe(0);
    stored.resolve();
    const keys = new Redis(redis.port);
    await eventually(async () => expect(await keys.keys('*ghost/*')).not.toEqual([]));
    keys.disconnect();
    expect([await recallsPutBack(other), await recallsPutBack(one), await recallsPutBack(other)]).toEqual([
      1, 1, 1,
    ]);
    // The other gateway had sent one request without the recall, so its prefix changed once.
    const changed = other.logged.findIndex((line) => line.startsWith('the sent prefix'));
    expect(changed).toBeGreaterThan(-1);
    other.logged.splice(changed, 1);
  });

  it('makes only one of two gateways ask a model for a summary that both want', async () => {
    await using redis = await startRedis();
    const asked: ScriptRequest[] = [];
    const written = Promise.withResolvers<void>();
    const script = async (request: ScriptRequest): Promise<Turn> => {
      const isSummary = JSON.stringify(request.body).includes(
        'You write down what an agent has done so far.',
      );
      if (isSummary) asked.push(request);
      if (isSummary) await written.promise;
      return {
        type: 'turn',
        parts: [{ type: 'text', text: isSummary ? 'Job ZEBRA-17 is next.' : 'Hello.' }],
      };
    };
    const settings = {
      summaries: { kind: 'model' },
      shrinks: false,
      calibration: false,
      triggers: {
        tokenBudget: { triggerTokens: 20_000, targetTokens: 600, bufferTokens: 1 },
        cacheRent: false,
      },
    } as const;
    const open = () => redisStore({ port: redis.port, timeoutMs: 30_000 });
    await using one = await startStack(script, settings, { store: await open() });
    await using other = await startStack(script, settings, { store: await open() });
    const ask = async (url: string, jobs: number) => {
      const response = await post(url, 'chat', longBody('chat', jobs));
      expect(response.status).toBe(200);
      await response.text();
    };
    try {
      await Promise.all([ask(one.url, 15), ask(other.url, 15)]);
      await eventually(() => expect(asked.length).toBe(1));
      await Promise.all([ask(one.url, 16), ask(other.url, 16)]);
    } finally {
      written.resolve();
    }
    await eventually(() => expect([...one.logged, ...other.logged].join()).toContain('a summary is ready'));
    for (const { url, provider } of [one, other]) {
      await ask(url, 25);
      expect(Buffer.from(provider.requests.at(-1)!.body).toString()).toContain('ZEBRA-17');
    }
    expect(asked.length).toBe(1);
  });

  it('loses no request when the server is killed under load, and folds again when it is back', async () => {
    // By default, a server whose disk is busy answers up to two seconds before it writes; then the kill would take what it has confirmed.
    await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    await using stack = await startStack(model().script, small, {
      store: await redisStore({ port: redis.port }),
    });
    const agents = Array.from({ length: 6 }, (_, at) => client(`Run all jobs of list ${at}.`));
    let asked = 0;
    let restarted: Promise<void> | undefined;
    const outcomes = await Promise.all(
      agents.map(async (agent) => {
        const seen: string[] = [];
        for (let at = 0; at < 40; at++) {
          asked += 1;
          if (asked === 120) void redis.kill();
          if (asked === 180) restarted = redis.restart();
          const { sent, receipt } = await agent.request(stack.url);
          seen.push(receipt.outcome.status);
          const isSentUnchanged = stack.provider.requests.some(({ body }) => sent.equals(body));
          if (receipt.outcome.status === 'failed') expect(isSentUnchanged).toBe(true);
        }
        return seen;
      }),
    );
    // Requests that would not fit were folded even while the server was down.
    expect(outcomes.every((seen) => seen.includes('compacted'))).toBe(true);
    await restarted;
    const raw = new Redis(redis.port);
    const storedKeys = async () =>
      (await raw.keys('{leporello}:memory/*')).map((key) => key.slice('{leporello}:memory/'.length));
    // Until the gateway has reconnected, it repeats its folds without storing them, and its receipts name the problem. The first request
    // after that stores all that it names.
    for (const agent of agents) {
      await eventually(async () => {
        const { receipt } = await agent.request(stack.url);
        expect(receipt.problem).toBe(undefined);
        expect(receipt.outcome.status).toBe('compacted');
      });
      const named =
        stack.provider.requests
          .at(-1)!
          .body.toString()
          .match(/mem_[0-9a-z]+/g) ?? [];
      expect(named.length).toBeGreaterThan(0);
      const keys = await storedKeys();
      expect(named.filter((id) => !keys.some((key) => key.endsWith(id)))).toEqual([]);
    }

    const keys = await storedKeys();
    raw.disconnect();
    const store = await redisStore({ port: redis.port });
    const encryptedStore = createEncryptedStore({ store, secret });
    for (const id of keys) {
      const recalled = await encryptedStore.recallAny(id);
      const original = recalled.status === 'found' ? new TextDecoder().decode(recalled.original) : 'missing';
      expect(original).toMatch(/^"job \d+: step 0 took 0 ms\\n|^\[?\{"role":/);
    }
    await store.close();
  });
});

/** A model that runs one job after the other; after `recallNext()` it first recalls a folded result. */
function model() {
  let recall = false;
  let calls = 0;
  return {
    recallNext: () => void (recall = true),
    script({ body }: ScriptRequest): Turn {
      const [memory] = stubIdsIn(JSON.stringify(body));
      const id = `call_${calls++}`;
      const call =
        recall && memory
          ? { id, name: 'read_memory', arguments: { id: memory, query: 'step 3' } }
          : { id, name: 'run', arguments: { job: calls } };
      recall = false;
      // It reports no usage, so that a fresh gateway counts like one that has run for long.
      return { type: 'turn', parts: [{ type: 'tool-call', ...call }], usage: { input: 0 } };
    },
  };
}

/** A client of the chat format that runs every job the model asks for. */
function client(task = 'Run all jobs.') {
  const turns: NeutralTurn[] = [{ say: 'user', text: task }];
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' };
  return {
    async request(url: string): Promise<{ readonly sent: Buffer<ArrayBuffer>; readonly receipt: Receipt }> {
      const sent = Buffer.from(chatFixture.body({ turns, tools: ['run'], stream: false }));
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: sent });
      expect(response.status).toBe(200);
      const { calls } = chatFixture.clientResponse(new Uint8Array(await response.arrayBuffer()));
      turns.push({ say: 'assistant', calls });
      turns.push({ say: 'results', results: calls.map(({ id }) => ({ id, text: log(turns.length) })) });
      const id = response.headers.get('x-leporello-receipt');
      const receipt = await fetch(`${url}/_leporello/receipts/${id}`, { headers });
      return { sent, receipt: (await receipt.json()) as Receipt };
    },
  };
}

/** Returns about 500 tokens of log lines. */
function log(at: number): string {
  return Array.from({ length: 50 }, (_, line) => `job ${at}: step ${line} took ${line * 7} ms\n`).join('');
}

function messagesOf(body: Uint8Array): readonly string[] {
  return openaiChat
    .read(body, freshReading())
    .messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
}
