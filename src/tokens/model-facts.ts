/**
 * Looks up facts of models: how their tokens are counted, their windows, and their prices. Each is taken from the user's settings, else from the
 * catalog.
 */
import { openFixed } from '../caches.ts';
import { type ModelCatalog, type Rate, type Rates, loadCatalog } from './catalog.ts';
import { loadTokenCounter } from './load-counter.ts';
import { FALLBACK_WINDOW, type ModelOverrides, loadModelInfo } from './models.ts';
import type { TokenCounter } from './token-counter.ts';

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

export interface PriceList {
  /**
   * Returns the prices for one request; undefined if unknown. Some models cost more for a long prompt: `promptTokens` (cached tokens
   * included) picks the tier.
   */
  priceOf(model: string | undefined, promptTokens?: number): Price | undefined;
}

/** The part of the catalog that prices need. */
export type PriceCatalog = Pick<ModelCatalog, 'ratesOf' | 'pick'>;

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

/** Loads the price list. Never rejects: without the catalog all prices are unknown. */
export type Prices = () => Promise<PriceList>;

/** Returns the prices of the catalog with overrides. The catalog takes a moment to load, so it is loaded with the first request. */
export function pricesFrom(overrides: PriceOverrides | undefined): Prices {
  let list: PriceList | undefined;
  return async function prices() {
    try {
      return (list ??= createPriceList(await loadCatalog(), overrides));
    } catch {
      return { priceOf: () => undefined };
    }
  };
}

/** UTF-16 units of the longest name that is remembered: clients choose the names of models. */
const maxRememberedName = 200;

/** The rates of a model in the catalog, and its prices that the user set. */
type ModelPrices = { readonly rates: Rates | undefined; readonly ownPrices: Partial<Price> | undefined };

/** One object for all price lists, because look-ups are remembered by the table's identity. */
const noOverrides: PriceOverrides = {};

function rateFor(rate: Rate | undefined, promptTokens: number): number | undefined {
  if (rate === undefined || typeof rate === 'number') return rate;
  const passed = rate.tiers.filter(({ start }) => promptTokens > start).sort((a, b) => b.start - a.start);
  return passed[0]?.price ?? rate.base;
}

// The facts of a model that the engine asks for: how its tokens are counted, its window, and the prices of prompt tokens

type ModelFacts = {
  readonly counter: TokenCounter;
  readonly window: {
    /** Tokens of the window. */
    readonly tokens: number;
    /** True when the reply counts against the same window. */
    readonly holdsReply: boolean;
  };
  /** Returns the prices for a prompt of so many tokens, relative to a token that is not cached; undefined if unknown. */
  readonly pricesAt: (promptTokens: number) => RelativePrices | undefined;
};

type RelativePrices = {
  readonly read: number;
  readonly write: number;
  readonly writeLong: number | undefined;
  readonly keptMs: number | undefined;
  readonly minCachedTokens: number | undefined;
};

/** Returns functions that look facts up. Each model is looked up once, because its name is compared with a dozen tables of patterns. */
export function createModelFacts(models: ModelOverrides = {}, overrides?: PriceOverrides) {
  const cached = openFixed<string, Promise<ModelFacts>>('model facts');
  let prices: PriceList | undefined;

  async function loadFacts(model: string | undefined): Promise<ModelFacts> {
    const [info, counter, catalog] = await Promise.all([
      loadModelInfo(model, models),
      loadTokenCounter(model, models),
      loadCatalog(),
    ]);
    const { window, maxInput, cacheKeptMs: keptMs, minCachedTokens } = info;
    const list = (prices ??= createPriceList(catalog, overrides));
    return {
      window: { tokens: maxInput ?? window ?? FALLBACK_WINDOW, holdsReply: maxInput === undefined },
      counter,
      pricesAt(promptTokens) {
        const price = list.priceOf(model, promptTokens);
        // Rates are relative to the price of input, so a model without one has none.
        if (!price || price.input <= 0) return undefined;
        const { input, cacheRead, cacheWrite, cacheWriteLong } = price;
        return {
          read: cacheRead / input,
          write: cacheWrite / input,
          writeLong: cacheWriteLong === undefined ? undefined : cacheWriteLong / input,
          keptMs,
          minCachedTokens,
        };
      },
    };
  }

  function factsFor(model: string | undefined): Promise<ModelFacts> {
    // A client may send a name of any length, so it is cut.
    const name = (model ?? '').slice(0, maxRememberedName);
    const known = cached.get(name);
    if (known) return known;
    const facts = loadFacts(model);
    cached.set(name, facts);
    facts.catch(() => cached.delete(name));
    return facts;
  }

  return {
    counterFor: async (model: string | undefined) => (await factsFor(model)).counter,
    windowFor: async (model: string | undefined) => (await factsFor(model)).window,
    pricesFor: async (model: string | undefined, promptTokens: number) =>
      (await factsFor(model)).pricesAt(promptTokens),
  };
}
