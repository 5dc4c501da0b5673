/**
 * Looks up windows and price lists of models in the maintained package `@pydantic/genai-prices` with its bundled data; nothing is
 * fetched. Importing it takes about 30 ms, so it is imported on first use. `namesOf` says which names a model may have,
 * `model-facts.ts` uses the prices.
 */
import type * as genaiPrices from '@pydantic/genai-prices';
import { openFixed, type Cache } from '../caches.ts';

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
  const entries = openFixed<string, Entry>('catalog entries');
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

// Names of models. Gateways prepend vendors and regions and append dates and variants; a table keyed by name patterns should not have
// to list them all.

/** Longer names are not looked up, because the client chooses their length. */
const MAX_NAME_LENGTH = 200;

/**
 * Returns the names a model may be listed under, the full name first, in lower case: `vendor/model-4:free` is also `model-4`, and
 * `eu.vendor.model-4-20250514-v1:0` is also `model-4-20250514`.
 */
export function namesOf(model: string): readonly string[] {
  const name = nameOf(model);
  if (name === undefined) return [];
  const names = [name];
  for (const other of shorterNames(name)) if (other !== '' && !names.includes(other)) names.push(other);
  return names;
}

/** Returns the first of these names; undefined for anything that is no name. */
export function nameOf(model: string): string | undefined {
  const name = model.trim().toLowerCase();
  return name === '' || name.length > MAX_NAME_LENGTH ? undefined : name;
}

function* shorterNames(name: string): Generator<string> {
  const plain = name.replace(/\[[^\]]*\]$/, '');
  const path = plain.split('/');
  for (let from = 0; from < path.length; from++) {
    const rest = path.slice(from).join('/');
    yield rest;
    const bare = rest
      .replace(/^ft:([^:]+):.*$/, '$1')
      .replace(/^(?:[a-z-]+\.)*(?=[a-z])/, '')
      .replace(/-v\d+(?::\d+)?$/, '')
      .replace(/:[a-z-]+$/, '');
    yield bare;
    yield bare.replace('@', '-');
  }
}

/**
 * Returns the value of the pattern that fits the model best: an exact name before any `*` glob, then the longest glob, the first
 * of equals. Patterns are compared in lower case with every spelling of the name. Undefined when nothing fits; `*` fits
 * everything, even what is no name. Remembered for each table, which must not change: every request asks the same again.
 */
export function bestMatch<T>(model: string, table: Readonly<Record<string, T>>): T | undefined {
  const known = matchesOf(table);
  // A name that is too long is looked up as none, so that no client fills the memory.
  const name = model.length > MAX_NAME_LENGTH ? '' : model;
  let found = known.get(name);
  if (found === undefined) known.set(name, (found = { pattern: bestPattern(name, Object.keys(table)) }));
  return found.pattern === undefined ? undefined : table[found.pattern];
}

type PatternFit = { readonly pattern: string | undefined };

const matches = new WeakMap<object, Cache<string, PatternFit>>();

function matchesOf(table: object): Cache<string, PatternFit> {
  const known = matches.get(table) ?? openFixed<string, PatternFit>('pattern fits');
  matches.set(table, known);
  return known;
}

function bestPattern(model: string, patterns: readonly string[]): string | undefined {
  const named = namesOf(model);
  const names = named.length > 0 ? named : [''];
  let best: { readonly weight: number; readonly pattern: string } | undefined;
  for (const pattern of patterns) {
    const weight = pattern.includes('*') ? pattern.length : Number.POSITIVE_INFINITY;
    if (best !== undefined && best.weight >= weight) continue;
    const isMatch = matcherOf(pattern.toLowerCase());
    if (names.some(isMatch)) best = { weight, pattern };
  }
  return best?.pattern;
}

function matcherOf(pattern: string): (name: string) => boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return (name) => name === head;
  return (name) => {
    if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length)
      return false;
    let at = head.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return at <= name.length - tail.length;
  };
}
