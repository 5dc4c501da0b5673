import { describe, expect, it } from 'vitest';
import type { Figures } from '../../replay/figures.ts';
import { noTally } from '../../replay/tally.ts';
import { htmlReport, lineChart, pointChart, figuresTable } from './reports.ts';

const figuresOf = (policy: string, cost: number, visible: number): Figures => ({
  policy,
  cost: { cheap: cost, dear: cost + 1 },
  careless: policy === 'whole' ? { cheap: cost, dear: cost + 1 } : undefined,
  worst: { cheap: { id: 'run/1', cost: cost * 2 }, dear: { id: 'run/1', cost: cost * 2 } },
  meanTokens: 12_345,
  peakTokens: 67_890,
  needs: 1_000,
  visible,
  lost: 0.0004,
  recallsPer100: 1.25,
  stable: 0.995,
  folds: 1,
  breakEven:
    policy === 'whole'
      ? undefined
      : {
          tokensFolded: 4_000,
          recalls: 2,
          atStaticShare: { '0.25': { cheap: 0.381, dear: 1 }, '0.66': { cheap: 0.12, dear: 1 } },
        },
  overWindow: 2,
  failed: policy === 'whole' ? 0 : 3,
  unfit: 0,
});

const source = {
  source: 'a <b>',
  conversations: 1,
  requests: 2_000,
  policies: [figuresOf('whole', 1, 1), figuresOf('other', 0.5, 0.98)],
};

const axes = {
  x: { title: 'cost', show: (value: number) => value.toFixed(1) },
  y: { title: 'visible', show: (value: number) => `${value} %` },
};

describe('figuresTable', () => {
  it('aligns the figures of a source, and prints warnings', () => {
    expect(figuresTable([source])).toBe(
      `a <b>: 1 conversation, 2,000 requests, 1,000 values used again
  policy  cheap   dear  cheap without recalls  worst, cheap  mean tokens    peak  visible  recalls/100  folded  even at 25 %  even at 66 %   lost  stable  over window
  whole   1.000  2.000                  1.000          2.00       12,345  67,890   100.0%          1.3       -             -             -  0.04%   99.5%            2
  other   0.500  1.500                      -          1.00       12,345  67,890    98.0%          1.3   4,000          0.38          0.12  0.04%   99.5%  2, 3 failed
`,
    );
  });
});

describe('charts', () => {
  it('have round ticks that contain all points', () => {
    const svg = pointChart(
      [
        { name: 'a & b', x: 0.52, y: 100 },
        { name: 'c', x: 1, y: 91 },
      ],
      axes,
    );
    expect([...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text)).toEqual([
      '90 %',
      '92 %',
      '94 %',
      '96 %',
      '98 %',
      '100 %',
      '0.5',
      '0.6',
      '0.7',
      '0.8',
      '0.9',
      '1.0',
      'cost',
      'visible',
      '1',
      '2',
    ]);
    expect(svg).toContain('<title>a &amp; b: cost 0.5, visible 100 %</title><circle cx="101.1" cy="14"');
  });

  it('are drawn without values, and with one value', () => {
    for (const svg of [
      lineChart([], axes),
      lineChart([{ name: 'one', values: [5] }], axes),
      pointChart([], axes),
    ])
      expect(svg).not.toMatch(/NaN|Infinity/);
  });
});

describe('htmlReport', () => {
  it('is a self-contained page, with every name as text', () => {
    const session = {
      id: 'run/<1>',
      source: 'a',
      plays: [{ policy: 'whole', tally: noTally, contexts: [10, 20], careless: undefined }],
    };
    const page = htmlReport({
      subtitle: 'one & all',
      figures: [source],
      session,
      window: 30,
    });
    expect(page).toMatch(/^<!doctype html>/);
    expect(page).not.toMatch(/https?:|src=|<script|<link|@import|url\(/);
    expect(page).toContain('one &amp; all');
    expect(page).toContain('run/&lt;1&gt;');
    expect(page).toContain('<h2>a &lt;b&gt;</h2>');
    expect([...page.matchAll(/<svg /g)]).toHaveLength(2);
    expect(page).toContain('window: 30');
  });
});
