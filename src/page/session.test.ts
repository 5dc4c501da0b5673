import { expect, it } from 'vitest';
import type { KeptReceipt } from '../receipts/detail.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { noTotals } from '../receipts/totals.ts';
import { overviewPage } from './overview.ts';
import { requestPage } from './request.ts';
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
  // One for wide windows, one for phones.
  const drawings = markup.match(/<svg class="chart[^]*?<\/svg>/g)!;
  expect(drawings).toHaveLength(2);
  for (const drawing of drawings) {
    expect(drawing.match(/class="fold" /g)).toHaveLength(1);
    expect(drawing.match(/<circle class="recall"/g)).toHaveLength(1);
    expect(drawing).toContain('<title>pause of 6 min</title>');
    expect(drawing).toContain('text-anchor="end">tokens</text>');
    expect(drawing).toContain('1,000 came, 400 sent, unstable from message 3</title>');
    expect(drawing.match(/<circle class="dot bad"/g)).toHaveLength(1);
  }
});

it('a session whose name is not well-formed has a link', () => {
  const { markup } = sessionPage('x', [kept(1, { session: 'half \uD800' })]).body;
  expect(markup).toContain('href="/_leporello/sessions/half%20%EF%BF%BD"');
});

it('a session without receipts says so', () => {
  expect(sessionPage('none', []).body.markup).toContain('No request of this session is kept.');
});

it('a request whose reason is a sentence ends with one full stop', () => {
  const outcome = { status: 'untouched', reason: 'not-this-format: expected { at byte 0.' } as const;
  const one = kept(1, { outcome });
  const view = { kept: one, fold: undefined, shown: 0, original: { text: undefined, total: 0 } };
  const page = requestPage({ ...view, recalls: new Map(), pinnedTools: [], isUndone: false });
  expect(page.body.markup).toContain(
    '<p class="lead">not folded: not-this-format: expected { at byte 0.</p>',
  );
});

it('a request says what was folded, by the title of each replacement', () => {
  const { receipt } = kept(1);
  const edit = {
    message: 38,
    messages: 2,
    tool: undefined,
    memory: undefined,
    stub: 'Read f18.ts.',
    before: 1_200,
    after: 9,
  };
  const edits = [
    { ...edit, by: 'fold', title: 'read_file src/f18.ts', requests: 5 },
    { ...edit, by: 'shrink', title: 'result of run', messages: 1, requests: 0 },
  ] as const;
  const detail = { trigger: undefined, triggers: [], messages: [], messageCount: 0, edits };
  const reason = (shown: number) =>
    /<div class="pair"><p class="why">(.*?)<\/p>/.exec(
      requestPage({
        kept: { id: receipt.id, receipt, detail },
        fold: undefined,
        shown,
        original: { text: undefined, total: 0 },
        recalls: new Map(),
        pinnedTools: [],
        isUndone: false,
      }).body.markup,
    )?.[1];
  expect(reason(0)).toBe(
    'Folded: read_file src/f18.ts (2 messages from message 38 on). 1,200 tokens became 9, and this had been sent with 5 requests. The model has not recalled it.',
  );
  expect(reason(1)).toBe(
    'Shortened when it arrived: result of run (message 38). It was never sent in full, so the cache stayed valid: 1,200 tokens became 9. The model has not recalled it.',
  );
});

it('the first page says that savings come from cache marks, too, if Leporello set some', () => {
  const pageOf = (one: KeptReceipt) =>
    overviewPage({ totals: noTotals, sessions: [], receipts: [one], experiments: [], startedAt: 0 }).body
      .markup;
  const words = 'a part of the net comes from the cache and not from folds';
  expect(pageOf(kept(1, { cacheMarks: 2 }))).toContain(words);
  expect(pageOf(kept(1))).not.toContain(words);
});
