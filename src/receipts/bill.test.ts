import { expect, it } from 'vitest';
import { addedBill, billOf } from './cost.ts';

const price = { input: 10, cacheRead: 1, cacheWrite: 12.5, cacheWriteLong: 20, output: 50 };

it('takes each token at its own price', () => {
  const usage = { input: 100_000, cacheRead: 60_000, cacheWrite: 30_000, output: 2_000 };
  expect(billOf(() => price, usage)).toEqual({
    uncached: 0.1,
    cacheRead: 0.06,
    cacheWrite: 0.375,
    output: 0.1,
    total: 0.635,
  });
});

it('takes more for what is kept longer, where that is known to cost more', () => {
  const usage = { input: 30_000, cacheRead: 0, cacheWrite: 30_000, cacheWriteLong: 10_000, output: 0 };
  const { cacheWriteLong: _, ...plain } = price;
  expect([price, plain].map((one) => billOf(() => one, usage)?.cacheWrite)).toEqual([0.45, 0.375]);
});

it('asks for the price of a prompt of that length, and has no bill where there is none', () => {
  const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 0 };
  const tiered = (tokens: number) => (tokens > 1_000 ? undefined : price);
  expect(billOf(tiered, usage)?.total).toBe(0.01);
  expect(billOf(tiered, { ...usage, input: 1_001 })).toBeUndefined();
});

it('takes nothing for less than no tokens, where a provider counts its cache beside the prompt', () => {
  const usage = { input: 1_000, cacheRead: 2_000, cacheWrite: 0, output: 0 };
  expect(billOf(() => price, usage)).toEqual({
    uncached: 0,
    cacheRead: 0.002,
    cacheWrite: 0,
    output: 0,
    total: 0.002,
  });
});

it('adds up without rounding noise', () => {
  const tenth = { uncached: 0.1, cacheRead: 0.1, cacheWrite: 0.1, output: 0.1, total: 0.4 };
  const fifth = { uncached: 0.2, cacheRead: 0.2, cacheWrite: 0.2, output: 0.2, total: 0.8 };
  expect(addedBill(tenth, fifth)).toEqual({
    uncached: 0.3,
    cacheRead: 0.3,
    cacheWrite: 0.3,
    output: 0.3,
    total: 1.2,
  });
});
