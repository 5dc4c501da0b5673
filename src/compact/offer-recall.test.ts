import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { createRecallOffers } from '../memory/recall-offers.ts';
import { inMemoryStore } from '../memory/in-memory.ts';
import { createLedger } from '../memory/ledger.ts';
import { createVault } from '../memory/vault.ts';
import { chatBody, jobSteps, type Step } from '../testing/chat-conversation.ts';
import { testEngine } from '../testing/test-engine.ts';
import type { Engine } from './engine.ts';
import type { Prepared } from './prepared.ts';

const log = (name: string) => Array.from({ length: 100 }, (_, at) => `${name}: step ${at}`).join('\n');

const steps = (task: string, results: number): readonly Step[] => [
  { user: task },
  ...Array.from({ length: results }, (_, at) => ({ calls: [{ name: 'run', result: log(`job ${at}`) }] })),
];

type Asked = { readonly tools?: readonly string[]; readonly tenant?: string };

const ask = (
  engine: Engine,
  task: string,
  results: number,
  { tools = ['run', 'look'], tenant = 'tenant' }: Asked = {},
) => engine.prepare({ codec: openaiChat, body: chatBody(steps(task, results), { tools }), tenant });

/** Folds from some ten results on. */
const small = { window: 10_000 };

const toolsIn = ({ body }: Prepared): readonly string[] => {
  const sent = JSON.parse(new TextDecoder().decode(body)) as { tools: { function?: { name: string } }[] };
  return sent.tools.map((tool) => tool.function?.name ?? '');
};

/** Whether it is offered, by what the engine says and by what it sends. */
const offers = (prepared: Prepared) => {
  const isOffered = toolsIn(prepared).includes('read_memory');
  expect(prepared.recallTool).toBe(isOffered ? 'read_memory' : undefined);
  return isOffered;
};

describe('the first conversation of an agent', () => {
  it('goes out as it came until something is folded, and is offered the recall tool from then on', async () => {
    const { engine } = testEngine(small);
    const offered: boolean[] = [];
    for (let results = 0; results < 20; results++) {
      const prepared = await ask(engine, 'Run all.', results);
      const { memories, tokensKept, unstableFrom } = prepared.report;
      expect(offers(prepared)).toBe(memories.length > 0);
      expect(unstableFrom).toBeUndefined();
      // It stands ahead of all that a provider's cache holds.
      if (offers(prepared) && !offered.at(-1)) expect(tokensKept).toBe(0);
      offered.push(offers(prepared));
    }
    expect(offered.filter((one, at) => one !== offered[at - 1])).toEqual([false, true]);
  });

  it('stays as it is while others of the agent are folded: each goes on as it began, in every process', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ ...small, store });
    await ask(engine, 'Run some.', 2);
    await ask(engine, 'Run all.', 20);
    expect(offers(await ask(engine, 'Run some.', 3))).toBe(false);
    const anew = testEngine({ ...small, store }).engine;
    expect(offers(await ask(anew, 'Run some.', 4))).toBe(false);
    expect(offers(await ask(anew, 'Run some.', 2))).toBe(false);
    expect(offers(await ask(anew, 'Run some more.', 2))).toBe(true);
  });

  it('is offered it with a result of which something is left out', async () => {
    const shrinks = { lossless: false, lineNumbers: 'every', repeats: true } as const;
    const { engine } = testEngine({ shrinks });
    const ran = (task: string, result: string, tools = ['run']) =>
      engine.prepare({
        codec: openaiChat,
        body: chatBody([{ user: task }, { calls: [{ name: 'run', result }] }], { tools }),
        tenant: 'tenant',
      });
    const line = (at: number) => `2026-05-12T02:00:0${at % 10}Z info batch ${at} sent in ${at * 7} ms`;
    const long = Array.from({ length: 400 }, (_, at) => line(at)).join('\n');
    expect(offers(await ran('Run one.', line(0)))).toBe(false);
    expect(offers(await ran('Run all.', long))).toBe(true);
    expect(offers(await ran('Run two.', line(1)))).toBe(true);
    // Another agent that meets the same is learned, too.
    expect(offers(await ran('Run one.', line(0), ['run', 'look']))).toBe(false);
    expect(offers(await ran('Run all.', long, ['run', 'look']))).toBe(true);
    expect(offers(await ran('Run two.', line(1), ['run', 'look']))).toBe(true);
  });
});

describe('a conversation of an agent of which one was folded', () => {
  it('is offered it from its first request on, and when nothing is known of its own requests any more', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ ...small, store });
    await ask(engine, 'Run all.', 20);
    const other = testEngine({ ...small, store }).engine;
    for (const results of [0, 1, 5]) expect(offers(await ask(other, 'Run some.', results))).toBe(true);
    expect(offers(await ask(other, 'Never seen.', 5))).toBe(true);
  });

  it('is told by its tools, in whatever order, and by its tenant', async () => {
    const { engine } = testEngine(small);
    await ask(engine, 'Run all.', 20);
    expect(offers(await ask(engine, 'Run some.', 2, { tools: ['look', 'run'] }))).toBe(true);
    expect(offers(await ask(engine, 'Run one.', 2, { tools: ['run'] }))).toBe(false);
    expect(offers(await ask(engine, 'Run some.', 2, { tenant: 'other' }))).toBe(false);
  });
});

describe('what is known of one conversation', () => {
  it('says nothing of side calls that begin so, nor of another agent that does', async () => {
    const { engine } = testEngine(small);
    await ask(engine, 'Run all.', 20);
    const reports = [];
    for (const results of [0, 1, 2]) {
      const side = chatBody(steps('Hi', results));
      expect((await engine.prepare({ codec: openaiChat, body: side, tenant: 'tenant' })).body).toBe(side);
      expect(offers(await ask(engine, 'Hi', results, { tools: ['run'] }))).toBe(false);
      const main = await ask(engine, 'Hi', results);
      expect(offers(main)).toBe(true);
      reports.push(main.report.unstableFrom);
    }
    expect(reports).toEqual([undefined, undefined, undefined]);
  });

  it('holds for a client that rewrites its newest message', async () => {
    const { engine } = testEngine(small);
    const open = (results: number) =>
      engine.prepare({
        codec: openaiChat,
        body: chatBody([...steps('Run.', results), { user: `Open: file ${results}.` }], {
          tools: ['run', 'look'],
        }),
        tenant: 'tenant',
      });
    expect([offers(await open(1)), offers(await open(2))]).toEqual([false, false]);
    await ask(engine, 'Run all.', 20);
    expect([offers(await open(3)), offers(await open(4))]).toEqual([false, false]);
  });

  it('is forgotten before the next day, so that what always begins alike is learned', async () => {
    let now = 0;
    const clock = () => now;
    const store = inMemoryStore({ clock });
    const vault = createVault({ store, secret: new Uint8Array(32), clock });
    const { engine } = testEngine({
      ...small,
      clock,
      vault,
      ledger: createLedger({ vault }),
      recallOffers: createRecallOffers({ vault }),
    });
    const night = async () => [
      offers(await ask(engine, 'Do the nightly report.', 0)),
      offers(await ask(engine, 'Do the nightly report.', 20)),
    ];
    expect(await night()).toEqual([false, true]);
    now += 24 * 60 * 60 * 1_000;
    expect(await night()).toEqual([true, true]);
  });

  it('goes without it once the provider refused our edits, until a fold brings it anew', async () => {
    const { engine } = testEngine(small);
    await ask(engine, 'Run all.', 20);
    const request = (results: number) => ({
      codec: openaiChat,
      body: chatBody(steps('Run.', results), { tools: ['run', 'look'] }),
      tenant: 'tenant',
    });
    expect(offers(await engine.prepare(request(2)))).toBe(true);
    await engine.leaveAlone(request(3));
    expect(offers(await engine.prepare(request(4)))).toBe(false);
    const forced = await engine.prepare({
      ...request(20),
      refusal: { reason: 'too long', overflow: { unit: 'bytes' } },
    });
    expect([offers(forced), forced.report.tokensKept]).toEqual([true, 0]);
  });
});

describe('the recall tool', () => {
  it('is offered at once where the user says so, and not at all', async () => {
    const always = testEngine({ ...small, offerRecall: 'always' }).engine;
    expect(offers(await ask(always, 'Run some.', 0))).toBe(true);
    const never = testEngine({ ...small, offerRecall: 'never' }).engine;
    expect(offers(await ask(never, 'Run all.', 20))).toBe(false);
  });

  it('is offered at once to a model that binds its replies to the tools in front of them', async () => {
    const { engine } = testEngine(small);
    const bodyFor = (model: string) =>
      new TextEncoder().encode(
        JSON.stringify({
          model,
          max_tokens: 100,
          tools: [{ name: 'run', input_schema: { type: 'object' } }],
          messages: [{ role: 'user', content: 'Run.' }],
        }),
      );
    const offered = async (model: string) => {
      const request = { codec: anthropicMessages, body: bodyFor(model), tenant: 'tenant' };
      return (await engine.prepare(request)).recallTool;
    };
    expect([await offered('claude-opus-4-5'), await offered('claude-opus-5-5')]).toEqual([
      undefined,
      'read_memory',
    ]);
  });

  it('that goes since the memory was lost is told as a change of all that was sent, once', async () => {
    const remembering = () => {
      const vault = createVault({ store: inMemoryStore(), secret: new Uint8Array(32) });
      return { ledger: createLedger({ vault }), offers: createRecallOffers({ vault }) };
    };
    let memory = remembering();
    const { engine } = testEngine({
      window: 1_000_000,
      triggerOptions: { tokenBudget: false },
      ledger: {
        find: (...asked) => memory.ledger.find(...asked),
        findHere: (...asked) => memory.ledger.findHere(...asked),
        record: (...fold) => memory.ledger.record(...fold),
        settle: (...sent) => memory.ledger.settle(...sent),
        renew: (...used) => memory.ledger.renew(...used),
      },
      recallOffers: {
        find: (...asked) => memory.offers.find(...asked),
        recordOf: (...made) => memory.offers.recordOf(...made),
        agentRecordOf: (opening) => memory.offers.agentRecordOf(opening),
      },
    });
    const body = chatBody(steps('Run all.', 8), { tools: ['run'] });
    const refusal = { reason: 'too long', overflow: { unit: 'bytes' } } as const;
    const folded = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant', refusal });
    expect(offers(folded)).toBe(true);
    memory = remembering();
    const after = [
      await ask(engine, 'Run all.', 9, { tools: ['run'] }),
      await ask(engine, 'Run all.', 10, { tools: ['run'] }),
    ];
    expect(after.map((one) => [offers(one), one.report.unstableFrom])).toEqual([
      [false, 0],
      [false, undefined],
    ]);
  });
});

describe('a request that cannot be offered the recall tool', () => {
  const jobs = jobSteps(30);
  const withoutTools = chatBody(jobs, { model: 'gpt-4o' });
  const triggerOptions = { tokenBudget: { trigger: 10_000, target: 5_000 } };
  const prepare = (made: ReturnType<typeof testEngine>, body: Uint8Array) =>
    made.engine.prepare({ codec: openaiChat, body, tenant: 't' });

  it('is not folded to ids that nobody can read', async () => {
    const prepared = await prepare(testEngine({ triggerOptions }), withoutTools);
    expect(prepared.body).toBe(withoutTools);
    const several = new TextEncoder().encode(
      JSON.stringify({
        ...(JSON.parse(new TextDecoder().decode(chatBody(jobs, { tools: ['run'] }))) as object),
        n: 2,
      }),
    );
    expect((await prepare(testEngine({ triggerOptions }), several)).body).toBe(several);
  });

  it('is folded where it would not fit otherwise, and where the user wants no recall tool at all', async () => {
    const forced = await prepare(testEngine({ window: 10_000 }), withoutTools);
    expect(forced.outcome).toEqual({ status: 'compacted' });
    const never = await prepare(testEngine({ triggerOptions, offerRecall: 'never' }), withoutTools);
    expect(never.outcome).toEqual({ status: 'compacted' });
    expect(new TextDecoder().decode(never.body)).toContain('It is kept as mem_');
  });

  it('goes out as it came though it repeats a conversation that was folded, which goes on as it was', async () => {
    const made = testEngine({ triggerOptions });
    const folded = await prepare(made, chatBody(jobs, { tools: ['run'], model: 'gpt-4o' }));
    expect(folded.outcome).toEqual({ status: 'compacted' });
    expect((await prepare(made, withoutTools)).body).toBe(withoutTools);
    const again = await prepare(made, chatBody(jobs, { tools: ['run'], model: 'gpt-4o' }));
    expect(again.body).toEqual(folded.body);
  });
});
