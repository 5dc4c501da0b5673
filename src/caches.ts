/**
 * Lists the caches of everything that is kept in memory between requests. The large ones share a budget, and drop what was not used for the longest time. A
 * cache only saves work: an entry that was dropped is read from the store or computed again. `docs/memory.md` says what each holds; a test compares the lists.
 */

/** Caches that share the budget, each with the bytes of an entry without those that its owner counts. */
export const cacheSpecs = {
  'seen bodies': 500,
  'read blocks': 500,
  folds: 300,
  'stored recalls': 300,
  'own recalls': 300,
  'line references': 200,
  'last requests': 400,
  'fresh records': 160,
  'replies without recalls': 150,
  'kept replies': 400,
  'earlier requests': 500,
  'first requests': 500,
} as const;

export type CacheName = keyof typeof cacheSpecs;

/** Opens caches under one budget. `bytesOf` returns the bytes of an entry in addition to those of `cacheSpecs`. */
export type Caches = <V extends Cacheable>(
  name: CacheName,
  bytesOf?: (value: V, key: string) => number,
) => Cache<string, V>;

type Cacheable = string | number | object;

/** An entry of a map, in the list of its entries by their last use. */
type CacheEntry<K, V> = {
  readonly key: K;
  value: V;
  size: number;
  /** The time of the budget's clock when it was used last. */
  used: number;
  older: CacheEntry<K, V> | undefined;
  newer: CacheEntry<K, V> | undefined;
};

/** A map with a bound. A full one drops what was not used for the longest time. A library with all that we need takes 5 kB more of a bundle. */
export class BoundedMap<K extends Cacheable, V extends Cacheable> {
  readonly #entries = new Map<K, CacheEntry<K, V>>();
  readonly #budget: CacheBudget;
  readonly #sizeOf: (value: V, key: K) => number;
  readonly #maxSize: number;
  #total = 0;
  #oldest: CacheEntry<K, V> | undefined;
  #newest: CacheEntry<K, V> | undefined;

  /** `bound` is the largest size, or a budget that this map shares with others. */
  constructor(bound: number | CacheBudget, sizeOf: (value: V, key: K) => number) {
    const isOwn = typeof bound === 'number';
    this.#budget = isOwn ? new CacheBudget(bound) : bound;
    this.#budget.caches.push(this);
    this.#sizeOf = sizeOf;
    this.#maxSize = isOwn ? bound : bound.max * maxPart;
  }

  get size(): number {
    return this.#entries.size;
  }
  /** The sum of the sizes of all entries. */
  get total(): number {
    return this.#total;
  }
  /** How long ago the oldest entry was used last; -1 without entries. */
  get age(): number {
    return this.#oldest ? this.#budget.ageOf(this.#oldest.used) : -1;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    // Most entries are still among the newest, so they need not move.
    if (entry && this.#budget.ageOf(entry.used) > this.#entries.size >> 3) this.#renew(entry);
    return entry?.value;
  }

  /** Returns the value, and does not count as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Yields the keys with their values in the order in which they were added. */
  *entries(): Generator<readonly [K, V]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  /** Adds a value, or replaces that of the key. A value that is too large is not kept. */
  set(key: K, value: V): void {
    const size = this.#sizeOf(value, key);
    const entry = this.#entries.get(key);
    if (size > this.#maxSize) {
      if (entry) this.#remove(entry);
      return;
    }
    this.#resize(size - (entry?.size ?? 0));
    if (entry) {
      [entry.value, entry.size] = [value, size];
      this.#renew(entry);
    } else {
      const added = { key, value, size, used: 0, older: undefined, newer: undefined };
      this.#entries.set(key, added);
      this.#append(added);
    }
    this.#budget.makeRoom();
  }

  /** Drops the entry that was not used for the longest time. */
  dropOldest(): void {
    if (this.#oldest) this.#remove(this.#oldest);
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry) this.#remove(entry);
    return entry !== undefined;
  }

  clear(): void {
    this.#entries.clear();
    this.#resize(-this.#total);
    this.#oldest = this.#newest = undefined;
  }

  #resize(by: number): void {
    this.#total += by;
    this.#budget.use(by);
  }

  #remove(entry: CacheEntry<K, V>): void {
    this.#entries.delete(entry.key);
    this.#resize(-entry.size);
    this.#unlink(entry);
  }

  #renew(entry: CacheEntry<K, V>): void {
    this.#unlink(entry);
    this.#append(entry);
  }

  #append(entry: CacheEntry<K, V>): void {
    entry.used = this.#budget.now;
    entry.older = this.#newest;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  #unlink(entry: CacheEntry<K, V>): void {
    const { older, newer } = entry;
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
    entry.older = entry.newer = undefined;
  }
}

export type Cache<K extends Cacheable, V extends Cacheable> = BoundedMap<K, V>;
type AnyCache = Pick<Cache<string, object>, 'age' | 'dropOldest'>;

/** The default and the smallest budget of a gateway, or of a Leporello in process, in megabytes. */
export const defaultCacheMb = 160;
export const minCacheMb = 16;

/** The part of a shared budget that one entry may take, so that a single body does not displace everything else. */
const maxPart = 1 / 3;

/** The other engines that use the same budget, in other threads. */
export type OtherEngines = {
  /** The time, in memory that all engines share. */
  readonly clock: Int32Array;
  /** Tells them the bytes of this engine. */
  tell(used: number): void;
  /** Returns the bytes that they use. */
  used(): number;
  /** Asks the one with the oldest entry to drop it; false if none is older than so many ticks. */
  askForRoom(age: number): boolean;
};

/** The part of the budget by which an engine may exceed it while it waits for the room of another one. */
const latePart = 1 / 8;

/**
 * The memory of the caches of one engine, or of several. Once it is used up, the entry that was not used for the longest time is dropped, in whatever cache; if an engine in
 * another thread holds it, that one is asked to drop it. Sizes of entries are estimates.
 */
export class CacheBudget {
  readonly max: number;
  readonly #others: OtherEngines | undefined;
  readonly caches: AnyCache[] = [];
  /** The time, which passes with each value that is set. It starts again at its end, and may lose a tick when two threads set it. */
  readonly #clock: Int32Array;
  #used = 0;

  constructor(max: number, others?: OtherEngines) {
    this.max = max;
    this.#others = others;
    this.#clock = others?.clock ?? new Int32Array(1);
  }

  get now(): number {
    return this.#clock[0]!;
  }
  ageOf(time: number): number {
    return Math.max(0, (this.#clock[0]! - time) | 0);
  }

  /** Counts bytes that a cache uses from now on, or no longer if negative. */
  use(bytes: number): void {
    this.#clock[0]! += 1;
    this.#used += bytes;
    this.#others?.tell(this.#used);
  }

  /** Drops the oldest entries until so many bytes are free. Those of other engines are dropped a moment later. */
  makeRoom(bytes = 0): void {
    for (;;) {
      const excess = this.#used + (this.#others?.used() ?? 0) - this.max;
      if (excess + bytes <= 0) return;
      const oldest = this.#oldestCache();
      const isAsked = this.#others?.askForRoom(oldest?.age ?? 0);
      if (!oldest || (isAsked && excess <= this.max * latePart)) return;
      oldest.dropOldest();
    }
  }

  #oldestCache(): AnyCache | undefined {
    let oldest: AnyCache | undefined;
    for (const cache of this.caches) if (cache.age > (oldest?.age ?? -1)) oldest = cache;
    return oldest;
  }
}

/** Returns a function that opens the caches of one engine, or of several in one thread. `memory` is their budget, or its megabytes. */
export function createCaches(memory: number | CacheBudget = defaultCacheMb): Caches {
  const budget = typeof memory === 'number' ? new CacheBudget(memory * 1e6) : memory;
  return (name, bytesOf = () => 0) => {
    const entryBytes = cacheSpecs[name];
    return new BoundedMap(budget, (value, key) => entryBytes + Math.ceil(bytesOf(value, key)));
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
