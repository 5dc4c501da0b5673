import { expect, it } from 'vitest';
import type { KeptReceipt } from '../receipts/detail.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { noTotals } from '../receipts/totals.ts';
import { originalPage, originalsPage, recallsPage } from './memory.ts';
import { type Overview, overviewPage, warningOf } from './overview.ts';
import { setupPage } from './setup.ts';
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

it('the chart of a session has room for the labels of its axis', () => {
  const tokens = { tokensBefore: 12_345_678, tokensAfter: 400 };
  // 10 characters of at most 9 units.
  for (const [drawing] of sessionPage('jobs', [kept(1, tokens)]).body.markup.matchAll(
    /<svg class="chart[^]*?<\/svg>/g,
  ))
    expect(Number(/<text x="(\d+)"[^>]*>12,345,678/.exec(drawing)?.[1])).toBeGreaterThanOrEqual(90);
});

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

const newest = { newer: 0, older: 'none', experiments: [], startedAt: 0 } as const;

it('the first page leads to older requests, which do not change as new ones come', () => {
  const pageOf = (newer: number, older: Overview['older']) =>
    overviewPage({ ...newest, totals: noTotals, sessions: [], receipts: [kept(1), kept(0)], newer, older })
      .body.markup;
  const linksOf = (markup: string) =>
    [...markup.matchAll(/<a href="([^"]*)">((?:Newest|Older) requests)/g)].map(([, href, words]) => [
      href,
      words,
    ]);
  expect(linksOf(pageOf(0, 'none'))).toEqual([]);
  expect(linksOf(pageOf(0, 'listed'))).toEqual([['/_leporello/?newer=2', 'Older requests']]);
  expect(linksOf(pageOf(2, 'listed'))).toEqual([
    ['/_leporello/', 'Newest requests'],
    ['/_leporello/?newer=4', 'Older requests'],
  ]);
  expect(linksOf(pageOf(4, 'none'))).toEqual([['/_leporello/', 'Newest requests']]);
  expect(linksOf(pageOf(4, 'not listed'))).toEqual([['/_leporello/', 'Newest requests']]);
  expect(pageOf(4, 'not listed')).toContain('Older requests of all tenants are not listed here');
  expect(pageOf(0, 'listed')).toContain('<tbody id="requests">');
  expect(pageOf(2, 'listed')).not.toMatch(/id="(?:requests|state)"/);
});

it('the first page says how many of the sessions it shows', () => {
  const headingOf = (length: number) =>
    /<h2 id="sessions">([^<]*)/.exec(
      overviewPage({
        ...newest,
        totals: noTotals,
        sessions: Array.from({ length }, (_, at) => ({ tenant: 't', name: `s${at}`, totals: noTotals })),
        receipts: [],
      }).body.markup,
    )?.[1];
  expect([headingOf(12), headingOf(13)]).toEqual(['Sessions', 'The 12 newest sessions']);
});

it.each<[Partial<Receipt>, string | undefined]>([
  [{ upstreamStatus: 200 }, undefined],
  [{ upstreamStatus: 200, problem: 'the store did not answer' }, 'answered, but with a problem'],
  [{ upstreamStatus: 200, outcome: { status: 'failed', reason: '' } }, 'answered, but the fold failed'],
  [{ upstreamStatus: 200, problem: 'it broke off', cutOff: 'broke off' }, 'failed'],
  [{ upstreamStatus: undefined, problem: 'no connection' }, 'failed'],
  [{ upstreamStatus: 429 }, 'the provider answered 429'],
])('a request with %j has the warning %s', (change, warning) => {
  expect(warningOf(kept(1, change).receipt as Receipt)).toBe(warning);
});

it('the first page says that savings come from cache marks, too, if Leporello set some', () => {
  const pageOf = (one: KeptReceipt) =>
    overviewPage({ totals: noTotals, sessions: [], receipts: [one], ...newest }).body.markup;
  const words = 'a part of the net comes from the cache and not from folds';
  expect(pageOf(kept(1, { cacheMarks: 2 }))).toContain(words);
  expect(pageOf(kept(1))).not.toContain(words);
});

it('one of a kind is no plural', async () => {
  const receipt: Partial<Receipt> = {
    trigger: 'token-budget',
    usage: { input: 1, cacheRead: 1, cacheWrite: 0, output: 1 },
    steps: [{ strategy: 'offload-results', edits: 1, tokensSaved: 1 }],
    recalls: [{ round: 1, found: true, tokens: 1 }],
    shrunk: 1,
    tokensBefore: 2,
    tokensAfter: 1,
  };
  const { receipt: one } = kept(1, receipt);
  const edit = { message: 1, messages: 1, tool: undefined, memory: 'mem_1', title: 'a result', stub: '' };
  const edits = [{ ...edit, by: 'fold' as const, before: 1, after: 0, requests: 1 }];
  const messages = [{ index: 1, role: 'user', what: 'text', before: 2, after: 1, state: 'sent' as const }];
  const trigger = { name: 'must-fit', tokens: 1, messages: 1, window: 2, idleMs: undefined, atMost: 12_000 };
  const goal = { unit: 'messages', target: 1 } as const;
  const detail = {
    trigger: { ...trigger, goal, force: false },
    triggers: [],
    messages,
    messageCount: 1,
    edits,
  };
  const totals = { ...noTotals, requests: 1, folds: 1, recalls: 1, tokensBefore: 2, tokensAfter: 1 };
  const at = { at: 1, receipt: 'r', session: 'jobs' };
  const listed = { id: 'mem_1', title: 'a result', tokens: 1, at: 1, receipt: 'r', recalls: 1 };
  const setup = { url: '', snippets: [], pinnedTools: [], undone: [] };
  const checked = setupPage({ ...setup, findings: Promise.resolve([{ level: 'ok', says: 'Well.' }]) });
  const request = {
    kept: { id: 'r', receipt: one, detail },
    fold: undefined,
    shown: 0,
    original: { text: '', total: 1 },
    recalls: new Map([['mem_1', 1]]),
    pinnedTools: [],
    isUndone: false,
  };
  const texts = [
    overviewPage({ totals, sessions: [], receipts: [kept(1, receipt)], ...newest }).body,
    sessionPage('jobs', [kept(1, receipt)]).body,
    requestPage(request).body,
    recallsPage({
      recalls: [{ ...at, asked: 'a', found: false, tokens: 1 }],
      onlyMisses: false,
      originals: 1,
      recalled: 1,
    }).body,
    originalsPage({ query: '', originals: [listed], total: 1 }).body,
    originalsPage({ query: 'a', originals: [listed], total: 1 }).body,
    originalPage({ id: 'mem_1', text: 'a', bytes: 1 }).body,
    (await checked.later)!,
  ].map(({ markup }) =>
    markup.replaceAll(/<[^>]*?aria-label="([^"]*)"[^>]*>/g, ' $1 ').replaceAll(/<[^>]*>/g, ''),
  );
  expect(texts.join('\n').match(/(?<![\d.,])1 (?!ms|this)[a-z]+s\b.{0,20}/g) ?? []).toEqual([]);
  expect(texts[0]).toContain('part of paid: 1 fold, 1 recall');
  expect(texts[1]).toContain('Tokens of 1 request: the last one came with 2 and was sent with 1.');
  expect(texts[2]).toContain('offload-results: 1 edit, 1 token');
  expect(texts[2]).toContain('1 input token, 1 of them from the cache; 1 output');
  expect(texts[2]).toContain(
    'With its earlier folds repeated, the request had 1 token and would not fit: at most 12,000 fit beside the reply; the goal was at most 1 message.',
  );
  expect(texts[3]).toContain('1 recall in the newest requests, 1 of them found nothing.');
  expect(texts[4]).toContain('1 original in the newest requests.');
  expect(texts[5]).toContain('“a” is in 1 of 1 original.');
  expect(texts[6]).toContain('1 byte, kept for 30 days');
  expect(texts[7]).toContain('1 of 1 check found nothing wrong');
});
