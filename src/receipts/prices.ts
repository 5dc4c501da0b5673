/**
 * What a model's tokens cost, from a price catalogue and the user's own figures. Pure: the catalogue is passed in (see
 * tokens/catalog.ts), since loading it takes time and rooms of one floor do not know each other.
 */

/** USD per million tokens. A provider that does not cache takes `input` for all three. */
export type Price = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Written to be kept longer than usual (an hour), where that costs more. Left out, it costs what `cacheWrite` does. */
  readonly cacheWriteLong?: number;
  readonly output: number;
};

/** By exact model name or `*` glob. What is left out stays as listed; unlisted models need `input` and `output`. */
export type PriceOverrides = Readonly<Record<string, Partial<Price>>>;

/** The part of a model catalogue that prices need. */
export interface PriceCatalog {
  ratesOf(model: string): Readonly<Record<string, PriceRate | undefined>> | undefined;
  pick<T>(model: string, table: Readonly<Record<string, T>>): T | undefined;
}

export type PriceRate =
  | number
  | {
      readonly base: number;
      readonly tiers: readonly { readonly start: number; readonly price: number }[];
    };

export interface PriceList {
  /**
   * Prices for one request; undefined when unknown. Some models cost more for a long prompt: `promptTokens` (all of it,
   * cached parts too) picks the tier.
   */
  priceOf(model: string | undefined, promptTokens?: number): Price | undefined;
}

/**
 * @example
 * const prices = createPriceList(await loadCatalog(), { 'my-model': { input: 1, output: 4 } });
 * prices.priceOf('my-model'); // { input: 1, cacheRead: 1, cacheWrite: 1, output: 4 }
 */
export function createPriceList(catalog: PriceCatalog, overrides: PriceOverrides = {}): PriceList {
  return {
    priceOf(model, promptTokens = 0) {
      if (model === undefined) return undefined;
      const rates = catalog.ratesOf(model);
      const listed = (key: string): number | undefined => rateFor(rates?.[key], promptTokens);
      const said = catalog.pick(model, overrides);
      const input = said?.input ?? listed('input_mtok');
      const output = said?.output ?? listed('output_mtok');
      if (input === undefined || output === undefined) return undefined;
      const cacheRead = said?.cacheRead ?? listed('cache_read_mtok') ?? input;
      const cacheWrite = said?.cacheWrite ?? listed('cache_write_mtok') ?? input;
      const cacheWriteLong = said?.cacheWriteLong ?? listed('cache_write_1h_mtok');
      return {
        input,
        cacheRead,
        cacheWrite,
        ...(cacheWriteLong === undefined ? {} : { cacheWriteLong }),
        output,
      };
    },
  };
}

function rateFor(rate: PriceRate | undefined, promptTokens: number): number | undefined {
  if (rate === undefined || typeof rate === 'number') return rate;
  const passed = rate.tiers.filter(({ start }) => promptTokens > start).sort((a, b) => b.start - a.start);
  return passed[0]?.price ?? rate.base;
}
