import { expect, it } from 'vitest';
import { offloadMedia } from '../strategies/offload.ts';
import { screenshotLoop } from '../../test/support/screenshot-loop.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import { tokenBudget } from './limits.ts';

it('a body of more than 16 MB is folded to the share of its tokens that leaves 8 MB', () => {
  const state = { tokens: 60_000, window: 200_000, reserved: 0, messages: 120 };
  expect(tokenBudget().demand({ ...state, bytes: 16_000_000 })).toBeUndefined();
  expect(tokenBudget().demand({ ...state, bytes: 20_000_000 })).toEqual({
    trigger: 'token-budget',
    goal: { unit: 'tokens', target: 24_000 },
    atMost: undefined,
    force: false,
  });
});

it('old screenshots leave a body of 20 MB, and the newest four stay', async () => {
  const loop = screenshotLoop('messages', 1_500_000);
  const messages = Array.from({ length: 10 }, (_, at) => loop.step(at + 1)).flat();
  const { engine } = testEngine({
    triggers: [tokenBudget()],
    strategies: [offloadMedia()],
    keepNewestMedia: 4,
  });
  const body = new TextEncoder().encode(JSON.stringify(loop.body(messages, false)));
  const prepared = await engine.prepare({ codec: anthropicMessages, body, tenant: 'tenant' });
  expect(body.length).toBeGreaterThan(20_000_000);
  expect([prepared.report.trigger, prepared.media.size]).toEqual(['token-budget', 6]);
  expect(prepared.body.length).toBeLessThan(8_100_000);
});
