import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, jobSteps } from '../testing/chat-conversation.ts';
import { testEngine } from '../testing/test-engine.ts';

const request = (turns: number) => ({
  codec: openaiChat,
  body: chatBody(jobSteps(turns), { tools: ['run'], model: 'gpt-4o' }),
  tenant: 'tenant',
});

const engineAt = (prices: { readonly read: number; readonly write: number }) =>
  testEngine({
    window: 1_000_000,
    triggerOptions: { tokenBudget: false, cacheRent: { patience: 2 } },
    pricesFor: () => Promise.resolve(prices),
  }).engine;

/** The numbers of turns at which something was folded. */
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

describe('folds that pay', () => {
  it('are rare where the provider caches', async () => {
    const folds = await foldsOf({ read: 0.1, write: 1.25 });
    expect(folds.length).toBeGreaterThan(1);
    expect(folds.length).toBeLessThan(6);
  });

  it('come sooner and more often where it does not', async () => {
    const folds = await foldsOf({ read: 1, write: 1 });
    expect(folds).toEqual([14, 20, 26, 32, 38, 44, 50, 56]);
  });

  it('leave alone what came a few requests ago, and keep the same bytes between', async () => {
    const engine = engineAt({ read: 1, write: 1 });
    const { report, body } = await engine.prepare(request(30));
    expect(report.trigger).toBe('cache-rent');
    const sent = new TextDecoder().decode(body);
    for (const turn of [26, 27, 28, 29]) expect(sent).toContain(`job ${turn}: step 50 took`);
    expect(sent).not.toContain('job 10: step 50 took');
    expect((await engine.prepare(request(30))).body).toEqual(body);
  });
});
