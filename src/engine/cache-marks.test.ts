import { describe, expect, it } from 'vitest';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { asAnthropic } from '../../test/support/as-anthropic.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { habitAfter, noCacheHabit } from './finish.ts';
import type { EngineOptions } from './types.ts';

const minute = 60_000;
const anthropicPrices = { read: 0.1, write: 1.25, minCachedTokens: 1_024 };

/** Steps of about 1,000 tokens each, except the first. */
const steps = (turns: number, system = 'Be brief.'): readonly Step[] => [
  { system },
  { user: 'Run all jobs.' },
  ...Array.from({ length: turns }, (_, at) => ({
    calls: [{ name: 'run', input: `{"n":${at}}`, result: `job ${at} took ${at * 7} ms\n`.repeat(100) }],
  })),
];

type Sent = { readonly cacheMarks: number; readonly marked: readonly string[] };

/** Sends requests of one conversation to an engine, each so many minutes after the previous one. */
function conversationWith(options: Partial<EngineOptions> & { readonly window?: number } = {}) {
  let now = 0;
  const prices = { pricesFor: () => Promise.resolve(anthropicPrices) };
  const { engine } = testEngine({ ...prices, ...options, clock: () => now });
  return async function send(
    said: readonly Step[],
    { pause = 0, model = 'claude-opus-4-8', change = (body: Uint8Array) => body } = {},
  ): Promise<Sent> {
    now += pause * minute;
    const body = change(asAnthropic(chatBody(said, { tools: ['run'], model })));
    const prepared = await engine.prepare({ codec: anthropicMessages, body, tenant: 'tenant' });
    const { cacheMarks, bytesAfter } = prepared.report;
    if (prepared.outcome.status !== 'observed') expect(bytesAfter).toBe(prepared.body.length);
    return { cacheMarks, marked: placesIn(prepared.body) };
  };
}

/** Returns the places of the marks, in the order of the body. */
function placesIn(body: Uint8Array): readonly string[] {
  type Blocks = readonly { readonly cache_control?: unknown }[];
  const { system, tools, messages } = JSON.parse(new TextDecoder().decode(body)) as {
    readonly system: Blocks;
    readonly tools: Blocks;
    readonly messages: readonly { readonly content: Blocks }[];
  };
  const markedIn = (name: string, blocks: Blocks) =>
    blocks.flatMap(({ cache_control }, at) => (cache_control ? [`${name}.${at}`] : []));
  return [
    ...markedIn('tools', tools),
    ...markedIn('system', system),
    ...messages.flatMap(({ content }, at) => markedIn(`messages.${at}`, content)),
  ];
}

describe('a client that sets no cache marks', () => {
  it('gets marks from the second request on: after system, the previously newest message and the newest message', async () => {
    const send = conversationWith();
    expect((await send(steps(3))).marked).toEqual([]);
    expect(await send(steps(4))).toEqual({
      cacheMarks: 3,
      marked: ['system.0', 'messages.6.0', 'messages.8.0'],
    });
    expect((await send(steps(5))).marked).toEqual(['system.0', 'messages.8.0', 'messages.10.0']);
  });

  it('gets the same marks when a request is sent again, and none when the first is', async () => {
    const send = conversationWith();
    for (const _ of [1, 2, 3]) expect((await send(steps(3))).marked).toEqual([]);
    for (const _ of [1, 2, 3])
      expect((await send(steps(4))).marked).toEqual(['system.0', 'messages.6.0', 'messages.8.0']);
  });

  it.each<[string, Partial<EngineOptions>, { readonly model?: string }]>([
    ['when they are turned off', { cacheMarks: false }, {}],
    ['when prices are unknown', { pricesFor: () => Promise.resolve(undefined) }, {}],
    [
      'when cache writes cost nothing extra',
      { pricesFor: () => Promise.resolve({ read: 0.1, write: 1 }) },
      {},
    ],
    ['when cache reads are not cheaper', { pricesFor: () => Promise.resolve({ read: 1, write: 1 }) }, {}],
    ['in observe mode', { mode: 'observe' }, {}],
    [
      'below the minimum that the model caches',
      { pricesFor: () => Promise.resolve({ ...anthropicPrices, minCachedTokens: 4_096 }) },
      {},
    ],
    [
      'below the largest known minimum when the minimum is unknown',
      { pricesFor: () => Promise.resolve({ read: 0.1, write: 1.25 }) },
      {},
    ],
  ])('gets none %s', async (_, options, more) => {
    const send = conversationWith(options);
    for (const turns of [1, 2]) expect((await send(steps(turns), more)).cacheMarks).toBe(0);
  });

  it('gets marks on the messages that folding left', async () => {
    const send = conversationWith({ window: 20_000 });
    for (const turns of [10, 11, 12]) await send(steps(turns));
    // A fold removed the messages that were marked before.
    expect((await send(steps(30))).marked).toHaveLength(2);
    expect((await send(steps(31))).marked).toHaveLength(3);
  });
});

it("a client's own marks stay unchanged, and none is added", async () => {
  const own = (body: Uint8Array) =>
    new TextEncoder().encode(
      new TextDecoder()
        .decode(body)
        .replace('"Be brief."', '"Be brief.","cache_control":{"type":"ephemeral"}'),
    );
  const send = conversationWith();
  for (const turns of [3, 4, 5])
    expect(await send(steps(turns), { change: own })).toEqual({ cacheMarks: 0, marked: ['system.0'] });
});

describe('marks are set only when the next request is expected to find them', () => {
  it('not for a client whose requests come after the cache has expired; again once they come sooner', async () => {
    const send = conversationWith();
    const counts: number[] = [];
    for (const [turn, pause] of [0, 6, 10, 6, 20, 1, 1, 1].entries())
      counts.push((await send(steps(3 + turn), { pause })).cacheMarks);
    expect(counts).toEqual([0, 0, 0, 0, 0, 0, 3, 3]);
  });

  it('also after one pause of a user who usually makes none', async () => {
    const send = conversationWith();
    const counts: number[] = [];
    for (const [turn, pause] of [0, 1, 1, 1, 30, 1].entries())
      counts.push((await send(steps(3 + turn), { pause })).cacheMarks);
    expect(counts).toEqual([0, 3, 3, 3, 3, 3]);
  });

  it('not when the client changes the model, the tools or the system text between requests', async () => {
    const systems = conversationWith();
    for (const turns of [3, 4, 5, 6]) {
      const { cacheMarks } = await systems(steps(turns, `It is ${turns} o'clock.`));
      expect(cacheMarks).toBe(0);
    }
    const models = conversationWith();
    for (const turns of [3, 4, 5, 6]) {
      const model = turns % 2 ? 'claude-opus-4-8' : 'claude-sonnet-4-5';
      expect((await models(steps(turns), { model })).cacheMarks).toBe(0);
    }
  });

  it('not for another conversation with the same beginning', async () => {
    const send = conversationWith();
    await send(steps(3));
    expect((await send([...steps(2), { user: 'Stop.' }])).cacheMarks).toBe(0);
  });
});

it('a habit is averaged over the last four requests', () => {
  const kept = (...requests: readonly boolean[]) => requests.reduce(habitAfter, noCacheHabit).kept;
  expect(kept(true)).toBe(1);
  expect(kept(true, false)).toBe(0.5);
  expect(kept(true, true, true, true, true, true, false)).toBe(0.75);
  expect(kept(...Array.from({ length: 20 }, () => false), true)).toBe(0.25);
});
