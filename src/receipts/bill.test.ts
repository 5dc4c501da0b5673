import { expect, it } from 'vitest';
import { addedBill, billOf } from './cost.ts';

const price = { input: 10, cacheRead: 1, cacheWrite: 12.5, cacheWriteLong: 20, output: 50 };

it('prices each kind of token', () => {
  const usage = { input: 100_000, cacheRead: 60_000, cacheWrite: 30_000, output: 2_000 };
  expect(billOf(() => price, usage)).toEqual({
    uncached: 0.1,
    cacheRead: 0.06,
    cacheWrite: 0.375,
    output: 0.1,
    total: 0.635,
  });
});

it('prices longer cache writes higher if their price is known', () => {
  const usage = { input: 30_000, cacheRead: 0, cacheWrite: 30_000, cacheWriteLong: 10_000, output: 0 };
  const { cacheWriteLong: _, ...plain } = price;
  expect([price, plain].map((one) => billOf(() => one, usage)?.cacheWrite)).toEqual([0.45, 0.375]);
});

it("uses the price for the prompt's length, and returns no bill without one", () => {
  const usage = { input: 1_000, cacheRead: 0, cacheWrite: 0, output: 0 };
  const tiered = (tokens: number) => (tokens > 1_000 ? undefined : price);
  expect(billOf(tiered, usage)?.total).toBe(0.01);
  expect(billOf(tiered, { ...usage, input: 1_001 })).toBeUndefined();
});

it('never prices negative tokens, for a provider that counts its cache apart from the prompt', () => {
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
