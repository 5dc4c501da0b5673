import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { estimateFrom } from './token-counter.ts';
import { loadExactCounter } from './load-counter.ts';

const base = await loadExactCounter('o200k_base');

describe('estimateFrom', () => {
  it('multiplies and rounds up, and never claims to be exact', () => {
    const counter = estimateFrom(base, { factor: 1.18 });
    const text = 'Keep every page, and find it again.';
    expect({
      base: base.count(text),
      count: counter.count(text),
      name: counter.name,
      exact: counter.exact,
    }).toEqual({
      base: 9,
      count: 11,
      name: 'o200k_base x 1.18',
      exact: false,
    });
  });

  it('counts every digit when the vocabulary splits them', () => {
    const counter = estimateFrom(base, { factor: 1, splitDigits: true });
    expect(
      ['1', '12', '123', '1234', '12 34', 'a1b22c333'].map((text) => counter.count(text) - base.count(text)),
    ).toEqual([0, 1, 2, 2, 2, 3]);
    expect(counter.name).toBe('o200k_base + digits x 1');
  });

  it('keeps the images and overheads of its base unless it is given others', () => {
    expect(estimateFrom(base, { factor: 2 }).image({ width: 512, height: 512 })).toBe(255);
    const costs = {
      image: { rule: 'flat', tokens: 9 },
      overhead: { message: 1, tool: 1, request: 1 },
    } as const;
    const counter = estimateFrom(base, { factor: 2 }, costs);
    expect([counter.image(undefined), counter.overhead]).toEqual([9, { message: 1, tool: 1, request: 1 }]);
  });

  it('grows with the text by whole lines', () => {
    const counter = estimateFrom(base, { factor: 1.04, splitDigits: true });
    fc.assert(
      fc.property(fc.string(), fc.string(), (left, right) => {
        expect(counter.count(`${left}\n\n${right}`)).toBeGreaterThanOrEqual(counter.count(right));
      }),
    );
  });
});
