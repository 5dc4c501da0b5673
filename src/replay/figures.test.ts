import { describe, expect, it } from 'vitest';
import { figuresOf } from './figures.ts';
import type { Play, Played } from './replay.ts';
import { noTally, type Tally } from './tally.ts';

const tallyOf = (read: number, written: number, rest: Partial<Tally> = {}): Tally => ({
  ...noTally,
  steps: 2,
  contextSum: read + written,
  contextPeak: written,
  stable: 2,
  tokens: { read, written, output: 10 },
  ...rest,
});

const whole = (tally: Tally): Play => ({
  policy: 'whole',
  tally,
  contexts: [],
  careless: tally.tokens,
});

const played: readonly Played[] = [
  {
    id: 'one',
    source: 'a',
    plays: [
      whole(tallyOf(1_000, 100, { needs: 3 })),
      {
        policy: 'other',
        tally: tallyOf(0, 500, { needs: 3, missing: 2, lost: 1, recalls: 1, stable: 1 }),
        contexts: [],
        careless: undefined,
      },
    ],
  },
  {
    id: 'two',
    source: 'a',
    plays: [
      whole(tallyOf(0, 300)),
      { policy: 'other', tally: tallyOf(0, 200), contexts: [], careless: undefined },
    ],
  },
  { id: 'three', source: 'b', plays: [whole(tallyOf(0, 300)), whole(tallyOf(0, 300))] },
];

describe('figuresOf', () => {
  it('adds up each source, and compares with the first policy', () => {
    const [a, b] = figuresOf(played, { cached: { read: 0.1, write: 1, output: 5 } });
    expect(a).toEqual({
      source: 'a',
      conversations: 2,
      requests: 4,
      policies: [
        {
          policy: 'whole',
          cost: { cached: 1 },
          careless: { cached: 1 },
          worst: { cached: { id: 'one', cost: 1 } },
          meanTokens: 350,
          peakTokens: 300,
          needs: 3,
          visible: 1,
          lost: 0,
          recallsPer100: 0,
          stable: 1,
          folds: 0,
          breakEven: undefined,
          overWindow: 0,
          failed: 0,
          unfit: 0,
        },
        {
          policy: 'other',
          // 500 + 50 and 200 + 50, of 100 + 100 + 50 and 300 + 50.
          cost: { cached: 800 / 600 },
          careless: undefined,
          worst: { cached: { id: 'one', cost: 550 / 250 } },
          meanTokens: 175,
          peakTokens: 500,
          needs: 3,
          visible: 1 / 3,
          lost: 1 / 3,
          recallsPer100: 25,
          stable: 0.75,
          folds: 0,
          breakEven: undefined,
          overWindow: 0,
          failed: 0,
          unfit: 0,
        },
      ],
    });
    expect(b).toMatchObject({ source: 'b', conversations: 1, policies: [{ visible: 1 }, { lost: 0 }] });
  });

  it('says how many extra requests per 1,000 folded tokens cost what was saved, at two static shares', () => {
    const tally = {
      steps: 10,
      contextSum: 10_000,
      fixedSum: 2_500,
      tokens: { read: 10_000, written: 0, output: 0 },
    };
    const own = {
      ...tallyOf(5_000, 0),
      ...tally,
      tokens: { read: 5_000, written: 0, output: 0 },
      folded: 5_000,
    };
    const plays = [
      whole({ ...tallyOf(0, 0), ...tally }),
      { policy: 'own', tally: own, contexts: [], careless: undefined },
    ];
    const [source] = figuresOf([{ id: 'one', source: 'a', plays }], {
      cached: { read: 0.1, write: 1, output: 5 },
    });
    const [none, breakEven] = source!.policies.map((figures) => figures.breakEven);
    expect(none).toBeUndefined();
    expect(breakEven).toEqual({
      tokensFolded: 5_000,
      recalls: 0,
      // 500 of 1,000 are saved in 10 requests of 50. At 66 % a request costs 120.6 more, with and without folds.
      atStaticShare: {
        '0.25': { cached: 2 },
        '0.66': { cached: expect.closeTo(500 / 170.59 / 5, 3) as number },
      },
    });
  });

  it('returns no figures without conversations', () => {
    expect(figuresOf([], {})).toEqual([]);
  });
});
