import { expect, it } from 'vitest';
import type { KeptReceipt } from '../receipts/detail.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { sessionPage } from './session.ts';

const minute = 60_000;

function kept(at: number, change: Partial<Receipt> = {}): KeptReceipt {
  const receipt = {
    id: `at-${at}`,
    at,
    path: '/v1/messages',
    outcome: { status: 'compacted' },
    model: 'a-model',
    session: 'jobs',
    steps: [],
    recalls: [],
    compressions: [],
    memories: [],
    replayed: 1,
    shrunk: 0,
    cacheMarks: 0,
    tokensBefore: 1_000,
    tokensAfter: 400,
    rounds: [],
    ms: { prepare: 1, total: 2 },
    ...change,
  } as unknown as Receipt;
  return { id: receipt.id, receipt };
}

it('a session shows its folds, recalls, pauses and failures in the chart', () => {
  const receipts = [
    kept(9 * minute, { recalls: [{ round: 1, found: true, tokens: 5 }] }),
    kept(8 * minute, { unstableFrom: 3 }),
    kept(2 * minute, {
      trigger: 'token-budget',
      steps: [{ strategy: 'offload-results', edits: 2, tokensSaved: 600 }],
    }),
    kept(1 * minute),
  ];
  const { markup } = sessionPage('jobs', receipts).body;
  expect(markup.match(/class="fold" /g)).toHaveLength(1);
  expect(markup.match(/<circle class="recall"/g)).toHaveLength(1);
  expect(markup).toContain('<title>pause of 6 min</title>');
  expect(markup).toContain('1,000 came, 400 sent, unstable from message 3</title>');
  expect(markup.match(/<circle class="dot bad"/g)).toHaveLength(1);
});

it('a session whose name is not well-formed has a link', () => {
  const { markup } = sessionPage('x', [kept(1, { session: 'half \uD800' })]).body;
  expect(markup).toContain('href="/_leporello/sessions/half%20%EF%BF%BD"');
});

it('a session without receipts says so', () => {
  expect(sessionPage('none', []).body.markup).toContain('No request of this session is kept.');
});
