import { describe, expect, it } from 'vitest';
import { breakEvenOf, createReceiptTotals, type NamedTotals, noTotals, type Totals } from './totals.ts';
import { type Receipt, type SummaryReceipt, compressionOf } from './receipt.ts';

const usage = { input: 2_000, cacheRead: 1_000, cacheWrite: 500, output: 100 };
const bill = { uncached: 0.1, cacheRead: 0.2, cacheWrite: 0.3, output: 0.1, total: 0.7 };
const money = {
  paid: bill,
  recalls: 0.1,
  fold: 0.2,
  untouched: { ...bill, cacheRead: 0.5, total: 1 },
  untouchedUsage: { ...usage, input: 6_000 },
  net: 0.3,
};

const compression = compressionOf({
  id: 'mem_1',
  level: 'history',
  tokensBefore: 4_000,
  tokensAfter: 400,
  target: 20,
  by: 'extractive',
  problem: 'the model returned an empty answer',
});

const receipt: Receipt = {
  kind: 'request',
  id: 'r',
  at: 0,
  path: '/v1/messages',
  outcome: { status: 'compacted' },
  session: 'one',
  model: 'm',
  counter: 'c',
  window: 8_000,
  trigger: 'must-fit',
  replayed: 0,
  shrunk: 0,
  hiddenRecalls: 0,
  steps: [{ strategy: 'offload-results', edits: 3, tokensSaved: 4_000 }],
  compressions: [compression],
  memories: ['mem_1'],
  tokensBefore: 6_000,
  tokensAfter: 2_000,
  tokensKept: 500,
  cacheMarks: 0,
  unstableFrom: undefined,
  bytesBefore: 24_000,
  bytesAfter: 8_000,
  unfit: undefined,
  upstreamStatus: 200,
  recalls: [{ round: 1, found: true, tokens: 300 }],
  prompt: undefined,
  usage,
  rounds: [usage],
  money,
  problem: undefined,
  ms: { prepare: 1, total: 2 },
};

const once: Totals = {
  requests: 1,
  folds: 1,
  recalls: 1,
  compressions: {
    count: 1,
    tokensBefore: 4_000,
    tokensAfter: 400,
    under: 1,
    over: 0,
    problems: 1,
    by: { summarizer: 0, extractive: 1, both: 0, merge: 0 },
  },
  summaries: 0,
  tokensBefore: 6_000,
  tokensAfter: 2_000,
  answered: 1,
  usage,
  priced: 1,
  money: {
    paid: bill,
    recalls: 0.1,
    folds: 0.2,
    summaries: 0,
    untouched: { ...bill, cacheRead: 0.5, total: 1 },
    untouchedUsage: { ...usage, input: 6_000 },
    net: 0.3,
    tokensFolded: 4_000,
  },
};

const brief = (rows: readonly NamedTotals[]) =>
  rows.map(({ tenant, name, totals }) => `${tenant} ${name} ${totals.requests}`);

describe('totals of receipts', () => {
  it('equal the values of a single receipt', () => {
    const sums = createReceiptTotals();
    sums.add('t1', receipt);
    expect(sums.total('t1')).toEqual(once);
    expect(sums.models('t1')).toEqual([{ tenant: 't1', name: 'm', totals: once }]);
    expect(sums.sessions('t1')).toEqual([{ tenant: 't1', name: 'one', totals: once }]);
  });

  it('have a break-even point: the extra requests per 1,000 folded tokens that cost what was saved', () => {
    // 0.3 of savings pay for 0.43 requests of 0.7; 4,000 tokens were folded.
    expect(breakEvenOf(once)).toBe(0.11);
    expect(breakEvenOf(noTotals)).toBeUndefined();
  });

  it('add up, without rounding noise', () => {
    const sums = createReceiptTotals();
    for (let at = 0; at < 3; at++) sums.add('t1', receipt);
    expect(sums.total('t1')).toEqual({
      requests: 3,
      folds: 3,
      recalls: 3,
      compressions: {
        count: 3,
        tokensBefore: 12_000,
        tokensAfter: 1_200,
        under: 3,
        over: 0,
        problems: 3,
        by: { summarizer: 0, extractive: 3, both: 0, merge: 0 },
      },
      summaries: 0,
      tokensBefore: 18_000,
      tokensAfter: 6_000,
      answered: 3,
      usage: { input: 6_000, cacheRead: 3_000, cacheWrite: 1_500, output: 300 },
      priced: 3,
      money: {
        paid: { uncached: 0.3, cacheRead: 0.6, cacheWrite: 0.9, output: 0.3, total: 2.1 },
        recalls: 0.3,
        folds: 0.6,
        summaries: 0,
        untouched: { uncached: 0.3, cacheRead: 1.5, cacheWrite: 0.9, output: 0.3, total: 3 },
        untouchedUsage: { input: 18_000, cacheRead: 3_000, cacheWrite: 1_500, output: 300 },
        net: 0.9,
        tokensFolded: 12_000,
      },
    });
  });

  it('count requests that failed, were not counted or have no known price', () => {
    const sums = createReceiptTotals();
    expect(sums.total('t1')).toEqual(noTotals);
    const uncompressed = { ...receipt, compressions: [] };
    sums.add('t1', { ...uncompressed, usage: undefined, rounds: [], money: undefined, recalls: [] });
    expect(sums.total('t1')).toEqual({ ...noTotals, requests: 1, folds: 1 });
    sums.add('t1', { ...uncompressed, money: undefined, tokensBefore: undefined, tokensAfter: undefined });
    expect(sums.total('t1')).toEqual({ ...noTotals, requests: 2, folds: 2, recalls: 1, answered: 1, usage });
    sums.add('t1', receipt);
    expect(sums.total('t1')).toMatchObject({
      requests: 3,
      tokensBefore: 6_000,
      answered: 2,
      usage: { input: 4_000 },
      priced: 1,
      money: once.money,
    });
  });

  it('include the cost of summaries by a model, also of failed ones, so that savings are net', () => {
    const sums = createReceiptTotals();
    const summary: SummaryReceipt = {
      kind: 'summary',
      id: 's',
      at: 0,
      path: '/v1/messages',
      outcome: { status: 'failed', reason: 'm returned an empty answer' },
      session: 'one',
      behind: 'r',
      model: 'small',
      calls: 1,
      tokensBefore: 3_000,
      tokensAfter: undefined,
      usage: { input: 3_100, cacheRead: 0, cacheWrite: 0, output: 10 },
      paid: { uncached: 0.05, cacheRead: 0, cacheWrite: 0, output: 0.01, total: 0.06 },
      ms: 30_000,
    };
    sums.addSummary('t1', summary);
    expect(sums.total('t1')).toMatchObject({
      requests: 0,
      summaries: 1,
      answered: 0,
      usage: { input: 3_100 },
      priced: 0,
      money: { paid: { total: 0.06 }, summaries: 0.06, untouched: { total: 0 }, net: -0.06 },
    });
    sums.add('t1', receipt);
    expect(sums.sessions('t1')[0]!.totals).toMatchObject({
      requests: 1,
      summaries: 1,
      answered: 1,
      usage: { input: 5_100 },
      money: { paid: { total: 0.76 }, summaries: 0.06, untouched: { total: 1 }, net: 0.24 },
    });
    sums.addSummary('t1', { ...summary, usage: undefined, paid: undefined });
    expect(sums.total('t1')).toMatchObject({ summaries: 2, money: { summaries: 0.06 } });
    expect(brief(sums.models('t1'))).toEqual(['t1 small 0', 't1 m 1']);
  });

  it('count a fold only if it was made, not if it is replayed, rejected or observed', () => {
    const sums = createReceiptTotals();
    sums.add('t1', { ...receipt, steps: [], replayed: 3 });
    sums.add('t1', {
      ...receipt,
      steps: [{ strategy: 'drop-oldest', edits: 0, tokensSaved: 0, refused: 'r' }],
    });
    sums.add('t1', { ...receipt, outcome: { status: 'observed' } });
    expect(sums.total('t1')).toMatchObject({ requests: 3, folds: 0, compressions: { count: 2 } });
  });

  it('are kept by tenant, model and session, with the last receipt first', () => {
    const sums = createReceiptTotals();
    sums.add('t1', receipt);
    sums.add('t2', receipt);
    sums.add('t1', { ...receipt, model: undefined, session: undefined });
    sums.add('t1', { ...receipt, session: 'two' });
    expect([sums.tenants, sums.models, sums.sessions].map((rows) => brief(rows('t1')))).toEqual([
      ['t1 t1 3'],
      ['t1 m 2', 't1 unknown 1'],
      ['t1 two 1', 't1 one 1'],
    ]);
    expect([sums.tenants, sums.models, sums.sessions].map((rows) => brief(rows(undefined)))).toEqual([
      ['t1 t1 3', 't2 t2 1'],
      ['t1 m 2', 't1 unknown 1', 't2 m 1'],
      ['t1 two 1', 't2 one 1', 't1 one 1'],
    ]);
    expect([sums.total('t1'), sums.total(undefined)].map(({ requests }) => requests)).toEqual([3, 4]);
  });

  it("drop rows without receipts for the longest time; the tenant's totals stay complete", () => {
    const sums = createReceiptTotals({ rows: 2 });
    for (const session of ['one', 'two', 'three']) sums.add('t1', { ...receipt, session });
    expect(brief(sums.sessions('t1'))).toEqual(['t1 three 1', 't1 two 1']);
    expect(sums.total('t1').requests).toBe(3);
  });
});
