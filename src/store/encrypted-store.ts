/**
 * The encrypted store sits between Leporello and a store. It derives tenant labels and memory ids, and encrypts all content: the store
 * sees nothing in clear but labels and keys. The holder of the secret can read everything; the holder of only the store, nothing.
 * This module does not decide which originals are kept, nor who may read them.
 */
import { memoryIdPattern } from '../checks.ts';
import type { Caches } from '../caches.ts';
import { nextTurn, openSlices } from '../conversation/steps.ts';
import { LeporelloError } from '../errors.ts';
import {
  type Clock,
  type FirstFound,
  type FirstSealed,
  type Sealed,
  type Store,
  type StoreEntry,
  originalPrefix,
} from './store.ts';
import { storeWithDeadline, type StoreWatch, type StoreView, openStoreView } from './wrapped-store.ts';
import { node, web } from './platform.ts';
import { type Packed, createRenewals, createSealer, deriveKey, macWith, pack } from './records.ts';

/** Every method that uses the store rejects with `store-failed` when the store does. */
export interface EncryptedStore {
  /**
   * Returns the label of a tenant: 16 characters, the same in every process with this secret. A request without a credential gets a label
   * too. A header or claim never gets the label of a credential with the same text.
   */
  tenantOf(name: string | undefined, source?: 'credential' | 'header' | 'claim'): string;
  /** Returns the memory id of an original. It depends only on tenant and bytes, and cannot be guessed without the secret. */
  idOf(tenant: string, original: Uint8Array): string;
  /**
   * Writes originals and further records, all or none; of more than a megabyte, originals ahead, so that no record refers to a missing one. Writing
   * again renews the expiry. Ids must come from `idOf`; another id would read as missing, or hide an original. If a key of an `unless` has a
   * value, no record is written and the first such value is returned.
   */
  keep(
    tenant: string,
    originals: readonly StoredOriginal[],
    ...records: readonly Sealed[]
  ): Promise<FirstSealed | undefined>;
  /** Reads an original and renews its expiry. An original of another tenant, an expired one and a damaged one are all `missing`. */
  recall(tenant: string, id: string): Promise<RecalledOriginal>;
  /** Reads an original of any tenant. For the operator, who has the secret but no credential; never for a request. */
  recallAny(id: string): Promise<RecalledOriginal>;
  /** Deletes an original of any tenant. For the operator, like `recallAny`. */
  forgetAny(id: string): Promise<void>;
  /** Encrypts and stores the same bytes under each key, all or none. The caller chooses the keys, which are stored in clear. */
  putSealed(tenant: string, keys: readonly string[], content: Uint8Array, ttlMs: number): Promise<void>;
  /** Returns values in the order of the keys; undefined for one that is missing, expired or damaged. */
  getSealedMany(tenant: string, keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Returns the first value among the keys, with the index of its key; without content if the value is damaged. */
  getSealedFirst(tenant: string, keys: readonly string[]): Promise<FirstSealed | undefined>;
  /** Extends the retention of originals that are in use. Returns at once, and writes only now and then: see `createRenewals`. */
  renewOriginals(ids: readonly string[]): void;
  /** Extends the retention of a value that `putSealed` or `keep` stored under this key for `ttlMs`. */
  renewSealed(tenant: string, key: string, ttlMs: number, known?: SealedUse): void;
  /** Deletes an original and values of `putSealed` and `keep`. Anything of another tenant stays. */
  forget(
    tenant: string,
    what: { readonly original?: string; readonly sealed?: readonly string[] },
  ): Promise<void>;
  /** Counts what others have written (see `StoreView`), not what users of this object have: so each engine needs one of its own. */
  writesByOthers(): StoreView['writesByOthers'];
}

/** The exact bytes removed from a request, and their id. */
export type StoredOriginal = { readonly id: string; readonly original: Uint8Array };

export type SealedUse = {
  /** When the value was written, in milliseconds since the epoch, if it says so itself. */
  readonly writtenAt?: number | undefined;
  /** Other keys, and ids of originals, that are renewed together with this one. */
  readonly along?: () => readonly string[];
  readonly originals?: () => readonly string[];
};

export type RecalledOriginal =
  | { readonly status: 'found'; readonly original: Uint8Array }
  | { readonly status: 'missing' };

export type EncryptedStoreOptions = {
  readonly store: Store;
  /** At least 32 bytes; see secret.ts. With a different secret, everything stored so far is missing. */
  readonly secret: Uint8Array;
  readonly clock?: Clock;
  /** How long an original is kept after its last use, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  /** How long one call of the store may take, in milliseconds. Default 500. */
  readonly storeDeadlineMs?: number | undefined;
  /** Runs each call of the store. Default: it is just run. */
  readonly watch?: StoreWatch | undefined;
  readonly caches?: Caches | undefined;
};

/** Creates an encrypted store. Throws `bad-config` for a secret that is too short and for a deadline out of range. */
export function createEncryptedStore(options: EncryptedStoreOptions): EncryptedStore {
  const { secret, clock = Date.now, ttlMs = 30 * 24 * 60 * 60 * 1_000 } = options;
  const { storeDeadlineMs: deadlineMs, watch } = options;
  const view = openStoreView(options.store, { clock, deadlineMs });
  const store = storeWithDeadline(view, { deadlineMs, watch });
  if (secret.length < 32) {
    throw new LeporelloError('bad-config', `The secret has ${secret.length} bytes; it needs at least 32.`);
  }
  const sealer = createSealer(secret);
  const renewals = createRenewals(store, clock, options.caches);

  async function sealed(
    tenant: string,
    key: string,
    content: Uint8Array | Packed,
    ttl: number,
    isTransient?: boolean,
  ): Promise<StoreEntry> {
    return { key, value: await sealer.seal(tenant, key, content), expiresAt: clock() + ttl, isTransient };
  }

  /** Seals content for several keys. It is compressed once for all. */
  async function sealedAll(
    tenant: string,
    { keys, content, ttlMs: ttl, isTransient }: Sealed,
  ): Promise<readonly StoreEntry[]> {
    const packed = await pack(content);
    return Promise.all(keys.map((key) => sealed(tenant, sealedKey(tenant, key), packed, ttl, isTransient)));
  }

  /** Reads an original; with `tenant` undefined, that of any tenant. */
  async function find(tenant: string | undefined, id: string): Promise<RecalledOriginal> {
    const key = memoryKey(id);
    const record = isMemoryId(id) ? await store.get(key) : undefined;
    const unsealed = record && (await sealer.unseal(record, key));
    if (unsealed === undefined) return { status: 'missing' };
    if (tenant !== undefined && tenant !== unsealed.tenant) return { status: 'missing' };
    return { status: 'found', original: unsealed.content };
  }

  async function opened(
    places: readonly string[],
    first: FirstFound | undefined,
  ): Promise<FirstSealed | undefined> {
    return first && { at: first.at, content: (await sealer.unseal(first.value, places[first.at]!))?.content };
  }

  const getTogether = readsTogether(store);

  /** Keeps a record in this process. Returns false if it must be written to the store. */
  function keepHere(
    tenant: string,
    { keys, content, ttlMs: ttl, isTransient, unless = [] }: Sealed,
  ): boolean {
    if (!isTransient || unless.length > 0) return false;
    return keys.every((one) => {
      const key = sealedKey(tenant, one);
      const value = () => sealer.seal(tenant, key, content);
      return view.keepTransient?.(key, { expiresAt: clock() + ttl, value });
    });
  }

  return {
    ...createNames(secret),
    writesByOthers: () => view.writesByOthers,
    async keep(tenant, originals, ...records) {
      if (originals.length === 0 && records.every((record) => keepHere(tenant, record))) return undefined;
      const lasting = clock() + ttlMs;
      const entries: StoreEntry[] = [];
      let bytes = 0;
      // The slice in which the originals were gathered may be nearly over.
      if (originals.length > fewOriginals) await nextTurn();
      const slices = openSlices();
      // One original at a time, because a compressor takes megabytes; and in pieces, because an embedded store blocks the thread while it writes.
      for (const { id, original } of originals) {
        const entry = await sealed(checkedTenant(tenant), memoryKey(id), original, ttlMs);
        entries.push(entry);
        bytes += entry.value.length;
        await slices.pause();
        if (bytes < bytesAtOnce) continue;
        bytes = 0;
        const piece = entries.splice(0);
        await store.putMany(piece);
        renewals.written(piece.map(({ key }) => key));
      }
      for (const record of records) entries.push(...(await sealedAll(tenant, record)));
      const guards = records.flatMap(({ unless = [] }) => unless.map((key) => sealedKey(tenant, key)));
      const inTheWay =
        guards.length > 0 ? await store.putUnless(guards, entries) : await store.putMany(entries);
      if (inTheWay) return opened(guards, inTheWay);
      // Records with a shorter retention are never renewed.
      renewals.written(entries.flatMap(({ key, expiresAt = 0 }) => (expiresAt >= lasting ? [key] : [])));
      return undefined;
    },
    async recall(tenant, id) {
      const found = await find(checkedTenant(tenant), id);
      if (found.status === 'found') renewals.used(memoryKey(id), ttlMs);
      return found;
    },
    recallAny: (id) => find(undefined, id),
    async forgetAny(id) {
      if ((await find(undefined, id)).status === 'found') await store.delete([memoryKey(id)]);
    },
    async putSealed(tenant, keys, content, ttl) {
      const entries = await sealedAll(tenant, { keys, content, ttlMs: ttl });
      await store.putMany(entries);
      renewals.written(entries.map(({ key }) => key));
    },
    async getSealedMany(tenant, keys) {
      const places = keys.map((key) => sealedKey(tenant, key));
      if (view.mayHold?.(places) === false) return places.map(() => undefined);
      const records: (Uint8Array | undefined)[] = [];
      for (let from = 0; from < places.length; from += keysAtOnce) {
        if (from > 0) await nextTurn();
        records.push(...(await getTogether(places.slice(from, from + keysAtOnce))));
      }
      return Promise.all(
        places.map(async (place, i) => {
          const record = records[i];
          return record && (await sealer.unseal(record, place))?.content;
        }),
      );
    },
    async getSealedFirst(tenant, keys) {
      const places = keys.map((key) => sealedKey(tenant, key));
      return opened(places, await store.getFirst(places));
    },
    async forget(tenant, { original, sealed: keys = [] }) {
      const isOwn =
        original !== undefined && (await find(checkedTenant(tenant), original)).status === 'found';
      const own = isOwn ? [memoryKey(original)] : [];
      await store.delete([...own, ...keys.map((key) => sealedKey(tenant, key))]);
    },
    renewOriginals(ids) {
      for (const id of ids) renewals.used(memoryKey(id), ttlMs);
    },
    renewSealed(tenant, key, ttl, { writtenAt, along = () => [], originals = () => [] } = {}) {
      renewals.used(sealedKey(tenant, key), ttl, {
        writtenAt,
        along: () => [...along().map((other) => sealedKey(tenant, other)), ...originals().map(memoryKey)],
      });
    },
  };
}

/** Bytes of originals that one call of the store writes: about 5 ms of SQLite. */
const bytesAtOnce = 1_000_000;

/** The number of keys that one call of the store reads. */
const keysAtOnce = 4_000;

/** Creates a read function that reads all keys requested in the same turn of the event loop in one call of the store. */
function readsTogether(store: Pick<Store, 'getMany'>) {
  let asked: string[] = [];
  let answer: Promise<readonly (Uint8Array | undefined)[]> | undefined;
  return async function getTogether(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const from = asked.length;
    asked.push(...keys);
    answer ??= Promise.resolve().then(() => {
      const all = asked;
      asked = [];
      answer = undefined;
      return store.getMany(all);
    });
    const values = await answer;
    return values.slice(from, from + keys.length);
  };
}

const encoder = new TextEncoder();

function createNames(secret: Uint8Array): Pick<EncryptedStore, 'tenantOf' | 'idOf'> {
  const tenantMac = macWith(deriveKey(secret, 'tenant'));
  const idMac = macWith(deriveKey(secret, 'id'));
  return {
    tenantOf(name, source = 'credential') {
      // Credentials were labeled with this word from the start: a different one would give every tenant a new label.
      const kind = source === 'credential' ? 'some' : source;
      const text = name === undefined ? 'none' : `${kind} ${name}`;
      return base32Of(tenantMac(encoder.encode(text)));
    },
    idOf(tenant, original) {
      return `mem_${base32Of(idMac(encoder.encode(`${checkedTenant(tenant)} `), original))}`;
    },
  };
}

function memoryKey(id: string): string {
  return `${originalPrefix}${id}`;
}

/** Originals that are sealed within a few milliseconds. */
const fewOriginals = 16;

function sealedKey(tenant: string, key: string): string {
  return `sealed/${checkedTenant(tenant)}/${key}`;
}

/** Describes allowed tenant labels; completes the sentence "... but must be". */
export const tenantWords = '1 to 64 of a-z, 0-9 and -';

/** Checks a tenant label. Labels have no blanks and slashes, so a label and the text after it can never be read as another label. */
export function isTenantLabel(label: unknown): label is string {
  return typeof label === 'string' && /^[a-z0-9-]{1,64}$/.test(label);
}

/** Returns the label unchanged, or throws `bad-config`. */
export function checkedTenant(tenant: string): string {
  if (isTenantLabel(tenant)) return tenant;
  throw new LeporelloError(
    'bad-config',
    `The tenant is ${JSON.stringify(String(tenant).slice(0, 80))}, but must be ${tenantWords}, such as a digest of a user's name in hex.`,
  );
}

// Digests of bytes, and memory ids.

const shape = new RegExp(`^${memoryIdPattern}$`);
const inText = new RegExp(String.raw`\b${memoryIdPattern}\b`, 'g');

/** True for text that has the form of a memory id. Only the encrypted store knows whether an original exists under it. */
export function isMemoryId(text: string): boolean {
  return shape.test(text);
}

/** Returns the distinct memory ids in a text. */
export function memoryIdsIn(bytes: Uint8Array): readonly string[] {
  return [...new Set(new TextDecoder().decode(bytes).match(inText))];
}

/** The digits of base 32 by Crockford in lower case: no i, l, o, u. */
export const base32Digits = '0123456789abcdefghjkmnpqrstvwxyz';

/** Encodes the first 80 bits of a digest as 16 characters. Needs at least 10 bytes. */
export function base32Of(digest: Uint8Array): string {
  let text = '';
  for (let bit = 0; bit < 80; bit += 5) {
    const pair = digest[bit >> 3]! * 256 + (digest[(bit >> 3) + 1] ?? 0);
    text += base32Digits[(pair >> (11 - (bit & 7))) & 31];
  }
  return text;
}

/** Returns the SHA-256 of the bytes as base64url, 43 characters. */
export function sha256(bytes: Uint8Array): string {
  if (node) return node.crypto.hash('sha256', bytes, 'base64url');
  return web.toBase64(web.sha256(bytes)).replaceAll('+', '-').replaceAll('/', '_').replace('=', '');
}

/** Size of the largest compared block: a power of the factor by which blocks shrink, so that the last blocks have one byte. */
const block = 8 ** 5;

/** Returns the length of the common prefix of two byte arrays. It is found fastest if it is `likely`, or a few bytes more. */
export function commonLength(one: Uint8Array, other: Uint8Array, likely = 0): number {
  const length = Math.min(one.length, other.length);
  if (!node) return web.commonLength(one, other);
  const buffer = node.Buffer.from(one.buffer, one.byteOffset, one.length);
  const isSame = (from: number, to: number) => buffer.compare(other, from, to, from, to) === 0;
  let at = likely > 0 && likely <= length && isSame(0, likely) ? likely : 0;
  if (at > 0) {
    const end = Math.min(length, at + nearBytes);
    while (at < end && one[at] === other[at]) at++;
    if (at < end || at === length) return at;
  }
  for (let size = block; size > 0; size = Math.floor(size / 8)) {
    while (at + size <= length && isSame(at, at + size)) at += size;
  }
  return at;
}

/** Bytes behind the likely length that are compared one by one. */
const nearBytes = 256;
