import { describe, expect, it } from 'vitest';
import { ratioFor, varietyOf } from './levels.ts';

const log = Array.from({ length: 50 }, (_, at) => `12:00:${at} GET /health 200 in ${at} ms`).join('\n');
const prose =
  'The token had expired because the clock of the test was frozen in March. Two callers relied on that, one of them by ' +
  'accident; the other compares dates as text, which works until the year has five digits.';

describe('variety', () => {
  it('is low if lines repeat except for numbers, high if they do not, and 1 for too little text', () => {
    expect(varietyOf([log])).toBeCloseTo(0.02, 1);
    expect(varietyOf([prose])).toBe(1);
    expect(varietyOf(['', 'two words'])).toBe(1);
  });

  it('is low if steps repeat each other', () => {
    expect(varietyOf([prose, prose, prose, prose])).toBe(0.25);
  });
});

describe('the ratio', () => {
  it('is the requested one, or follows the variety of the text', () => {
    const of = (ratio: number | 'adaptive', minRatio = 5) => ({ ratio, minRatio, maxRatio: 15 });
    expect(ratioFor(of(10), [log])).toBe(10);
    expect(ratioFor(of(3), [log])).toBe(5);
    expect(ratioFor(of('adaptive', 8), [prose])).toBe(8);
    expect(ratioFor(of('adaptive'), [log])).toBe(15);
    expect(ratioFor(of('adaptive'), [prose])).toBe(5);
    expect(ratioFor(of('adaptive'), [prose, prose])).toBeCloseTo(11);
  });
});
