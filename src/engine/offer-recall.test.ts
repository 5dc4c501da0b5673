import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, jobSteps, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { Engine } from './types.ts';
import type { PreparedRequest } from './types.ts';

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

/** Triggers a fold from about ten results on. */
const small = { window: 10_000 };

const toolsIn = ({ body }: PreparedRequest): readonly string[] => {
  const sent = JSON.parse(new TextDecoder().decode(body)) as { tools: { function?: { name: string } }[] };
  return sent.tools.map((tool) => tool.function?.name ?? '');
};

/** Tells whether the tool is offered, by the report and by the body. */
const offers = (prepared: PreparedRequest) => {
  const isOffered = toolsIn(prepared).includes('read_memory');
  expect(prepared.recallTool).toBe(isOffered ? 'read_memory' : undefined);
  return isOffered;
};

describe('the recall tool that is offered with the first fold', () => {
  it('is offered as soon as something can be recalled, and from then on', async () => {
    const { engine } = testEngine({ ...small, offerRecall: 'with-fold' });
    const offered: boolean[] = [];
    for (let results = 0; results < 20; results++) {
      const prepared = await ask(engine, 'Run all.', results);
      const { memories, tokensKept, unstableFrom } = prepared.report;
      expect(offers(prepared)).toBe(memories.length > 0);
      expect(unstableFrom).toBeUndefined();
      // Tools precede everything else in a provider's cache.
      if (offers(prepared) && !offered.at(-1)) expect(tokensKept).toBe(0);
      offered.push(offers(prepared));
    }
    expect(offered.filter((one, at) => one !== offered[at - 1])).toEqual([false, true]);
  });

  it('is offered with a result of which a part is left out', async () => {
    const shrinks = { lossless: false, lineNumbers: 'every', repeats: true } as const;
    const { engine } = testEngine({ shrinks, offerRecall: 'with-fold' });
    const ran = (result: string) =>
      engine.prepare({
        codec: openaiChat,
        body: chatBody([{ user: 'Run.' }, { calls: [{ name: 'run', result }] }], { tools: ['run'] }),
        tenant: 'tenant',
      });
    const line = (at: number) => `2026-05-12T02:00:0${at % 10}Z info batch ${at} sent in ${at * 7} ms`;
    const long = Array.from({ length: 400 }, (_, at) => line(at)).join('\n');
    expect(offers(await ran(line(0)))).toBe(false);
    expect(offers(await ran(long))).toBe(true);
  });

  it('is offered at once to a model that binds its replies to the tools', async () => {
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
});

describe('the recall tool that is always offered', () => {
  it('is offered from the first request on, but not in requests without tools', async () => {
    const { engine } = testEngine({ ...small, offerRecall: 'always' });
    for (const results of [0, 1, 20]) {
      const prepared = await ask(engine, 'Run all.', results);
      expect([offers(prepared), prepared.report.unstableFrom]).toEqual([true, undefined]);
    }
    const side = chatBody(steps('Run all.', 1));
    expect((await engine.prepare({ codec: openaiChat, body: side, tenant: 'tenant' })).body).toBe(side);
  });

  it('is not offered after the provider refused our edits, until a fold adds it again', async () => {
    const { engine } = testEngine({ ...small, offerRecall: 'always' });
    const request = (results: number) => ({
      codec: openaiChat,
      body: chatBody(steps('Run.', results), { tools: ['run', 'look'] }),
      tenant: 'tenant',
    });
    expect(offers(await engine.prepare(request(2)))).toBe(true);
    await engine.disableFolding(request(3));
    expect(offers(await engine.prepare(request(4)))).toBe(false);
    const forced = await engine.prepare({
      ...request(20),
      refusal: { reason: 'too long', overflow: { unit: 'bytes' } },
    });
    expect([offers(forced), forced.report.tokensKept]).toEqual([true, 0]);
  });
});

describe('a request that cannot be offered the recall tool', () => {
  const jobs = jobSteps(30);
  const withoutTools = chatBody(jobs, { model: 'gpt-4o' });
  const triggerOptions = { tokenBudget: { triggerTokens: 10_000, targetTokens: 5_000 } };
  const prepare = (made: ReturnType<typeof testEngine>, body: Uint8Array) =>
    made.engine.prepare({ codec: openaiChat, body, tenant: 't' });

  it('is not folded, because nobody could read the ids', async () => {
    const prepared = await prepare(testEngine({ triggerOptions }), withoutTools);
    expect(prepared.body).toBe(withoutTools);
    expect(prepared.outcome).toEqual({
      status: 'untouched',
      reason: 'nothing could be recalled: the request has no tools, or asks for several replies',
    });
    const several = new TextEncoder().encode(
      JSON.stringify({
        ...(JSON.parse(new TextDecoder().decode(chatBody(jobs, { tools: ['run'] }))) as object),
        n: 2,
      }),
    );
    expect((await prepare(testEngine({ triggerOptions }), several)).body).toBe(several);
  });

  it('is folded when it would not fit otherwise, and when the user wants no recall tool', async () => {
    const forced = await prepare(testEngine({ window: 10_000 }), withoutTools);
    expect(forced.outcome).toEqual({ status: 'compacted' });
    const never = await prepare(testEngine({ triggerOptions, offerRecall: 'never' }), withoutTools);
    expect(never.outcome).toEqual({ status: 'compacted' });
    expect(new TextDecoder().decode(never.body)).toContain('Kept as mem_');
  });

  it('is sent unchanged even if it repeats a folded conversation, which stays folded', async () => {
    const made = testEngine({ triggerOptions });
    const folded = await prepare(made, chatBody(jobs, { tools: ['run'], model: 'gpt-4o' }));
    expect(folded.outcome).toEqual({ status: 'compacted' });
    expect((await prepare(made, withoutTools)).body).toBe(withoutTools);
    const again = await prepare(made, chatBody(jobs, { tools: ['run'], model: 'gpt-4o' }));
    expect(again.body).toEqual(folded.body);
  });
});

describe('a request whose reply may hold no recall', () => {
  const triggerOptions = { tokenBudget: { triggerTokens: 10_000, targetTokens: 5_000 } };
  const choices: readonly unknown[] = [
    'none',
    { type: 'function', function: { name: 'run' } },
    { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
  ];
  const body = (results: number, choice?: unknown) =>
    new TextEncoder().encode(
      JSON.stringify({
        ...(JSON.parse(
          new TextDecoder().decode(chatBody(steps('Run all.', results), { tools: ['run'] })),
        ) as object),
        ...(choice !== undefined && { tool_choice: choice }),
      }),
    );
  const prepare = ({ engine }: ReturnType<typeof testEngine>, sent: Uint8Array) =>
    engine.prepare({ codec: openaiChat, body: sent, tenant: 't' });

  it.each(choices)('is not folded anew, unless it would not fit (%j)', async (choice) => {
    expect((await prepare(testEngine({ triggerOptions }), body(30, 'required'))).outcome.status).toBe(
      'compacted',
    );
    expect((await prepare(testEngine({ triggerOptions }), body(30, choice))).outcome.status).toBe(
      'untouched',
    );
    expect((await prepare(testEngine({ window: 10_000 }), body(30, choice))).outcome.status).toBe(
      'compacted',
    );
  });

  it('repeats the folds of its conversation', async () => {
    const made = testEngine({ triggerOptions });
    const before = await prepare(made, body(30));
    const last = await prepare(made, body(31, 'none'));
    expect([before.outcome.status, last.outcome.status]).toEqual(['compacted', 'compacted']);
    expect(last.report.memories).toEqual(before.report.memories);
  });
});

it('the recall tool is left out when it is never offered', async () => {
  const never = testEngine({ ...small, offerRecall: 'never' }).engine;
  expect(offers(await ask(never, 'Run all.', 20))).toBe(false);
});
