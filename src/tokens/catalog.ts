/**
 * Looks up windows and price lists of models in the maintained package `@pydantic/genai-prices` with its bundled data; nothing is
 * fetched. Importing it takes about 30 ms, so it is imported on first use. `model-names.ts` says which names a model may have,
 * `receipts/prices.ts` uses the prices.
 */
import type * as genaiPrices from '@pydantic/genai-prices';
import { LRUCache } from 'lru-cache';
import { bestMatch, namesOf } from './model-names.ts';

type PricesPackage = typeof genaiPrices;

/** USD per million tokens; or by prompt size: `base`, and the price of the last tier whose `start` (tokens) is passed. */
export type Rate =
  | number
  | {
      readonly base: number;
      readonly tiers: readonly { readonly start: number; readonly price: number }[];
    };

/** Keys are the package's: `input_mtok`, `output_mtok`, `cache_read_mtok`, `cache_write_mtok` and more. */
export type Rates = Readonly<Record<string, Rate | undefined>>;

export interface ModelCatalog {
  /** Returns the tokens of prompt and reply together. */
  windowOf(model: string): number | undefined;
  /** Returns the prices at the moment of the first look-up; lists change with the date, and some with the hour. */
  ratesOf(model: string): Rates | undefined;
  /** Returns the best matching entry of a table keyed by model patterns. */
  pick<T>(model: string, table: Readonly<Record<string, T>>): T | undefined;
}

let loading: Promise<ModelCatalog> | undefined;

/** Loads the catalog once per process. A load that failed is tried again. */
export function loadCatalog(): Promise<ModelCatalog> {
  loading ??= import('@pydantic/genai-prices').then(createCatalog);
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
}

type Entry = { readonly window: number | undefined; readonly rates: Rates | undefined };

const nothing: Entry = { window: undefined, rates: undefined };

function createCatalog(prices: PricesPackage): ModelCatalog {
  const entries = new LRUCache<string, Entry>({ max: 1_000 });
  const entryOf = (model: string): Entry => {
    const known = entries.get(model);
    if (known !== undefined) return known;
    const names = namesOf(model);
    const entry = names.length === 0 ? nothing : findEntry(prices, names);
    if (names.length > 0) entries.set(model, entry);
    return entry;
  };
  return {
    windowOf: (model) => entryOf(model).window,
    ratesOf: (model) => entryOf(model).rates,
    pick: bestMatch,
  };
}

/** Returns the first listing with a window and the first with prices; a listing often lacks one of them. */
function findEntry(prices: PricesPackage, names: readonly string[]): Entry {
  let entry = nothing;
  for (const { name, provider } of listings(prices, names)) {
    const found = lookUp(prices, name, provider);
    if (found === undefined) continue;
    entry = { window: entry.window ?? found.window, rates: entry.rates ?? found.rates };
    if (entry.window !== undefined && entry.rates !== undefined) return entry;
  }
  // At last, the same model of any vendor: a good guess at the window, but not at this provider's price.
  return entry.window === undefined ? { ...entry, window: windowAnywhere(prices, names) } : entry;
}

/** Yields where to look, the best first: the provider the name begins with, the maker of the model, the broker that lists most. */
function* listings(prices: PricesPackage, names: readonly string[]) {
  for (const name of names) {
    const [vendor = '', ...rest] = name.split('/');
    if (rest.length > 0 && prices.findProvider({ providerId: vendor }) !== undefined) {
      yield { name: rest.join('/'), provider: vendor };
    }
    yield { name, provider: undefined };
  }
  for (const name of names) yield { name, provider: BROKER };
}

const BROKER = 'openrouter';

function lookUp(prices: PricesPackage, name: string, provider: string | undefined): Entry | undefined {
  const found = prices.calcPrice({}, name, provider === undefined ? {} : { providerId: provider });
  if (found === null) return undefined;
  return { window: found.model.context_window, rates: found.model_price };
}

function windowAnywhere(prices: PricesPackage, names: readonly string[]): number | undefined {
  const models = prices.findProvider({ providerId: BROKER })?.models ?? [];
  const same = models.find(({ id }) => names.includes(id.slice(id.indexOf('/') + 1)));
  return same?.context_window;
}
