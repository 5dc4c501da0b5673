/**
 * Looks up what a model's tokens cost, in a price catalog and the user's own prices. Pure: the catalog is passed in (tokens/catalog.ts
 * loads it), since loading takes time and modules of one layer do not import each other.
 */

/** USD per million tokens. For a provider without a cache, all three input prices equal `input`. */
export type Price = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Price of cache writes with a longer lifetime (an hour), if it differs. Default: `cacheWrite`. */
  readonly cacheWriteLong?: number;
  readonly output: number;
};

/** Prices by exact model name or `*` glob. Omitted prices are those of the catalog; models outside of it need `input` and `output`. */
export type PriceOverrides = Readonly<Record<string, Partial<Price>>>;

/** The part of a model catalog that prices need. */
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
   * Returns the prices for one request; undefined if unknown. Some models cost more for a long prompt: `promptTokens` (cached tokens
   * included) picks the tier.
   */
  priceOf(model: string | undefined, promptTokens?: number): Price | undefined;
}

/**
 * Creates a price list.
 *
 * @example
 * const prices = createPriceList(await loadCatalog(), { 'my-model': { input: 1, output: 4 } });
 * prices.priceOf('my-model'); // { input: 1, cacheRead: 1, cacheWrite: 1, output: 4 }
 */
export function createPriceList(catalog: PriceCatalog, overrides: PriceOverrides = noOverrides): PriceList {
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

/** One object for all lists, because look-ups are remembered by table. */
const noOverrides: PriceOverrides = {};

function rateFor(rate: PriceRate | undefined, promptTokens: number): number | undefined {
  if (rate === undefined || typeof rate === 'number') return rate;
  const passed = rate.tiers.filter(({ start }) => promptTokens > start).sort((a, b) => b.start - a.start);
  return passed[0]?.price ?? rate.base;
}
