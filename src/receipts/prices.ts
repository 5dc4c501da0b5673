/**
 * Adds and compares the token usage of model calls, and finds the prices of models: in the user's settings, else in a catalog.
 * Pure: the catalog is passed in (tokens/catalog.ts loads it), since loading takes time and modules of one layer do not import
 * each other.
 */
import { openFixed } from '../caches.ts';
import type { Usage } from '../conversation/conversation.ts';

/** Returns the tokens that a provider reported for the sent prompt; undefined if its report includes other tokens. */
export function sentPromptOf({ input, sentPrompt = input }: Usage): number | undefined {
  return sentPrompt === 'unknown' ? undefined : sentPrompt;
}

export const noUsage: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };

export function addedUsage(one: Usage, other: Usage): Usage {
  return combined(one, other, (a, b) => a + b);
}

/** Returns the usage without `sentPrompt`, which only concerns rounds within one call. */
export function plainUsage(usage: Usage): Usage {
  return addedUsage(noUsage, usage);
}

/** Returns the difference of a running total and its `earlier` value. */
export function usageSince(earlier: Usage, total: Usage): Usage {
  return combined(total, earlier, (a, b) => a - b);
}

function combined(one: Usage, other: Usage, combine: (a: number, b: number) => number): Usage {
  const long = combine(one.cacheWriteLong ?? 0, other.cacheWriteLong ?? 0);
  return {
    input: combine(one.input, other.input),
    cacheRead: combine(one.cacheRead, other.cacheRead),
    cacheWrite: combine(one.cacheWrite, other.cacheWrite),
    ...(long === 0 ? {} : { cacheWriteLong: long }),
    output: combine(one.output, other.output),
  };
}

// Prices of models

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
  ratesOf(model: string): ModelRates | undefined;
  pick<T>(model: string, table: Readonly<Record<string, T>>): T | undefined;
}

/** Rates by the name that the catalog gives to them. */
type ModelRates = Readonly<Record<string, PriceRate | undefined>>;

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
  const known = openFixed<string, ModelPrices>('model prices');
  /** Asks the catalog once for each model, except for names that are too long to remember. */
  const pricesOf = (model: string): ModelPrices => {
    const before = known.get(model);
    if (before !== undefined) return before;
    const found = { rates: catalog.ratesOf(model), ownPrices: catalog.pick(model, overrides) };
    if (model.length <= maxRememberedName) known.set(model, found);
    return found;
  };
  return {
    priceOf(model, promptTokens = 0) {
      if (model === undefined) return undefined;
      const { rates, ownPrices } = pricesOf(model);
      const listed = (key: string): number | undefined => rateFor(rates?.[key], promptTokens);
      const input = ownPrices?.input ?? listed('input_mtok');
      const output = ownPrices?.output ?? listed('output_mtok');
      if (input === undefined || output === undefined) return undefined;
      const cacheRead = ownPrices?.cacheRead ?? listed('cache_read_mtok') ?? input;
      const cacheWrite = ownPrices?.cacheWrite ?? listed('cache_write_mtok') ?? input;
      const cacheWriteLong = ownPrices?.cacheWriteLong ?? listed('cache_write_1h_mtok');
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

/** UTF-16 units of the longest name that is remembered: clients choose the names of models. */
const maxRememberedName = 200;

/** The rates of a model in the catalog, and its prices that the user set. */
type ModelPrices = { readonly rates: ModelRates | undefined; readonly ownPrices: Partial<Price> | undefined };

/** One object for all price lists, because look-ups are remembered by the table's identity. */
const noOverrides: PriceOverrides = {};

function rateFor(rate: PriceRate | undefined, promptTokens: number): number | undefined {
  if (rate === undefined || typeof rate === 'number') return rate;
  const passed = rate.tiers.filter(({ start }) => promptTokens > start).sort((a, b) => b.start - a.start);
  return passed[0]?.price ?? rate.base;
}
