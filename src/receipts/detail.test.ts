import { expect, it } from 'vitest';
import { type KeptReceipt, otherWords, requestReceipt, wordsOfTrigger } from './detail.ts';

const figures = {
  tokens: 29_869,
  messages: 40,
  window: 200_000,
  idleMs: undefined,
  goal: { unit: 'tokens', target: 20_000 },
  atMost: undefined,
  force: false,
} as const;
const words = (name: string, replayed: number) => wordsOfTrigger({ ...figures, name }, { replayed });

it('the reason for a fold says whether its number of tokens is that with earlier folds', () => {
  expect(words('cache-rent', 12)).toBe(
    'Sending unused content again with each request had cost several times what folding it costs; with its earlier folds repeated, the request had 29,869 tokens, and the goal was at most 20,000 tokens.',
  );
  expect(words('cache-rent', 0)).toBe(
    'Sending unused content again with each request had cost several times what folding it costs; the request had 29,869 tokens, and the goal was at most 20,000 tokens.',
  );
  expect(words('token-budget', 12)).toBe(
    'With its earlier folds repeated, the request had 29,869 tokens, more than its token budget (15 % of the window); the goal was at most 20,000 tokens.',
  );
  expect(words('token-budget', 0)).toBe(
    'The request had 29,869 tokens, more than its token budget (15 % of the window); the goal was at most 20,000 tokens.',
  );
  expect(words('my-trigger', 0)).toBe(
    'The trigger my-trigger fired at 15 % of the window; the request had 29,869 tokens, and the goal was at most 20,000 tokens.',
  );
});

it('a receipt is of a request if it says so, or if an earlier version stored it without a kind', () => {
  const kept = (kind?: string) => {
    const receipt = { id: 'one', outcome: { status: 'compacted' }, ...(kind && { kind }) };
    return { id: 'one', receipt } as unknown as KeptReceipt;
  };
  const of = (one: KeptReceipt) => [requestReceipt(one) === one.receipt, otherWords(one)];
  expect(of(kept('request'))).toEqual([true, 'a request was compacted']);
  expect(of(kept())).toEqual([true, 'a request was compacted']);
  expect(of(kept('summary'))).toEqual([false, 'a summary was compacted']);
  expect(of(kept('shadow'))).toEqual([false, 'a comparison failed']);
});
