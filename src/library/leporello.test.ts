import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody, jobSteps, type Step } from '../../test/support/chat-conversation.ts';
import type { OwnCounter } from '../tokens/own-counter.ts';
import { defaultStrategies } from '../strategies/default-strategies.ts';
import { defaultTriggers } from '../triggers/default-triggers.ts';
import { mustFit, tokenBudget } from '../triggers/limits.ts';
import { type LeporelloOptions, createLeporello } from '../library/leporello.ts';
import { offloadResults } from '../strategies/offload.ts';

const log = (job: number) =>
  Array.from({ length: 100 }, (_, at) => `job ${job}: step ${at} took ${at} ms\n`).join('');
const steps: readonly Step[] = [
  { user: 'Run all jobs.' },
  ...Array.from({ length: 30 }, (_, job): Step => ({ calls: [{ name: 'run', result: log(job) }] })),
];
const body = chatBody(steps, { tools: ['run'], model: 'gpt-4o' });
const settings = { models: { 'gpt-4o': { windowTokens: 20_000 } } };
const secret = new Uint8Array(32).fill(3);

describe('Leporello in process', () => {
  it('folds a body, answers recalls from it, and returns originals', async () => {
    const leporello = createLeporello(settings);
    const prepared = await leporello.prepare({ codec: openaiChat, body });
    expect(prepared.outcome).toEqual({ status: 'compacted' });
    expect(prepared.recallTool?.name).toBe('read_memory');
    const id = prepared.report.memories[0]!;
    expect(await leporello.recall(prepared, JSON.stringify({ id }))).toBe(log(0));
    expect(await leporello.recall(prepared, JSON.stringify({ id, lines: '7' }))).toContain(
      'job 0: step 6 took 6 ms',
    );
    const found = await leporello.recall(prepared, '{"query":"job 1: step 99 took"}');
    expect(found).toContain(`${prepared.report.memories[1]} lines `);
    expect(found).toContain('job 1: step 99 took 99 ms');
    expect(new TextDecoder().decode(await leporello.original(id))).toBe(JSON.stringify(log(0)));
    expect(await leporello.original(id, 'another')).toBeUndefined();
  });

  it('returns the body as it is when the codec cannot be loaded', async () => {
    const leporello = createLeporello(settings);
    // It fails when it is awaited, as an import of a file that is missing.
    // oxlint-disable-next-line unicorn/no-thenable
    const missing = { then: (_: unknown, fail: (error: Error) => void) => fail(new Error('no such file')) };
    const codec = { ...openaiChat, ...missing };
    for (const prepared of [
      await leporello.prepare({ codec, body }),
      await leporello.compact({ codec, body }),
    ])
      expect(prepared).toMatchObject({
        body,
        outcome: { status: 'failed', reason: expect.any(String) as string },
      });
  });

  it('folds sub-goals by a preset, which other settings override, and does not fold short tasks', async () => {
    const recordsOf = async (change: Parameters<typeof defaultStrategies>[0], request = body) => {
      const leporello = createLeporello({
        models: { 'gpt-4o': { windowTokens: 3_000 } },
        strategies: defaultStrategies(change),
      });
      const { report } = await leporello.prepare({ codec: openaiChat, body: request });
      return report.compressions.map(({ level, target }) => `${level} ${target}`);
    };
    expect(await recordsOf({})).toEqual([]);
    expect(new Set(await recordsOf({ preset: 'debugging' }))).toEqual(new Set(['phase 3', 'subgoal 3']));
    expect(new Set(await recordsOf({ preset: 'cost', subgoals: { ratio: 5 } }))).toEqual(
      new Set(['subgoal 5']),
    );
    expect(await recordsOf({ preset: 'cost', subgoals: false })).toEqual([]);
    const short = chatBody(steps.slice(0, 20), { tools: ['run'], model: 'gpt-4o' });
    expect(await recordsOf({ preset: 'debugging' }, short)).toEqual([]);
    expect(() => defaultStrategies({ preset: 'fast' as 'cost' })).toThrow(
      'defaultStrategies.preset is "fast", but must be "cost", "long-horizon", "production", "summaries" or "debugging".',
    );
  });

  it('folds below the limit that a refusal names, and remembers it for the next conversation', async () => {
    const leporello = createLeporello();
    const prepared = await leporello.prepare({ codec: openaiChat, body });
    const tokens = prepared.report.tokensAfter!;
    const message = `This model's maximum context length is 20000 tokens. However, your messages resulted in ${tokens} tokens.`;
    const refusal = { status: 400, body: JSON.stringify({ error: { message } }) };
    const smaller = await leporello.prepare({ codec: openaiChat, body, refusal });
    expect(smaller.outcome).toEqual({ status: 'compacted' });
    expect(smaller.report.tokensAfter).toBeLessThan(20_000);
    const other = chatBody([{ user: 'Run them all.' }, ...steps.slice(1)], {
      tools: ['run'],
      model: 'gpt-4o',
    });
    const next = await leporello.prepare({ codec: openaiChat, body: other });
    expect(next.report).toMatchObject({ trigger: 'must-fit', window: 20_000 });
    const odd = { status: 400, body: '{"error":{"message":"unknown parameter"}}' };
    expect(await leporello.prepare({ codec: openaiChat, body, refusal: odd })).toMatchObject({
      outcome: { status: 'untouched', reason: 'the provider answered 400' },
      body,
    });
  });

  it('finds its folds again with the same store and secret', async () => {
    const kept = { ...settings, store: inMemoryStore(), secret };
    const first = await createLeporello(kept).prepare({ codec: openaiChat, body });
    const second = await createLeporello(kept).prepare({ codec: openaiChat, body });
    expect(second.body).toEqual(first.body);
    expect(second.report.trigger).toBeUndefined();
  });

  it("counts with the user's tokenizer, and calibrates by the reported usage", async () => {
    const bytes = {
      name: 'bytes / 4',
      exact: false,
      count: (text: string) => Math.ceil(text.length / 4),
      image: () => 1_000,
      overhead: { message: 4, tool: 0, request: 3 },
    };
    const models = { 'gpt-*': { windowTokens: 200_000, tokenizer: bytes } };
    const asked = { codec: openaiChat, body };
    const seen = async (calibration: false | undefined) => {
      const leporello = createLeporello({
        models,
        ...(calibration === false && { calibration }),
        triggers: defaultTriggers({ cacheRent: false }),
        shrinks: false,
        offerRecall: 'with-fold',
      });
      const first = await leporello.prepare(asked);
      first.learn({ promptTokens: undefined });
      first.learn({ promptTokens: 30_000 });
      const { report } = await leporello.prepare(asked);
      return [report.counter, first.report.tokensAfter, report.tokensAfter];
    };
    expect(await seen(undefined)).toEqual(['bytes / 4', 20_419, 30_000]);
    expect(await seen(false)).toEqual(['bytes / 4', 20_419, 20_419]);
  });
});

describe('settings', () => {
  it('may be those of a configuration file, or lists', async () => {
    const models = { 'gpt-*': { windowTokens: 20_000 } };
    const triggers = {
      cacheRent: false,
      tokenBudget: { triggerTokens: 8_000, targetTokens: 4_000 },
    } as const;
    const strategies = { minResultBytes: 300, summaries: { kind: 'extractive' } } as const;
    const sent = async (options: Partial<LeporelloOptions>) => {
      const { outcome, json } = await createLeporello({ secret, models, ...options }).prepare({
        codec: openaiChat,
        body,
      });
      return { outcome, body: json() };
    };
    const asSettings = await sent({ triggers, ...strategies });
    expect(asSettings.outcome.status).toBe('compacted');
    expect(asSettings).toEqual(
      await sent({ triggers: defaultTriggers(triggers), strategies: defaultStrategies(strategies) }),
    );
    // Settings of strategies also apply to those that a list names.
    expect(
      await sent({
        triggers,
        strategies: ['offload-results', 'drop-oldest', 'clip-newest'],
        minResultBytes: 300,
      }),
    ).toEqual(
      await sent({
        triggers,
        strategies: [offloadResults({ minResultBytes: 300 }), 'drop-oldest', 'clip-newest'],
      }),
    );
  });
});

describe("the user's counter", () => {
  const count = (text: string) => Math.ceil(text.length / 3);
  const later = async (text: string) => Promise.resolve(count(text));
  const uncut = {
    secret,
    shrinks: false,
    offerRecall: 'with-fold',
    triggers: defaultTriggers({ cacheRent: false }),
  } as const;
  const prepared = async (tokenizer: OwnCounter, window = 200_000) => {
    const leporello = createLeporello({ ...uncut, models: { 'gpt-*': { windowTokens: window, tokenizer } } });
    return leporello.prepare({ codec: openaiChat, body });
  };

  it('counts the same, whether it is synchronous or not', async () => {
    const [atOnce, answered] = [await prepared(count), await prepared(later)];
    expect(answered.report.tokensAfter).toBe(atOnce.report.tokensAfter);
    expect(answered.report.tokensAfter).toBeGreaterThan(27_000);
  });

  it('counts each text once when it is asynchronous, in a growing conversation', async () => {
    const asked: string[] = [];
    const leporello = createLeporello({
      models: {
        'gpt-*': {
          windowTokens: 200_000,
          tokenizer: async (text) => {
            asked.push(text);
            return later(text);
          },
        },
      },
      shrinks: false,
    });
    await leporello.prepare({ codec: openaiChat, body });
    const before = asked.length;
    const more = chatBody([...steps, { user: 'And now?' }], { tools: ['run'], model: 'gpt-4o' });
    await leporello.prepare({ codec: openaiChat, body: more });
    expect(asked.slice(before)).toEqual(['And now?']);
  });

  it('determines folds, with the same bytes every time', async () => {
    const [one, other] = [await prepared(later, 20_000), await prepared(later, 20_000)];
    expect(one.outcome.status).toBe('compacted');
    expect(one.body).toEqual(other.body);
    expect(one.report.tokensAfter!).toBeLessThan(15_000);
  });

  it('is replaced by an estimate when it fails', async () => {
    const fails = (text: string) => (text === 'a' ? 1 : Number.NaN);
    const failsLater = async (text: string) => (text === 'a' ? 1 : Promise.reject(new Error('429')));
    const usual = await createLeporello(uncut).prepare({ codec: openaiChat, body });
    for (const tokenizer of [fails, failsLater])
      expect((await prepared(tokenizer)).report.tokensAfter).toBe(usual.report.tokensAfter);
  });
});

describe('strategies by name', () => {
  it('summarise without stubs of results, when a list says so', async () => {
    const leporello = createLeporello({
      strategies: [{ name: 'summarize-history', maxTokens: 800 }, 'drop-oldest', 'clip-newest'],
      triggers: [mustFit(), tokenBudget({ triggerTokens: 8_000, targetTokens: 4_000 })],
    });
    const prepared = await leporello.prepare({ codec: openaiChat, body });
    const text = new TextDecoder().decode(prepared.body);
    expect([
      prepared.outcome,
      prepared.report.steps.map(({ strategy }) => strategy),
      text.includes('[Summary of'),
      text.includes('[Folded result'),
    ]).toEqual([{ status: 'compacted' }, ['summarize-history'], true, false]);
  });
});

describe('compact', () => {
  it('leaves the notes of the model in view, with offerNotes', async () => {
    const triggers = [mustFit(), tokenBudget({ triggerTokens: 6_000, targetTokens: 3_000 })];
    const input = JSON.stringify({ text: 'The deadline is on Friday.' });
    const [task, ...jobs] = jobSteps(20);
    const note = { calls: [{ name: 'save_context', input, result: 'Saved.' }] };
    const of = async (offerNotes: boolean) => {
      const leporello = createLeporello({ offerNotes, triggers });
      const { recallTool, notesTool } = leporello;
      const noted = chatBody([task!, note, ...jobs], { tools: ['run', recallTool.name, notesTool.name] });
      const { body: sent } = await leporello.compact({ codec: openaiChat, body: noted });
      const text = new TextDecoder().decode(sent);
      return [text.includes('[Summary of'), text.includes('"name":"save_context","arguments"')];
    };
    expect(await of(true)).toEqual([true, true]);
    expect(await of(false)).toEqual([true, false]);
  });
});

describe('readMemory', () => {
  it('says in which store it looked when an id is unknown there, such as that of another tenant', async () => {
    const store = inMemoryStore();
    const { outcome, report } = await createLeporello({ ...settings, store, secret }).compact({ body });
    expect(outcome.status).toBe('compacted');
    const [id] = report.memories;
    const asked = JSON.stringify({ id, lines: '1' });
    const later = createLeporello({ store, secret });
    expect(await later.readMemory(asked)).toContain('job 0: step 0');
    expect(await later.readMemory(asked, { tenant: 'another' })).toBe(
      `No memory with id "${id}" in this in-memory store, tenant another. It was never there, or has expired: by default, an original is kept for 30 days after its last use. Asking again will not help.`,
    );
  });
});

describe('a store that hangs', () => {
  const stuck = () => new Promise<never>(() => {});
  const calls = ['get', 'getMany', 'getFirst', 'putMany', 'putUnless'] as const;
  const everything = Object.fromEntries(calls.map((call) => [call, stuck]));
  const rows = JSON.stringify(
    Array.from({ length: 200 }, (_, at) => ({ id: at, text: `row ${at} `.repeat(20) })),
  );

  it.each([...calls.map((call) => [call, { [call]: stuck }] as const), ['every call', everything] as const])(
    'at %s: every method of the library settles',
    async (_, hanging) => {
      const leporello = createLeporello({
        ...settings,
        storeDeadlineMs: 5,
        store: { ...inMemoryStore(), ...hanging },
        secret,
      });
      const prepared = await leporello.prepare({ codec: openaiChat, body });
      if (prepared.outcome.status === 'failed') expect(prepared.body).toEqual(body);
      else expect(prepared.outcome.status).toBe('compacted');
      const compacted = await leporello.compact({ codec: openaiChat, body });
      if (compacted.outcome.status === 'failed') expect(compacted.body).toEqual(body);
      expect(await leporello.recall(prepared, '{"id":"mem_0000000000000000"}')).toContain(
        'mem_0000000000000000',
      );

      const rest = await Promise.allSettled([
        leporello.readMemory('{"id":"mem_0000000000000000"}'),
        leporello.original('mem_0000000000000000'),
        leporello.compressResult({ text: rows, budget: { tokens: 500, results: 1 } }),
      ]);
      const reasons = rest.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
      expect(
        reasons.filter((reason) => !/in-memory store (did not answer|was not called)/.test(reason)),
      ).toEqual([]);
    },
  );

  it('prevents a fold that only saves money: the body is unchanged, and the reason names the call and the deadline', async () => {
    const leporello = createLeporello({
      shrinks: false,
      offerRecall: 'with-fold',
      triggers: [mustFit(), tokenBudget({ triggerTokens: 20_000, targetTokens: 10_000 })],
      storeDeadlineMs: 5,
      store: { ...inMemoryStore(), ...everything },
      secret,
    });
    const { outcome, body: sent } = await leporello.prepare({ codec: openaiChat, body });
    expect(outcome).toEqual({
      status: 'failed',
      reason:
        'store-failed: The in-memory store did not answer getMany within 5 ms. Check the machine and network it runs on, or raise storeDeadlineMs.',
    });
    expect(sent).toEqual(body);
  });

  it('does not prevent a fold that the body needs to fit', async () => {
    const leporello = createLeporello({
      ...settings,
      storeDeadlineMs: 5,
      store: { ...inMemoryStore(), ...everything },
      secret: new Uint8Array(32),
    });
    const prepared = await leporello.prepare({ codec: openaiChat, body });
    expect(prepared.outcome).toEqual({ status: 'compacted' });
    expect(prepared.report.tokensAfter).toBeLessThan(20_000);
    expect((await leporello.prepare({ codec: openaiChat, body })).body).toEqual(prepared.body);
  });

  it('accepts only a deadline that a timer can wait', () => {
    expect(() => createLeporello({ storeDeadlineMs: 0 })).toThrow(
      'storeDeadlineMs is 0, but must be a number of milliseconds above 0',
    );
  });
});
