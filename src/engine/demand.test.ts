import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { Engine } from './types.ts';

const tools = ['run'];

/** A log of about 1,000 tokens. */
const log = (name: string) =>
  Array.from({ length: 100 }, (_, at) => `${name}: step ${at} took ${at * 7} ms\n`).join('');

/** A conversation of so many jobs. `task` makes it different from others. */
const jobs = (turns: number, task = 'Run all jobs.'): readonly Step[] => [
  { system: 'You are an agent.' },
  { user: task },
  ...Array.from({ length: turns }, (_, at) => ({
    calls: [{ name: 'run', input: `{"n":${at}}`, result: log(`job ${at}`) }],
  })),
];

const requestOf = (steps: readonly Step[], tenant = 'tenant') => ({
  codec: openaiChat,
  body: chatBody(steps, { tools, model: 'gpt-4o' }),
  tenant,
});

const prepare = (engine: Engine, steps: readonly Step[], tenant?: string) =>
  engine.prepare(requestOf(steps, tenant));

/** Prepares two conversations whose provider reports `factor` times the count. */
async function teach(engine: Engine, factor: number, tenant?: string) {
  for (const task of ['The first.', 'The second.']) {
    const { prompt, reportPromptTokens } = await prepare(engine, jobs(3, task), tenant);
    reportPromptTokens(prompt!.counted * factor);
  }
}

describe('calibration by reported usage', () => {
  it('applies to triggers: a fold is made at, and down to, the tokens that the provider would count', async () => {
    const window = 48_000;
    const { engine } = testEngine({ window });
    const untaught = await prepare(testEngine({ window }).engine, jobs(20));
    await teach(engine, 1.9);
    const taught = await prepare(engine, jobs(20));
    const { counted, expected } = taught.prompt!;
    expect({
      untaught: [untaught.outcome.status, untaught.report.tokensBefore],
      taught: [taught.outcome.status, taught.report.trigger, taught.report.tokensBefore],
      expected: [expected, taught.report.tokensAfter],
    }).toEqual({
      untaught: ['untouched', 24_479],
      taught: ['compacted', 'must-fit', Math.round(24_479 * 1.9)],
      expected: [Math.round(counted * 1.9), expected],
    });
    expect(expected).toBeLessThanOrEqual(window / 2);
    expect(expected).toBeGreaterThan(window / 2 - 2_500);
    const saved = taught.report.steps.reduce((sum, { tokensSaved }) => sum + tokensSaved, 0);
    // The recall tool that the fold adds costs tokens, too.
    expect(saved).toBeGreaterThan(24_479 * 1.9 - expected);
    expect(saved).toBeLessThan(24_479 * 1.9 - expected + 600);
  });

  it('changes when a fold is made, but never its text', async () => {
    const taught = testEngine({ window: 40_000, triggerOptions: { mustFit: false } }).engine;
    await teach(taught, 2);
    const other = testEngine({ window: 20_000, triggerOptions: { mustFit: false } }).engine;
    const [one, two] = await Promise.all([prepare(taught, jobs(20)), prepare(other, jobs(20))]);
    expect([one.report.trigger, two.report.trigger]).toEqual(['window-fraction', 'window-fraction']);
    expect(new TextDecoder().decode(one.body)).toBe(new TextDecoder().decode(two.body));
  });

  it('does not change an existing fold: it is replayed unchanged, whatever is reported later', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ window: 20_000, store });
    const folded = await prepare(engine, jobs(20));
    folded.reportPromptTokens(folded.prompt!.counted * 0.6);
    const again = await prepare(engine, jobs(20));
    const elsewhere = await prepare(testEngine({ window: 20_000, store }).engine, jobs(20));
    expect([folded, again, elsewhere].map(({ report }) => report.trigger)).toEqual([
      'must-fit',
      undefined,
      undefined,
    ]);
    expect(again.body).toEqual(folded.body);
    expect(elsewhere.body).toEqual(folded.body);
  });

  it('leaves fewer tokens for recalls', async () => {
    const { engine } = testEngine({ window: 40_000 });
    const before = await prepare(engine, jobs(5));
    await teach(engine, 1.5);
    const after = await prepare(engine, jobs(5));
    expect(before.room! - after.room!).toBe(after.prompt!.expected - before.prompt!.expected);
  });

  it('follows the reports of the conversation itself, also after a fold', async () => {
    const { engine } = testEngine({ window: 20_000 });
    const errors: number[] = [];
    for (let turns = 2; turns < 40; turns++) {
      const { prompt, reportPromptTokens } = await prepare(engine, jobs(turns));
      const reported = Math.round(3_000 + prompt!.counted * 1.2);
      errors.push(Math.abs(prompt!.expected / reported - 1));
      reportPromptTokens(reported);
    }
    expect(errors[0]).toBeGreaterThan(0.4);
    expect(Math.max(...errors.slice(2))).toBeLessThan(0.05);
    expect(Math.max(...errors.slice(20))).toBeLessThan(0.015);
  });

  it('reports a request that does not fit in the tokens that its provider would count', async () => {
    const { engine } = testEngine({ window: 2_000, strategies: [] });
    await teach(engine, 1.5);
    const { report, prompt } = await prepare(engine, jobs(2));
    expect(prompt).toEqual({ original: 2_483, counted: 2_483, expected: 3_725 });
    expect(report.unfit).toBe(
      '3725 tokens remain, 1400 fit: message 3 (tool) 1812, message 5 (tool) 1812, tools 29.',
    );
  });
});

describe('reports that are learned from', () => {
  const learned = async (engine: Engine, tenant?: string) => {
    const { prompt } = await prepare(engine, jobs(4, 'Another.'), tenant);
    return Math.round((100 * prompt!.expected) / prompt!.counted) / 100;
  };

  it('are those of the same tenant', async () => {
    const { engine } = testEngine();
    await teach(engine, 1.5, 'one');
    expect([await learned(engine, 'one'), await learned(engine, 'two')]).toEqual([1.5, 1]);
  });

  it('include those to a gateway in observe mode, for the body that it really sent', async () => {
    const { engine } = testEngine({ mode: 'observe', window: 10_000 });
    const [first, second] = [
      await prepare(engine, jobs(20, 'The first.')),
      await prepare(engine, jobs(20, 'The second.')),
    ];
    expect(first.report.tokensAfter).toBeLessThan(6_000);
    expect(first.prompt).toEqual({ original: 24_478, counted: 24_478, expected: 24_478 });
    first.reportPromptTokens(24_478 * 1.5);
    second.reportPromptTokens(24_478 * 1.5);
    expect(await learned(engine)).toBe(1.5);
  });

  it('include those for a request that was never prepared', async () => {
    const { engine } = testEngine();
    const sizes = ['The first.', 'The second.'].map((task) => requestOf(jobs(4, task)));
    for (const request of sizes) await engine.reportPromptTokens(request, 6_000);
    expect(await learned(engine)).toBe(1.22);
    await engine.reportPromptTokens({ ...requestOf([]), body: new TextEncoder().encode('no JSON') }, 6_000);
  });

  it('include those for a conversation whose folding is disabled', async () => {
    const { engine } = testEngine();
    for (const task of ['The first.', 'The second.']) {
      await engine.disableFolding(requestOf(jobs(2, task)));
      const { outcome, reportPromptTokens } = await prepare(engine, jobs(4, task));
      expect(outcome).toEqual({ status: 'untouched', reason: 'folding is disabled after a refusal' });
      reportPromptTokens(6_000);
    }
    expect(await learned(engine)).toBe(1.22);
  });

  it('exclude requests whose history the provider keeps, because these count only a part', async () => {
    const { engine } = testEngine();
    const prepareOn = (previous: string | undefined) => {
      const body = { model: 'gpt-4o', previous_response_id: previous, input: log('all of it').repeat(2) };
      return engine.prepare({
        codec: openaiResponses,
        body: new TextEncoder().encode(JSON.stringify(body)),
        tenant: 'tenant',
      });
    };
    for (const previous of ['resp_1', 'resp_2', 'resp_3']) {
      const { prompt, reportPromptTokens } = await prepareOn(previous);
      reportPromptTokens(prompt!.counted * 1.9);
    }
    const { counted, expected } = (await prepareOn(undefined)).prompt!;
    expect(expected).toBe(counted);
  });
});
