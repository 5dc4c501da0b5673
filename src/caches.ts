/**
 * Lists the caches of everything that is kept in memory between requests, and divides one budget among the large caches. A cache only saves work: an entry
 * that was dropped is read from the store or computed again. `docs/memory.md` says what each holds; a test compares the lists.
 */
/**
 * Caches that share the budget. `share`: the thousandths of it that a cache keeps when all are in demand. `entryBytes`: bytes of an entry, without those that
 * its owner counts.
 */
export const cacheSpecs = {
  'seen bodies': { share: 300, entryBytes: 500 },
  'read blocks': { share: 250, entryBytes: 500 },
  folds: { share: 90, entryBytes: 300 },
  'stored recalls': { share: 60, entryBytes: 300 },
  'own recalls': { share: 60, entryBytes: 300 },
  'line references': { share: 100, entryBytes: 200 },
  'last requests': { share: 50, entryBytes: 400 },
  'fresh records': { share: 30, entryBytes: 160 },
  'replies without recalls': { share: 20, entryBytes: 150 },
  'kept replies': { share: 20, entryBytes: 400 },
  'earlier requests': { share: 10, entryBytes: 500 },
  'first requests': { share: 10, entryBytes: 500 },
} as const;

export type CacheName = keyof typeof cacheSpecs;

/** Opens caches under one budget. `bytesOf` returns the bytes of an entry in addition to `entryBytes`. */
export type Caches = <V extends Cacheable>(
  name: CacheName,
  bytesOf?: (value: V, key: string) => number,
) => Cache<string, V>;

type Cacheable = string | number | object;

/**
 * A map with a bound. A full one drops its oldest entry, unless that was used since it was added or last spared: then it counts as new. So to use an entry
 * only sets a flag. A library with all that we need takes 5 kB more of a bundle.
 */
export class BoundedMap<K extends Cacheable, V extends Cacheable> {
  readonly #entries = new Map<K, { value: V; size: number; isUsed: boolean }>();
  readonly #budget: CacheBudget;
  readonly #sizeOf: (value: V, key: K) => number;
  /** Its share of the budget, in thousandths. */
  readonly share: number;
  #total = 0;
  /** Stays at the oldest entry while entries are dropped: to begin at the start of a map takes long where many were. */
  #oldest: MapIterator<[K, { value: V; size: number; isUsed: boolean }]> | undefined;
  /** Changes since the iterator moved. One that stands still keeps all earlier tables of the map alive, with what was in them. */
  #changes = 0;

  /** `bound` is the largest size, or a budget of which this map has a share. */
  constructor(bound: number | CacheBudget, sizeOf: (value: V, key: K) => number, share = 1_000) {
    this.#budget = typeof bound === 'number' ? ownBudget(bound) : bound;
    this.#budget.add(this);
    this.#sizeOf = sizeOf;
    this.share = share;
  }

  get size(): number {
    return this.#entries.size;
  }
  /** The sum of the sizes of all entries. */
  get total(): number {
    return this.#total;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry) entry.isUsed = true;
    return entry?.value;
  }

  /** Returns the value, and does not count as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Yields the keys with their values, oldest first. */
  *entries(): Generator<readonly [K, V]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  /** Adds a value, or replaces that of the key. A value that is larger than the bound is not kept. */
  set(key: K, value: V): void {
    const size = this.#sizeOf(value, key);
    const isTooLarge = size > this.#budget.maxEntry(this.share);
    const entry = this.#entries.get(key);
    if (entry && !isTooLarge && this.#budget.excess(size - entry.size) <= 0) {
      this.#resize(size - entry.size);
      entry.value = value;
      entry.size = size;
      entry.isUsed = true;
      return;
    }
    if (entry) this.delete(key);
    if (isTooLarge) return;
    this.makeRoom(size);
    this.#countChange();
    this.#resize(size);
    this.#entries.set(key, { value, size, isUsed: false });
  }

  /** Drops entries until the free size is at least `size`, or all. */
  makeRoom(size: number): void {
    this.#budget.makeRoom(size, this);
  }

  /** Drops the oldest entry that was not used lately; false if there is none. */
  dropOldest(): boolean {
    while (this.#entries.size > 0) {
      this.#oldest ??= this.#entries.entries();
      this.#changes = 0;
      const { value: oldest, done } = this.#oldest.next();
      if (done) {
        this.#oldest = undefined;
        continue;
      }
      const [key, entry] = oldest;
      this.#entries.delete(key);
      if (!entry.isUsed) {
        this.#resize(-entry.size);
        return true;
      }
      this.#entries.set(key, { ...entry, isUsed: false });
    }
    return false;
  }

  delete(key: K): boolean {
    this.#countChange();
    this.#resize(-(this.#entries.get(key)?.size ?? 0));
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#resize(-this.#total);
    this.#oldest = undefined;
  }

  #resize(by: number): void {
    this.#total += by;
    this.#budget.use(by);
  }

  #countChange(): void {
    if (this.#oldest && ++this.#changes > maxChanges) this.#oldest = undefined;
  }
}

/** Changes of a map between two entries that are dropped, after which the next one is looked for from the start. */
const maxChanges = 32;

export type Cache<K extends Cacheable, V extends Cacheable> = BoundedMap<K, V>;
type AnyCache = Pick<Cache<string, object>, 'size' | 'total' | 'share' | 'dropOldest'>;

/** The default and the smallest budget of a gateway, or of a Leporello in process, in megabytes. */
export const defaultCacheMb = 160;
export const minCacheMb = 16;

/** A budget that the engines of several threads share. */
export type SharedBudget = {
  /** Bytes of all engines together. */
  readonly max: number;
  /** The kilobytes that each engine uses, in memory that all threads share. */
  readonly used: Uint32Array;
};

/**
 * The memory of the caches of one engine. A cache may use what others leave free, and an engine what other engines leave free. Once nothing is free, the cache that
 * exceeds its share the most drops entries. Sizes of entries are estimates.
 */
export class CacheBudget {
  readonly #shared: SharedBudget;
  readonly #engine: number;
  readonly #caches: AnyCache[] = [];
  #used = 0;

  /** `engine` is the place of the engine in `used`. */
  constructor(shared: SharedBudget, engine = 0) {
    this.#shared = shared;
    this.#engine = engine;
  }

  add(cache: AnyCache): void {
    this.#caches.push(cache);
  }

  /** Counts bytes that a cache uses from now on, or no longer if negative. */
  use(bytes: number): void {
    this.#used += bytes;
    this.#shared.used[this.#engine] = this.#used / 1_000;
  }

  /** Returns by how many bytes the budget is exceeded once a cache has grown. */
  excess(bytes: number): number {
    return this.#used + bytes - this.#max();
  }

  /** Returns the size of the largest entry that a cache with this share keeps. */
  maxEntry(share: number): number {
    return Math.ceil((this.#max() * share) / 1_000);
  }

  /** Drops entries until so many bytes are free for a cache, or none is left. Without a cache, it drops what other engines need now. */
  makeRoom(bytes: number, grown?: AnyCache): void {
    while (this.excess(bytes) > 0 && this.#fullest(bytes, grown)?.dropOldest());
  }

  /** Returns the cache with entries that exceeds its share the most once one has grown. */
  #fullest(bytes: number, grown: AnyCache | undefined): AnyCache | undefined {
    let fullest: AnyCache | undefined;
    let most = 0;
    for (const cache of this.#caches) {
      const used = (cache.total + (cache === grown ? bytes : 0)) / cache.share;
      if (used > most && cache.size > 0) [fullest, most] = [cache, used];
    }
    return fullest;
  }

  /** Returns the bytes that this engine may use: at least an equal part. */
  #max(): number {
    const { max, used } = this.#shared;
    const others = used.reduce((sum, kilobytes, at) => (at === this.#engine ? sum : sum + kilobytes), 0);
    return Math.max(max / used.length, max - others * 1e3);
  }
}

const ownBudget = (max: number) => new CacheBudget({ max, used: new Uint32Array(1) });

/** Returns a function that opens the caches of one engine, or of several in one thread. `memory` is their budget, or its megabytes. */
export function createCaches(memory: number | CacheBudget = defaultCacheMb): Caches {
  const budget = typeof memory === 'number' ? ownBudget(memory * 1e6) : memory;
  return function open<V extends Cacheable>(
    name: CacheName,
    bytesOf: (value: V, key: string) => number = () => 0,
  ) {
    const { share, entryBytes } = cacheSpecs[name];
    return new BoundedMap<string, V>(
      budget,
      (value, key) => entryBytes + Math.ceil(bytesOf(value, key)),
      share,
    );
  };
}

/** All other caches. Their number of entries, or of UTF-16 units, is fixed, because they are small or serve the whole process. */
export const fixedSpecs = {
  'model facts': { max: 500 },
  'model prices': { max: 500 },
  'catalog entries': { max: 1_000 },
  'pattern fits': { max: 200 },
  'token counters': { max: 200 },
  'short texts': { maxUnits: 5_000_000 },
  'long text counts': { maxUnits: 16_000_000 },
  'newest texts': { maxUnits: 8_000_000 },
  'long texts': { maxUnits: 16_000_000 },
  'lines of folds': { maxUnits: 500_000 },
  'asynchronous counts': { maxUnits: 16_000_000 },
  'record texts': { max: 128 },
  'tool costs': { max: 500 },
  'tenant keys': { max: 1_000 },
  'calibrated models': { max: 500 },
  'calibrated conversations': { max: 5_000 },
  'learned windows': { max: 1_000 },
  'summaries ahead': { max: 2_000 },
  'texts ahead': { maxUnits: 4_000_000 },
  'plans ahead': { max: 5_000 },
  'summary leases': { max: 10_000 },
  'summary notes': { max: 2_000 },
  'transient records': { max: 30_000 },
  'request lines': { max: 500 },
  'host names': { max: 100 },
  controls: { max: 1_000 },
  'blocks of experiments': { max: 64 },
  'journals of experiments': { max: 1_000 },
  'rests of shadows': { max: 5_000 },
  'bills of shadows': { max: 5_000 },
  'holds of shadows': { max: 5_000 },
  'looks of shadows': { max: 5_000 },
  'open verdicts of shadows': { max: 5_000 },
  receipts: { max: 2_000 },
  totals: { max: 5_000 },
  'prepared requests': { maxUnits: 268_435_456 },
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
    ? new BoundedMap<K, V>(max ?? spec.max, () => 1)
    : new BoundedMap<K, V>(spec.maxUnits, unitsOf);
}

/** A cache by text. */
export type TextCache<V> = { get(text: string): V | undefined; set(text: string, value: V): void };

/**
 * Opens a cache by text with the units of its texts, and `entryUnits` for each. A long text is found by some of its units and then compared: to hash
 * all of it would take a third of the time of counting its tokens. If several texts have the same units there, the newest is kept.
 */
export function openTexts<V extends Cacheable>(name: FixedName, entryUnits = 0): TextCache<V> {
  const entries = openFixed<string | number, { readonly text: string; readonly value: V }>(name, {
    unitsOf: ({ text }) => text.length + entryUnits,
  });
  return {
    get(text) {
      const entry = entries.get(textKey(text));
      return entry?.text === text ? entry.value : undefined;
    },
    set: (text, value) => entries.set(textKey(text), { text, value }),
  };
}

/** UTF-16 units of the longest text that is its own key, and the number of units that make the key of a longer one. */
const maxOwnKey = 256;
const sampledUnits = 32;

function textKey(text: string): string | number {
  const { length } = text;
  if (length <= maxOwnKey) return text;
  const step = Math.floor(length / sampledUnits);
  let key = length;
  for (let at = length - 1; at >= 0; at -= step) key = Math.imul(key ^ text.charCodeAt(at), 0x01000193);
  return key;
}

// Notes: values that are remembered with an object as long as it lives. They are properties of the object that no copy and no listing of it has. A WeakMap
// does the same, but each of its entries costs the garbage collector time, a new one takes forty times as long, and a conversation has thousands.

/** Values that are remembered with objects of one kind. The objects must not change. */
export interface Notes<Key extends object, Value> {
  get(key: Key): Value | undefined;
  has(key: Key): boolean;
  set(key: Key, value: Value): void;
}

/** The objects that notes are made on. An object has notes of one kind of owner only, with a place for each: `other` has the most. */
export type NoteOwner = 'message' | 'part' | 'block' | 'text' | 'other';

/** The kind of owner, then the values. */
type NotesOfObject = [NoteOwner, ...unknown[]];
const notesKey = Symbol('notes');
type Noted = { readonly [notesKey]?: NotesOfObject };
/** The notes of an object without a value. A copy has no room that it does not need, unlike a list that grows. */
const empty: Readonly<Record<NoteOwner, NotesOfObject>> = {
  message: ['message'],
  part: ['part'],
  block: ['block'],
  text: ['text'],
  other: ['other'],
};

/** Opens notes. It is called once for each kind of value, by modules: each object that is noted has a place for every kind. */
export function openNotes<Key extends object, Value>(owner: NoteOwner = 'other'): Notes<Key, Value> {
  const place = empty[owner].push(undefined) - 1;
  const get = (key: Key) => {
    const notes = (key as Noted)[notesKey] ?? notesOfSealed(key);
    return notes?.[0] === owner ? (notes[place] as Value | undefined) : undefined;
  };
  return {
    get,
    has: (key) => get(key) !== undefined,
    set(key, value) {
      const notes = (key as Noted)[notesKey] ?? notesOfSealed(key) ?? newNotes(key, owner);
      if (notes[0] !== owner)
        throw new TypeError(`An object with notes of a ${notes[0]} got one of a ${owner}.`);
      notes[place] = value;
    },
  };
}

/** The notes of objects that accept no property: a program may freeze the edits of its own strategy. */
let ofSealed: WeakMap<object, NotesOfObject> | undefined;

function notesOfSealed(key: object): NotesOfObject | undefined {
  return ofSealed?.get(key);
}

function newNotes(key: object, owner: NoteOwner): NotesOfObject {
  const notes = empty[owner].slice() as NotesOfObject;
  if (Object.isExtensible(key)) Object.defineProperty(key, notesKey, { value: notes });
  else (ofSealed ??= new WeakMap()).set(key, notes);
  return notes;
}
