import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { TriggerSettings } from '../triggers/default-triggers.ts';

/** Counts one token for each full result, and so many for a tool. */
const counterWith = (tool: number): TokenCounter => ({
  name: `tools of ${tool}`,
  exact: true,
  count: (text) => (text.startsWith('result ') && text.length > 2_000 ? 1_000 : 0),
  image: () => 0,
  overhead: { message: 0, tool, request: 0 },
});

const steps = (results: number): readonly Step[] => [
  { user: 'Run all jobs.' },
  ...Array.from({ length: results }, (_, at) => ({
    calls: [{ name: 'run', result: `result ${at}\n${`${at} is done, ${at * 7} left\n`.repeat(150)}` }],
  })),
];

/** Returns the numbers of results at which a growing conversation was folded, and the tokens of results that were left. */
async function foldsWith(tool: number, triggerOptions: TriggerSettings, window: number) {
  const { engine } = testEngine({
    window,
    triggerOptions,
    counterFor: () => Promise.resolve(counterWith(tool)),
    shrinks: undefined,
    offerRecall: 'never',
  });
  const folds: { readonly at: number; readonly left: number }[] = [];
  for (let results = 1; results <= 60; results++) {
    const body = chatBody(steps(results), { tools: ['run'], model: 'm' });
    const { report } = await engine.prepare({ codec: openaiChat, body, tenant: 'tenant' });
    if (report.steps.some(({ edits }) => edits > 0))
      folds.push({ at: results, left: report.tokensAfter! - tool });
  }
  return folds;
}

describe('when tools take more than a budget', () => {
  const tokenBudget = { triggerTokens: 20_000, targetTokens: 8_000, bufferTokens: 0 };
  const budget = { mustFit: false, windowFraction: false, tokenBudget } as const;

  it('folds are as far apart, and leave as much, as with small tools', async () => {
    const usual = await foldsWith(4_800, budget, 1_000_000);
    expect(usual).toEqual([17, 30, 43, 56].map((at) => ({ at, left: 4_000 })));
    expect(await foldsWith(40_000, budget, 1_000_000)).toEqual(usual);
  });
});

describe('when tools take most of the window', () => {
  const window = { tokenBudget: false } as const;

  it('folds by the window leave some foldable tokens, and are not made every turn', async () => {
    expect(await foldsWith(60_000, window, 100_000)).toEqual([26, 45].map((at) => ({ at, left: 7_000 })));
    expect(await foldsWith(80_000, window, 100_000)).toEqual(
      [11, 20, 29, 38, 47, 56].map((at) => ({ at, left: 2_000 })),
    );
  });
});
