import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { chatBody, jobSteps } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { CachePrices } from './types.ts';

const request = (turns: number) => ({
  codec: openaiChat,
  body: chatBody(jobSteps(turns), { tools: ['run'], model: 'gpt-4o' }),
  tenant: 'tenant',
});

const engineAt = (prices: CachePrices) =>
  testEngine({
    window: 1_000_000,
    triggerOptions: { tokenBudget: false, cacheRent: { minPayback: 2 } },
    pricesFor: () => Promise.resolve(prices),
  }).engine;

/** Returns the numbers of turns at which a fold was made. */
async function foldsOf(prices: {
  readonly read: number;
  readonly write: number;
}): Promise<readonly number[]> {
  const engine = engineAt(prices);
  const folds: number[] = [];
  for (let turns = 1; turns <= 60; turns++) {
    const { report } = await engine.prepare(request(turns));
    if (report.trigger === 'cache-rent' && report.steps.some(({ edits }) => edits > 0)) folds.push(turns);
  }
  return folds;
}

describe('folds that save money', () => {
  it('are rare when the provider caches', async () => {
    const folds = await foldsOf({ read: 0.1, write: 1.25 });
    expect(folds.length).toBeGreaterThan(1);
    expect(folds.length).toBeLessThan(6);
  });

  it('are made sooner and more often when it does not', async () => {
    const folds = await foldsOf({ read: 1, write: 1 });
    expect(folds).toEqual([14, 21, 28, 35, 42, 49, 56]);
  });

  it('leave recent results unchanged, and keep the same bytes between folds', async () => {
    const engine = engineAt({ read: 1, write: 1 });
    const { report, body } = await engine.prepare(request(30));
    expect(report.trigger).toBe('cache-rent');
    const sent = new TextDecoder().decode(body);
    for (const turn of [26, 27, 28, 29]) expect(sent).toContain(`job ${turn}: step 50 took`);
    expect(sent).not.toContain('job 10: step 50 took');
    expect((await engine.prepare(request(30))).body).toEqual(body);
  });
});

it('prices are looked up with the length of the prompt, because some models charge more for long prompts', async () => {
  const asked: number[] = [];
  const { engine } = testEngine({
    pricesFor(_, promptTokens) {
      asked.push(promptTokens);
      return Promise.resolve({ read: 0.1, write: 1.25 });
    },
  });
  const reports = [(await engine.prepare(request(1))).report, (await engine.prepare(request(9))).report];
  expect(asked).toEqual(reports.map(({ tokensBefore }) => tokensBefore));
});

describe('a fold for a client that sets the cache time', () => {
  type Body = Record<string, unknown> & {
    readonly tools: readonly object[];
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  };
  const control = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });
  const onFirst = ({ messages: [first, ...others] }: Body, ttl: string) => [
    { role: first!.role, content: [{ type: 'text', text: 'Run all jobs.', ...control(ttl) }] },
    ...others,
  ];

  /** Returns the number of turns after which the first fold was made. */
  async function firstFold(marked: (body: Body) => object, prices: CachePrices): Promise<number> {
    const engine = engineAt(prices);
    for (let turns = 1; turns <= 60; turns++) {
      const body = JSON.parse(new TextDecoder().decode(asAnthropic(request(turns).body))) as Body;
      const bytes = new TextEncoder().encode(JSON.stringify({ ...body, ...marked(body) }));
      const { report } = await engine.prepare({ codec: anthropicMessages, body: bytes, tenant: 'tenant' });
      if (report.steps.some(({ edits }) => edits > 0)) return turns;
    }
    return Number.POSITIVE_INFINITY;
  }

  const listed = { read: 0.1, write: 1.25, writeLong: 2 };
  const dearer = { read: 0.1, write: 2 };

  it('uses the price of an hour wherever the client asks for an hour', async () => {
    const usual = await firstFold(() => ({}), listed);
    const late = await firstFold(() => ({}), dearer);
    expect(late).toBeGreaterThan(usual);
    expect(
      await Promise.all(
        [
          (body: Body) => ({ messages: onFirst(body, '1h') }),
          ({ tools }: Body) => ({ tools: tools.map((tool) => ({ ...tool, ...control('1h') })) }),
          (body: Body) => ({
            system: [{ type: 'text', text: 's', ...control('1h') }],
            messages: onFirst(body, '5m'),
          }),
          () => control('1h'),
        ].map((marked) => firstFold(marked, listed)),
      ),
    ).toEqual([late, late, late, late]);
  });

  it('uses the usual price when the client asks for five minutes', async () => {
    const usual = await firstFold(() => ({}), listed);
    expect(await firstFold((body) => ({ messages: onFirst(body, '5m') }), listed)).toBe(usual);
    expect(await firstFold(() => control(), listed)).toBe(usual);
  });

  it('uses twice the input price when the price of an hour is not listed', async () => {
    const late = await firstFold(() => ({}), dearer);
    expect(await firstFold(() => control('1h'), { read: 0.1, write: 1.25 })).toBe(late);
  });
});
