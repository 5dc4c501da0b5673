import { describe, expect, it } from 'vitest';
import { createModelFacts, createPriceList, type PriceCatalog } from './model-facts.ts';

const rates: Readonly<
  Record<string, Record<string, number | { base: number; tiers: { start: number; price: number }[] }>>
> = {
  plain: { input_mtok: 2, output_mtok: 8 },
  caching: { input_mtok: 5, output_mtok: 25, cache_read_mtok: 0.5, cache_write_mtok: 6.25 },
  keeping: {
    input_mtok: 5,
    output_mtok: 25,
    cache_read_mtok: 0.5,
    cache_write_mtok: 6.25,
    cache_write_1h_mtok: 10,
  },
  tiered: {
    input_mtok: {
      base: 1,
      tiers: [
        { start: 500, price: 4 },
        { start: 100, price: 2 },
      ],
    },
    output_mtok: 10,
  },
  embedding: { input_mtok: 0.1 },
};

const catalog: PriceCatalog = {
  ratesOf: (model) => rates[model],
  pick: (model, table) => table[model],
};

describe('createPriceList', () => {
  it('returns listed prices', () => {
    expect(createPriceList(catalog).priceOf('caching')).toEqual({
      input: 5,
      cacheRead: 0.5,
      cacheWrite: 6.25,
      output: 25,
    });
  });

  it('uses the input price if no cache price is listed', () => {
    expect(createPriceList(catalog).priceOf('plain')).toEqual({
      input: 2,
      cacheRead: 2,
      cacheWrite: 2,
      output: 8,
    });
  });

  it('returns the price of longer cache writes if it is listed or configured', () => {
    const list = createPriceList(catalog, { plain: { cacheWriteLong: 4 } });
    expect([list.priceOf('keeping'), list.priceOf('plain')]).toEqual([
      { input: 5, cacheRead: 0.5, cacheWrite: 6.25, cacheWriteLong: 10, output: 25 },
      { input: 2, cacheRead: 2, cacheWrite: 2, cacheWriteLong: 4, output: 8 },
    ]);
  });

  it('uses the tier of the prompt length', () => {
    const list = createPriceList(catalog);
    expect([0, 100, 101, 500, 501].map((tokens) => list.priceOf('tiered', tokens)?.input)).toEqual([
      1, 1, 2, 2, 4,
    ]);
  });

  it('asks the catalog once for each model, and for a name that is too long each time', () => {
    const asked: string[] = [];
    const list = createPriceList({
      ...catalog,
      ratesOf(model) {
        asked.push(model.slice(0, 10));
        return catalog.ratesOf(model);
      },
    });
    const long = 'x'.repeat(1_000);
    for (const model of ['tiered', 'unknown', long]) {
      list.priceOf(model, 0);
      list.priceOf(model, 101);
    }
    expect(asked).toEqual(['tiered', 'unknown', 'xxxxxxxxxx', 'xxxxxxxxxx']);
  });

  it('has no price for unknown models, for no model and for half a list', () => {
    const list = createPriceList(catalog);
    expect([list.priceOf('unknown'), list.priceOf(undefined), list.priceOf('embedding')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('prefers each price of the user', () => {
    const list = createPriceList(catalog, {
      caching: { cacheRead: 0.1 },
      unknown: { input: 1, output: 4 },
      plain: { input: 0, output: 0 },
    });
    expect([list.priceOf('caching'), list.priceOf('unknown'), list.priceOf('plain')]).toEqual([
      { input: 5, cacheRead: 0.1, cacheWrite: 6.25, output: 25 },
      { input: 1, cacheRead: 1, cacheWrite: 1, output: 4 },
      { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 },
    ]);
  });
});

describe('createModelFacts', () => {
  it('has no rates for a model that costs nothing, because they are relative to its input', async () => {
    const { pricesFor } = createModelFacts(
      {},
      { free: { input: 0, output: 0 }, own: { input: 2, output: 8 } },
    );
    expect([await pricesFor('free', 1_000), await pricesFor('own', 1_000)]).toMatchObject([
      undefined,
      { read: 1, write: 1 },
    ]);
  });
});
