import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { LeporelloError } from '../errors.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import type { Store } from '../store/store.ts';
import { loadTokenCounter } from '../tokens/load-counter.ts';
import { chatBody, freshReading, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { Engine } from './types.ts';

const tools = ['read_file', 'run'];

/** A log of about 1,000 tokens. */
const log = (name: string) =>
  Array.from({ length: 100 }, (_, at) => `${name}: step ${at} took ${at * 7} ms\n`).join('');

const turn = (at: number): Step => ({
  calls: [{ name: 'run', input: `{"n":${at}}`, result: log(`job ${at}`) }],
});

function conversation(turns: number): readonly Step[] {
  return [
    { system: 'You are an agent.' },
    { user: 'Run all jobs.' },
    ...Array.from({ length: turns }, (_, at) => turn(at)),
  ];
}

function prepare(engine: Engine, steps: readonly Step[], tenant = 'tenant') {
  return engine.prepare({ codec: openaiChat, body: chatBody(steps, { tools, model: 'gpt-4o' }), tenant });
}

const messagesOf = (body: Uint8Array) =>
  (JSON.parse(new TextDecoder().decode(body)) as { messages: { role: string; content: string }[] }).messages;

describe('a request below every trigger', () => {
  it('is sent unchanged, with the recall tool at the end of its tools if that is always offered', async () => {
    const { engine } = testEngine({ offerRecall: 'always' });
    const prepared = await prepare(engine, conversation(2));
    expect(prepared.outcome).toEqual({ status: 'untouched', reason: 'no trigger fired' });
    const body = new TextDecoder().decode(chatBody(conversation(2), { tools, model: 'gpt-4o' }));
    const sent = new TextDecoder().decode(prepared.body);
    expect(sent.startsWith(body.slice(0, -2))).toBe(true);
    expect(JSON.parse(sent).tools.map((tool: { function: { name: string } }) => tool.function.name)).toEqual([
      'read_file',
      'run',
      'read_memory',
    ]);
  });

  it('is otherwise the very same array, and always when it has no tools', async () => {
    const body = chatBody([{ user: 'Hello' }]);
    const always = testEngine({ offerRecall: 'always' });
    expect((await always.engine.prepare({ codec: openaiChat, body, tenant: 't' })).body).toBe(body);
    const withTools = chatBody(conversation(2), { tools });
    const request = { codec: openaiChat, body: withTools, tenant: 't' };
    expect((await testEngine().engine.prepare(request)).body).toBe(withTools);
  });
});

describe('a fold', () => {
  it('brings the request under the target and keeps system, the newest user message and the newest batch', async () => {
    const { engine } = testEngine({ window: 20_000 });
    const prepared = await prepare(engine, conversation(30));
    expect(prepared.outcome).toEqual({ status: 'compacted' });
    expect(prepared.report.tokensAfter).toBeLessThanOrEqual(10_000);
    const messages = messagesOf(prepared.body);
    expect(messages[0]!.content).toBe('You are an agent.');
    expect(messages[1]!.content).toBe('Run all jobs.');
    expect(messages.at(-1)!.content).toBe(log('job 29'));
    expect(messages[3]!.content).toMatch(/^\[Folded result: 101 lines; /);
  });

  it('is replayed byte for byte on every later request, so that the sent prefix only grows', async () => {
    const { engine } = testEngine({ window: 20_000 });
    let before: Uint8Array = new Uint8Array(0);
    let folds = 0;
    for (let turns = 1; turns <= 60; turns++) {
      const prepared = await prepare(engine, conversation(turns));
      expect(prepared.report.tokensAfter!).toBeLessThanOrEqual(17_000);
      if (prepared.report.trigger) folds++;
      else expect(startsWithMessagesOf(prepared.body, before)).toBe(true);
      before = prepared.body;
    }
    // 60 jobs of 1,000 tokens: a fold for every 7,000 new tokens, not one a turn.
    expect(folds).toBeGreaterThan(3);
    expect(folds).toBeLessThan(12);
  });

  it('is found again by another instance on the same store', async () => {
    const store = inMemoryStore();
    const first = await prepare(testEngine({ window: 20_000, store }).engine, conversation(30));
    const second = await prepare(testEngine({ window: 20_000, store }).engine, conversation(31));
    expect(second.report.replayed).toBeGreaterThan(0);
    expect(startsWithMessagesOf(second.body, first.body)).toBe(true);
  });

  it('is found again when the client rewrites its newest message', async () => {
    const { engine } = testEngine({ window: 20_000 });
    const first = await prepare(engine, conversation(30));
    const changed: readonly Step[] = [...conversation(29), { calls: [{ name: 'run', result: 'changed' }] }];
    const second = await prepare(engine, changed);
    expect(second.report.replayed).toBeGreaterThan(0);
    expect(messagesOf(second.body).slice(0, 20)).toEqual(messagesOf(first.body).slice(0, 20));
  });

  it('does not edit the newest messages when the client goes back', async () => {
    const { engine } = testEngine({ window: 20_000 });
    await prepare(engine, conversation(30));
    const back = await prepare(engine, conversation(10));
    expect(back.outcome.status).toBe('untouched');
    expect(messagesOf(back.body).at(-1)!.content).toBe(log('job 9'));
  });

  it('of one tenant is not found by another', async () => {
    const { engine } = testEngine({ window: 20_000 });
    await prepare(engine, conversation(30), 'one');
    expect((await prepare(engine, conversation(30), 'two')).report.replayed).toBe(0);
  });

  it('stores every original byte for byte, and only this conversation can read it', async () => {
    const { engine, encryptedStore } = testEngine({ window: 20_000 });
    const prepared = await prepare(engine, conversation(30));
    const ids = [...new TextDecoder().decode(prepared.body).matchAll(/mem_[0-9a-z]{16}/g)].map(([id]) => id);
    expect(ids.length).toBeGreaterThan(10);
    for (const [at, id] of ids.entries()) {
      const expected = JSON.stringify(log(`job ${at}`));
      const recalled = await encryptedStore.recall('tenant', id);
      expect(recalled.status === 'found' && new TextDecoder().decode(recalled.original)).toBe(expected);
      expect(new TextDecoder().decode(await prepared.original(id))).toBe(expected);
      expect(await encryptedStore.recall('another', id)).toEqual({ status: 'missing' });
    }
    expect(await prepared.original('mem_0000000000000000')).toBeUndefined();
  });

  it('never folds pinned tools and texts', async () => {
    const { engine } = testEngine({
      window: 20_000,
      pins: { tools: ['read_file'], texts: ['job 3: step 5 '] },
    });
    const kept: Step = { calls: [{ name: 'read_file', result: log('keep me') }] };
    const prepared = await prepare(engine, [{ user: 'Go' }, kept, ...conversation(30).slice(2)]);
    const contents = messagesOf(prepared.body).map((message) => message.content);
    expect(contents).toContain(log('keep me'));
    expect(contents).toContain(log('job 3'));
  });
});

describe('must-fit', () => {
  it('clips a newest result that is larger than the window', async () => {
    const { engine } = testEngine({ window: 4_000 });
    const huge = Array.from({ length: 5_000 }, (_, at) => `row ${at} of a very large table\n`).join('');
    const prepared = await prepare(engine, [{ user: 'Query' }, { calls: [{ name: 'run', result: huge }] }]);
    expect(prepared.report.steps.at(-1)?.strategy).toBe('clip-newest');
    expect(prepared.report.tokensAfter).toBeLessThanOrEqual(3_000);
    expect(prepared.report.unfit).toBeUndefined();
    const result = messagesOf(prepared.body).at(-1)!.content;
    expect(result).toMatch(
      /^row 0 of a very large table\n[^]*\[Folded \d+ characters with lines \d+-\d+ of this text\.[^]*row 4999 of a very large table\n$/,
    );
  });

  it('also applies to a request that was counted first, or sent to a model with a larger window', async () => {
    const windowFor = (model: string | undefined) =>
      Promise.resolve({ tokens: model === 'gpt-4' ? 20_000 : 40_000, holdsReply: true });
    const store = inMemoryStore();
    const ask = async (model: string, reply: number) => {
      const chat = new TextDecoder().decode(chatBody(conversation(25), { tools, model }));
      const body = new TextEncoder().encode(chat.replace('{', `{"max_tokens":${reply},`));
      const { engine } = testEngine({ windowFor, store, triggerOptions: { windowFraction: false } });
      const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't' });
      await prepared.known;
      return prepared;
    };
    const counted = await ask('gpt-4o', 0);
    expect(counted.report.steps).toEqual([]);
    expect(counted.report.tokensAfter).toBeGreaterThan(30_000);
    const sent = await ask('gpt-4o', 10_000);
    expect(sent.report.trigger).toBe('must-fit');
    expect(sent.report.tokensAfter).toBeLessThan(30_000);
    expect((await ask('gpt-4o', 0)).body.length).toBeLessThan(counted.body.length);
    const smaller = await ask('gpt-4', 0);
    expect(smaller.report.tokensAfter).toBeLessThan(20_000);
    expect(messagesOf((await ask('gpt-4o', 10_000)).body)).toEqual(messagesOf(smaller.body));
  });

  it('reports the largest messages when nothing can be folded', async () => {
    const { engine } = testEngine({ window: 2_000 });
    const prepared = await prepare(engine, [{ system: log('rule').repeat(3) }, { user: 'Go' }]);
    expect(prepared.outcome).toEqual({ status: 'untouched', reason: 'nothing to fold' });
    expect(prepared.report.unfit).toMatch(
      /^\d+ tokens remain, 1400 fit: message 0 \(system\) \d+, tools \d+, message 1 \(user\) \d+\.$/,
    );
  });
});

describe('failures', () => {
  it('leave a body unchanged that is not of its format', async () => {
    const { engine } = testEngine();
    const body = new TextEncoder().encode('{"messages": 3');
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't' });
    expect(prepared.body).toBe(body);
    expect(prepared.outcome.status).toBe('untouched');
  });

  describe.each(['getMany', 'putUnless'] as const)('a store that fails at %s', (method) => {
    const failing = (isDown: () => boolean): Store => {
      const store = inMemoryStore();
      const original = store[method].bind(store) as (...args: unknown[]) => Promise<never>;
      return {
        ...store,
        [method]: (...args: unknown[]) =>
          isDown()
            ? Promise.reject(new LeporelloError('store-failed', 'The disk is gone.'))
            : original(...args),
      };
    };
    const reason = 'store-failed: The disk is gone.';
    const ask = (engine: Engine, count: number) =>
      engine.prepare({
        codec: openaiChat,
        body: chatBody(conversation(count), { tools, model: 'gpt-4o' }),
        tenant: 't',
      });

    it('prevents a fold that only saves money, and the outcome says so', async () => {
      const { engine } = testEngine({
        store: failing(() => true),
        triggerOptions: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } },
      });
      const prepared = await ask(engine, 30);
      expect(prepared.body).toEqual(chatBody(conversation(30), { tools, model: 'gpt-4o' }));
      expect(prepared.outcome).toEqual({ status: 'failed', reason });
    });

    it('does not prevent a fold that the request needs to fit, and the same request is folded the same way again', async () => {
      const { engine } = testEngine({ window: 20_000, store: failing(() => true) });
      const prepared = await ask(engine, 30);
      expect(prepared.outcome).toEqual({ status: 'compacted' });
      expect(prepared.problem).toBe(reason);
      expect(prepared.report.tokensAfter).toBeLessThan(20_000);
      expect((await ask(engine, 30)).body).toEqual(prepared.body);
      const next = await ask(engine, 31);
      expect(startsWithMessagesOf(next.body, prepared.body)).toBe(true);
      expect(next.report.unstableFrom).toBeUndefined();
    });

    it('has the fold and its originals as soon as it works again', async () => {
      let isDown = true;
      const store = failing(() => isDown);
      const first = testEngine({ window: 20_000, store });
      const prepared = await ask(first.engine, 30);
      isDown = false;
      await (await ask(first.engine, 31)).known;
      const second = testEngine({ window: 20_000, store });
      const after = await ask(second.engine, 32);
      expect(startsWithMessagesOf(after.body, prepared.body)).toBe(true);
      for (const id of prepared.report.memories)
        expect(await second.encryptedStore.recall('t', id)).toMatchObject({ status: 'found' });
    });
  });

  it.each([
    ['reads', 'getMany'],
    ['writes', 'putUnless'],
  ] as const)(
    'leave the same bytes to be sent again when a store hangs at %s and time runs out',
    async (_, method) => {
      const store = { ...inMemoryStore(), [method]: () => new Promise<never>(() => {}) };
      const { engine } = testEngine({
        store,
        window: 20_000,
        triggerOptions: { tokenBudget: { triggerTokens: 18_000, targetTokens: 10_000 } },
      });
      const body = chatBody(conversation(30), { tools, model: 'gpt-4o' });
      const ask = () => engine.prepare({ codec: openaiChat, body, tenant: 't', leftMs: () => 20 });
      const first = await ask();
      expect(first.report.tokensAfter).toBeLessThan(20_000);
      expect(first.problem).toBe('deadline: The store did not answer within the 20 ms left.');
      expect((await ask()).body).toEqual(first.body);
    },
  );

  it('wait for the store also with more time than a timer can wait', async () => {
    const store = inMemoryStore();
    const slow: typeof store.getMany = async (keys) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return store.getMany(keys);
    };
    const { engine } = testEngine({ store: { ...store, getMany: slow }, window: 20_000 });
    const body = chatBody(conversation(30), { tools, model: 'gpt-4o' });
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't', leftMs: () => 3e9 });
    expect([prepared.outcome, prepared.problem]).toEqual([{ status: 'compacted' }, undefined]);
  });

  it('fold a request that would not fit even without time, and no other', async () => {
    const body = chatBody(conversation(30), { tools, model: 'gpt-4o' });
    const ask = (options: Parameters<typeof testEngine>[0]) => {
      // The time ends after the store has answered, which it might not do within a time of 0 on a busy machine.
      let left = 60_000;
      const counterFor = (model: string | undefined) => {
        left = 0;
        return loadTokenCounter(model);
      };
      const { engine } = testEngine({ ...options, counterFor });
      return engine.prepare({ codec: openaiChat, body, tenant: 't', leftMs: () => left });
    };
    const needed = await ask({ window: 20_000 });
    expect(needed.outcome).toEqual({ status: 'compacted' });
    expect(needed.report.tokensAfter).toBeLessThan(20_000);
    const wished = await ask({
      triggerOptions: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } },
    });
    expect(wished.body).toEqual(body);
    expect(wished.outcome).toEqual({
      status: 'failed',
      reason: 'deadline: No time was left to fold, so the request was sent without a new fold.',
    });
  });

  it('say so when the time ends while a fold is planned', async () => {
    let left = 60_000;
    const slow = {
      name: 'slow',
      reach: 'history' as const,
      propose() {
        left = 0;
        return [];
      },
    };
    const triggerOptions = { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } };
    const { engine } = testEngine({ triggerOptions, strategies: [slow] });
    const body = chatBody(conversation(30), { tools, model: 'gpt-4o' });
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant: 't', leftMs: () => left });
    expect(prepared.outcome).toEqual({
      status: 'failed',
      reason: 'deadline: No time was left to fold, so the request was sent without a new fold.',
    });
  });

  it('stop a strategy that would break a rule, and the report names the rule', async () => {
    const careless = {
      name: 'careless',
      reach: 'history' as const,
      propose: () => [{ kind: 'drop-message', message: 3, memory: undefined } as const],
    };
    const { engine } = testEngine({ window: 20_000, strategies: [careless] });
    const prepared = await prepare(engine, conversation(30));
    expect(prepared.outcome).toEqual({
      status: 'untouched',
      reason: 'calls-answered-next: tool call call_1 has no tool message after it',
    });
    expect(messagesOf(prepared.body)).toEqual(messagesOf(chatBody(conversation(30))));
  });
});

describe('a conversation whose provider refused our edits', () => {
  const budget = { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } };
  const day = 24 * 60 * 60 * 1_000;
  const request = (count: number) => ({
    codec: openaiChat,
    body: chatBody(conversation(count), { tools, model: 'gpt-4o' }),
    tenant: 't',
  });

  it('is sent unchanged for a day, then folded again', async () => {
    let now = 1_700_000_000_000;
    const { engine } = testEngine({ triggerOptions: budget, clock: () => now });
    expect((await engine.prepare(request(30))).outcome.status).toBe('compacted');
    await engine.disableFolding(request(30));
    now += day - 1;
    expect((await engine.prepare(request(31))).outcome).toEqual({
      status: 'untouched',
      reason: 'folding is disabled after a refusal',
    });
    now += 1;
    expect((await engine.prepare(request(32))).outcome.status).toBe('compacted');
  });

  it('is sent unchanged even if the store failed when the refusal was recorded', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ triggerOptions: budget, store });
    await engine.prepare(request(30));
    await store.close();
    await engine.disableFolding(request(30));
    expect((await engine.prepare(request(31))).body).toEqual(request(31).body);
  });
});

/** True when `later` begins with every message of `earlier`, byte for byte. */
function startsWithMessagesOf(later: Uint8Array, earlier: Uint8Array): boolean {
  if (earlier.length === 0) return true;
  const spans = (body: Uint8Array) =>
    openaiChat
      .read(body, freshReading())
      .messages.map(({ span }) => new TextDecoder().decode(body.subarray(span.start, span.end)));
  const front = spans(later);
  return spans(earlier).every((bytes, at) => front[at] === bytes);
}
