/**
 * Lists everything that is kept in memory between requests, and divides one budget among the large caches. A cache only saves work: an entry
 * that was dropped is read from the store or computed again. `docs/memory.md` shows these lists; a test compares them.
 */
import { LRUCache } from 'lru-cache';

/** Caches that share the budget. `share`: thousandths of it. `entryBytes`: bytes of an entry, without those that its owner counts. */
export const cacheSpecs = {
  'seen bodies': {
    share: 300,
    entryBytes: 500,
    holds:
      'Bodies as they were read. A body that continues one is read and written only from its new bytes on.',
  },
  'read blocks': { share: 210, entryBytes: 500, holds: 'The parts of messages, by digest.' },
  folds: { share: 90, entryBytes: 300, holds: 'Folds and records of sent requests, by prefix hash.' },
  'stored recalls': { share: 60, entryBytes: 300, holds: 'Hidden recalls that were read from the store.' },
  'own recalls': { share: 60, entryBytes: 300, holds: 'Hidden recalls that this process made.' },
  'line references': {
    share: 100,
    entryBytes: 200,
    holds: 'Lines of tool results, to find those that repeat.',
  },
  'last requests': {
    share: 50,
    entryBytes: 400,
    holds: 'Digests of the messages that were sent last, by conversation.',
  },
  'token counts': { share: 40, entryBytes: 200, holds: 'Tokens of messages, by digest.' },
  'fresh records': { share: 30, entryBytes: 160, holds: 'When records of the store were renewed.' },
  'replies without recalls': {
    share: 20,
    entryBytes: 150,
    holds: 'Prefixes that are known to have no hidden recall.',
  },
  'kept replies': { share: 20, entryBytes: 400, holds: 'Replies that the provider keeps, by name.' },
  'earlier requests': {
    share: 10,
    entryBytes: 500,
    holds: 'Usage of earlier requests, by their last message, for the cost report.',
  },
  'first requests': {
    share: 10,
    entryBytes: 500,
    holds: 'Usage of earlier requests, by the beginning of the conversation, for the cost report.',
  },
} as const;

export type CacheName = keyof typeof cacheSpecs;

/** Opens caches under one budget. `bytesOf` returns the bytes of an entry in addition to `entryBytes`. */
export type Caches = <V extends Cacheable>(
  name: CacheName,
  bytesOf?: (value: V, key: string) => number,
) => Cache<string, V>;

type Cacheable = string | number | object;

/** A map that drops the least recently used entries. */
export type Cache<K extends Cacheable, V extends Cacheable> = LRUCache<K, V>;

/** The default budget of one engine, in megabytes. */
export const engineCacheMb = 256;

/** The smallest budget that settings may set, in megabytes. */
export const minCacheMb = 16;

/** A gateway with a smaller budget has one engine and keeps less garbage, in megabytes. */
export const smallCacheMb = 256;

/**
 * Returns a function that opens the caches of one engine. `megabytes` is their budget in 10^6 bytes; sizes of entries are estimates. A name
 * that is opened twice gets its share twice.
 */
export function createCaches(megabytes: number = engineCacheMb): Caches {
  return function open<V extends Cacheable>(
    name: CacheName,
    bytesOf: (value: V, key: string) => number = () => 0,
  ) {
    const { share, entryBytes } = cacheSpecs[name];
    return new LRUCache<string, V>({
      maxSize: Math.ceil(megabytes * 1_000 * share),
      sizeCalculation: (value, key) => entryBytes + Math.ceil(bytesOf(value, key)),
    });
  };
}

/** All other caches. Their number of entries, or of UTF-16 units, is fixed, because they are small or serve the whole process. */
export const fixedSpecs = {
  'model facts': { max: 500, holds: 'Windows, prices and token counters, by model.' },
  'model prices': { max: 500, holds: 'Rates of the price catalog and of the settings, by model.' },
  'catalog entries': { max: 1_000, holds: 'Entries of the price catalog, by model.' },
  'pattern fits': { max: 200, holds: 'The entry of a table of settings that fits a model.' },
  'token counters': { max: 200, holds: 'Token counters, by model.' },
  'short texts': {
    maxUnits: 5_000_000,
    holds: 'Tokens of stubs and other texts of up to 4,000 characters, by counter.',
  },
  'long text counts': {
    maxUnits: 16_000_000,
    holds: 'Tokens of texts above 16 kB, by counter: those of one large request.',
  },
  'newest texts': { maxUnits: 1_000_000, holds: 'Decoded texts up to 64 kB: those of the newest request.' },
  'long texts': { maxUnits: 16_000_000, holds: 'Decoded texts above 64 kB: those of one large request.' },
  'lines of folds': {
    maxUnits: 500_000,
    holds: 'Hashes of the lines of folded conversations, to recognize results that were fetched again.',
  },
  'asynchronous counts': {
    maxUnits: 16_000_000,
    holds: 'Tokens that an asynchronous counter returned, by text.',
  },
  'record texts': { max: 128, holds: 'Tokens of the records of sub-goals.' },
  'tenant keys': { max: 1_000, holds: 'Encryption keys, by tenant.' },
  'calibrated models': { max: 500, holds: 'The ratio of reported to counted tokens, by tenant and model.' },
  'calibrated conversations': {
    max: 5_000,
    holds: 'The ratio of reported to counted tokens, by conversation.',
  },
  'learned windows': { max: 1_000, holds: 'Windows that providers named when they refused a request.' },
  'summaries ahead': { max: 2_000, holds: 'Summaries that were written ahead.' },
  'texts ahead': { maxUnits: 4_000_000, holds: 'Texts of items and records that were written ahead.' },
  'plans ahead': {
    max: 5_000,
    holds: 'The length of a conversation when texts for its next fold were last looked for.',
  },
  'summary leases': { max: 10_000, holds: 'The time until which another process may write a summary.' },
  'summary notes': { max: 2_000, holds: 'Why a summary is missing, for receipts.' },
  'transient records': {
    max: 30_000,
    holds: 'Records of requests without a fold, for the other engines of the process.',
  },
  'request lines': { max: 500, holds: 'Routes of requests, by method and target.' },
  'host names': { max: 100, holds: 'Host names of configured URLs.' },
  controls: { max: 1_000, holds: 'Pinned tools and conversations whose folds were undone, by tenant.' },
  'blocks of experiments': {
    max: 64,
    holds: 'Blocks of the records of experiments that were changed or looked up last, 32 records each.',
  },
  'journals of experiments': {
    max: 1_000,
    holds: 'The place of each record of experiments that this process writes or has found, by tenant.',
  },
  'rests of shadows': {
    max: 5_000,
    holds: 'When requests of a tenant may be sent again after a rate limit.',
  },
  'bills of shadows': { max: 5_000, holds: 'What requests cost, and what their repetition cost, by tenant.' },
  'holds of shadows': { max: 5_000, holds: 'Strategies that make no new fold for a week, by tenant.' },
  receipts: { max: 2_000, holds: 'The newest receipts.' },
  totals: { max: 5_000, holds: 'Sums for the cost report: one table each for tenants, models and sessions.' },
  'prepared requests': {
    maxUnits: 268_435_456,
    holds: 'Large bodies that a thread has just prepared.',
  },
} as const;

export type FixedName = keyof typeof fixedSpecs;

/** Opens a cache of a fixed size. `unitsOf` returns the units of an entry, which `maxUnits` limits; `max` replaces the number of entries. */
export function openFixed<K extends Cacheable, V extends Cacheable>(
  name: FixedName,
  {
    unitsOf = () => 1,
    max,
  }: { readonly unitsOf?: (value: V, key: K) => number; readonly max?: number | undefined } = {},
): Cache<K, V> {
  const spec = fixedSpecs[name];
  return 'max' in spec
    ? new LRUCache<K, V>({ max: max ?? spec.max })
    : new LRUCache<K, V>({ maxSize: spec.maxUnits, sizeCalculation: unitsOf });
}
