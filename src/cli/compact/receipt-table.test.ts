import { describe, expect, it } from 'vitest';
import type { FoldReport } from '../../receipts/receipt.ts';
import { type BodyReceipt, receiptLines, receiptTable } from './receipt-table.ts';

const report: FoldReport = {
  model: 'm',
  counter: 'o200k_base',
  window: 8_000,
  trigger: undefined,
  replayed: 0,
  shrunk: 0,
  hiddenRecalls: 0,
  steps: [],
  compressions: [],
  memories: [],
  tokensBefore: 900,
  tokensKept: undefined,
  tokensAfter: 900,
  bytesBefore: 4_000,
  bytesAfter: 4_000,
  cacheMarks: 0,
  unstableFrom: undefined,
  unfit: undefined,
};

const receipts: readonly BodyReceipt[] = [
  { line: 1, id: 'run/1', outcome: { status: 'untouched', reason: 'no trigger fired' }, report, ms: 1.04 },
  {
    line: 2,
    id: 'a run with a\nlong name '.repeat(3),
    outcome: { status: 'compacted' },
    report: {
      ...report,
      trigger: 'must-fit',
      replayed: 2,
      shrunk: 3,
      hiddenRecalls: 0,
      steps: [
        { strategy: 'drop-failed-calls', edits: 0, tokensSaved: 0, refused: 'a rule' },
        { strategy: 'offload-results', edits: 12, tokensSaved: 9_000 },
      ],
      tokensBefore: 13_000,
      tokensAfter: 8_100,
      unfit: '8100 tokens remain, 6976 fit: message 0 (system) 8000.',
    },
    ms: 1_234.56,
  },
  { line: 3, id: 'line 3', outcome: { status: 'bad', reason: 'not JSON: x' }, report: undefined, ms: 0 },
  { line: 4, id: 'line 4', outcome: { status: 'failed', reason: 'store-failed: gone' }, report, ms: 2 },
];

describe('receiptTable', () => {
  const expected = `line 2: does not fit: 8100 tokens remain, 6976 fit: message 0 (system) 8000.
line 3: copied unchanged: not JSON: x
line 4: failed, copied unchanged: store-failed: gone
id                                                outcome    trigger   before  after       ms  edits
run/1                                             untouched  -            900    900        1  -
a run with a long name a run with a long name a…  compacted  must-fit  13,000  8,100  1,234.6  shrunk 3, replayed 2, drop-failed-calls refused, offload-results 12
line 3                                            bad        -              -      -        0  -
line 4                                            failed     -            900    900        2  -
total                                                                  14,800  9,900  1,237.6
4 bodies: 1 untouched, 1 compacted, 1 bad, 1 failed; 33.1 % of the tokens saved
`;

  it('aligns its columns, and prints notes', () => {
    const table = receiptTable();
    const shown = receipts.map((receipt) => table.add(receipt)).join('') + table.end();
    expect(shown).toBe(expected);
  });

  it('prints rows at once after the first rows have set the widths', () => {
    const table = receiptTable(1);
    const [first, second] = receipts.map((receipt) => table.add(receipt));
    expect(first).toBe(
      'id     outcome    trigger  before  after  ms  edits\nrun/1  untouched  -           900    900   1  -\n',
    );
    expect(second).toContain('compacted  must-fit  13,000  8,100  1,234.6  shrunk 3, replayed 2');
  });

  it('says that there was no input', () => {
    expect(receiptTable().end()).toBe('0 bodies\n');
  });
});

describe('receiptLines', () => {
  it('prints each receipt, and the total, as a line of JSON', () => {
    const view = receiptLines();
    const lines = receipts.map((receipt) => view.add(receipt));
    expect(JSON.parse(lines[0]!)).toEqual({
      line: 1,
      id: 'run/1',
      outcome: { status: 'untouched', reason: 'no trigger fired' },
      model: 'm',
      counter: 'o200k_base',
      window: 8_000,
      replayed: 0,
      shrunk: 0,
      steps: [],
      compressions: [],
      memories: [],
      hiddenRecalls: 0,
      tokensBefore: 900,
      tokensAfter: 900,
      bytesBefore: 4_000,
      bytesAfter: 4_000,
      cacheMarks: 0,
      ms: 1,
    });
    expect(JSON.parse(lines[2]!)).toEqual({
      line: 3,
      id: 'line 3',
      outcome: { status: 'bad', reason: 'not JSON: x' },
      ms: 0,
    });
    expect(JSON.parse(view.end())).toEqual({
      total: {
        bodies: 4,
        outcomes: { untouched: 1, compacted: 1, bad: 1, failed: 1 },
        tokensBefore: 14_800,
        tokensAfter: 9_900,
        ms: 1_237.6,
      },
    });
  });
});
