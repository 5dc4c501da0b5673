import { describe, expect, it } from 'vitest';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { chatBody, type Step } from '../../test/support/chat-conversation.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';

/** Counts 1,000 tokens for a result, and none for anything else. */
const counter: TokenCounter = {
  name: 'results',
  exact: true,
  count: (text) => (text.startsWith('result ') && text.length > 2_000 ? 1_000 : 0),
  image: () => 0,
  overhead: { message: 0, tool: 0, request: 0 },
};

const { engine } = testEngine({
  triggerOptions: {
    mustFit: false,
    windowFraction: false,
    tokenBudget: { triggerTokens: 6_500, targetTokens: 2_500 },
  },
  counterFor: () => Promise.resolve(counter),
  offerRecall: 'always',
  pins: { tools: [], texts: ['result 0\n', 'result 1\n'] },
});

const steps = (results: number, task = 'Run all jobs.'): readonly Step[] => [
  { system: 'You are an agent.' },
  { user: task },
  ...Array.from({ length: results }, (_, at) => ({
    calls: [{ name: 'run', result: `result ${at}\n${`${at} is done, ${at * 7} left\n`.repeat(150)}` }],
  })),
];

const prepare = (results: number, task?: string) =>
  engine.prepare({
    codec: openaiChat,
    body: chatBody(steps(results, task), { tools: ['run'], model: 'm' }),
    tenant: 'tenant',
  });

describe('the tokens that a fold keeps in the cache', () => {
  it('are reported with the request that makes the fold: the tokens in front of its first edit', async () => {
    const reports = [];
    for (const results of [7, 9, 10]) reports.push((await prepare(results)).report);
    expect(
      reports.map(({ trigger, replayed, tokensBefore, tokensAfter, tokensKept }) => [
        trigger,
        replayed,
        tokensBefore,
        tokensAfter,
        tokensKept,
      ]),
    ).toEqual([
      [undefined, 0, 7_000, 7_000, undefined],
      // Two results are pinned in front, two are left at the end.
      ['token-budget', 0, 9_000, 4_000, 2_000],
      [undefined, 5, 10_000, 5_000, undefined],
    ]);
  });
});

describe('the identity of a conversation', () => {
  it('has the same beginning in all its requests and another in other conversations, and one link a message', async () => {
    const [first, next, other] = [
      await prepare(1),
      await prepare(3),
      await prepare(1, 'Do something else.'),
    ].map(({ identity }) => identity);
    expect(next!.beginning).toBe(first!.beginning);
    expect(other!.beginning).not.toBe(first!.beginning);
    expect(next!.links.slice(0, first!.links.length)).toEqual(first!.links);
    expect(first!.beginning).toBe(first!.links[2]);
  });

  it('is unknown when the provider keeps the history, and without a user message', async () => {
    const input = [{ type: 'function_call_output', call_id: 'a', output: 'done' }];
    const body = new TextEncoder().encode(
      JSON.stringify({ model: 'm', input, previous_response_id: 'r', prompt_cache_key: 'key' }),
    );
    const kept = await engine.prepare({ codec: openaiResponses, body, tenant: 'tenant' });
    expect(kept.identity).toEqual({ links: [], beginning: undefined, session: 'key' });
    const alone = chatBody([{ system: 'You are an agent.' }]);
    const unspoken = await engine.prepare({ codec: openaiChat, body: alone, tenant: 'tenant' });
    expect(unspoken.identity.beginning).toBeUndefined();
  });
});
