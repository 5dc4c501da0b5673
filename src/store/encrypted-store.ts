/**
 * What stands between Leporello and a store: names tenants and originals, and lets nothing reach the store in clear but
 * tenant labels and ids. Who holds the secret can read everything; who holds only the store, nothing.
 * Not here: which originals are kept, and who may ask for them.
 */
import { createHmac } from 'node:crypto';
import { LeporelloError } from '../errors.ts';
import { storeWithDeadline } from './deadline-store.ts';
import { base32Of, isMemoryId } from './ids.ts';
import { createRenewals } from './renewals.ts';
import { createSealer, deriveKey } from './sealing.ts';
import type { Clock, FirstFound, Store, StoreEntry } from './store.ts';

/** Everything that touches the store rejects with `store-failed` when the store does. */
export interface EncryptedStore {
  /**
   * The label of a tenant: 16 characters, the same in every process with this secret. No credential has a label too. What a header or a
   * claim says has a label of its own, which no credential of the same text has.
   */
  tenantOf(name: string | undefined, source?: 'credential' | 'header' | 'claim'): string;
  /** The memory id of an original: depends on tenant and bytes alone, and cannot be guessed without the secret. */
  idOf(tenant: string, original: Uint8Array): string;
  /**
   * All or none, what is kept beside them too. Keeping again renews the expiry. Ids are those of `idOf`; another one would read as
   * missing, or hide a memory. Nothing is kept where something stands under a key of an `unless`: the first that does is returned.
   */
  keep(
    tenant: string,
    originals: readonly StoredOriginal[],
    ...beside: readonly Sealed[]
  ): Promise<FirstSealed | undefined>;
  /** Another tenant's memory, one that has expired, and one that was damaged are all `missing`. One that is found is renewed. */
  recall(tenant: string, id: string): Promise<RecalledOriginal>;
  /** For the operator, who has the secret but no credential. Never for a request. */
  recallAny(id: string): Promise<RecalledOriginal>;
  /** Keeps the same bytes for a tenant under each of the keys, which are the caller's choice and stored in clear. All or none. */
  putSealed(tenant: string, keys: readonly string[], content: Uint8Array, ttlMs: number): Promise<void>;
  /** In the order of the keys; undefined for what is missing, expired or damaged. */
  getSealedMany(tenant: string, keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** The first of the keys under which something stands, by its place among them; without content when that is damaged. */
  getSealedFirst(tenant: string, keys: readonly string[]): Promise<FirstSealed | undefined>;
  /**
   * Counts how long these originals are kept from now, as they are in use. Returns at once, and writes only now and then: see renewals.ts.
   */
  renewOriginals(ids: readonly string[]): void;
  /** The same of what `putSealed` or `keep` put under this key for `ttlMs`. */
  renewSealed(tenant: string, key: string, ttlMs: number, known?: SealedUse): void;
}

/** The exact bytes taken out of a request, and their id. */
export type StoredOriginal = { readonly id: string; readonly original: Uint8Array };

/** The same bytes under each of the keys, as `putSealed` takes them. */
export type Sealed = {
  readonly keys: readonly string[];
  readonly content: Uint8Array;
  readonly ttlMs: number;
  /** Default: none. */
  readonly unless?: readonly string[];
};

export type SealedUse = {
  /** When it was put, in milliseconds since the epoch, where it says so itself. */
  readonly writtenAt?: number | undefined;
  /** Other keys, and ids of originals, that are renewed whenever this one is. */
  readonly along?: () => readonly string[];
  readonly originals?: () => readonly string[];
};

export type FirstSealed = { readonly at: number; readonly content: Uint8Array | undefined };

export type RecalledOriginal =
  | { readonly status: 'found'; readonly original: Uint8Array }
  | { readonly status: 'missing' };

export type EncryptedStoreOptions = {
  readonly store: Store;
  /** At least 32 bytes; see secret.ts. With another secret everything kept so far is missing. */
  readonly secret: Uint8Array;
  readonly clock?: Clock;
  /** How long an original is kept after it was last used, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  /** How long one call of the store may take, in milliseconds. Default 500. */
  readonly storeDeadlineMs?: number | undefined;
};

/** Throws `bad-config` for a secret that is too short and for a deadline out of range. */
export function createEncryptedStore(options: EncryptedStoreOptions): EncryptedStore {
  const { secret, clock = Date.now, ttlMs = 30 * 24 * 60 * 60 * 1_000 } = options;
  const store = storeWithDeadline(options.store, { deadlineMs: options.storeDeadlineMs });
  if (secret.length < 32) {
    throw new LeporelloError(
      'bad-config',
      `The secret has ${secret.length} bytes, but must have at least 32.`,
    );
  }
  const sealer = createSealer(secret);
  const renewals = createRenewals(store, clock);

  async function sealed(tenant: string, key: string, content: Uint8Array, ttl: number): Promise<StoreEntry> {
    return { key, value: await sealer.seal(tenant, key, content), expiresAt: clock() + ttl };
  }

  function sealedAll(tenant: string, { keys, content, ttlMs: ttl }: Sealed): Promise<readonly StoreEntry[]> {
    return Promise.all(keys.map((key) => sealed(tenant, sealedKey(tenant, key), content, ttl)));
  }

  /** `tenant` undefined: anybody's. */
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

  return {
    ...createNames(secret),
    async keep(tenant, originals, ...beside) {
      const lasting = clock() + ttlMs;
      const entries: StoreEntry[] = [];
      // One at a time: a compressor takes megabytes while it works.
      for (const { id, original } of originals) {
        entries.push(await sealed(checkedTenant(tenant), memoryKey(id), original, ttlMs));
      }
      for (const record of beside) entries.push(...(await sealedAll(tenant, record)));
      const unless = beside.flatMap((record) => record.unless ?? []);
      const guards = unless.map((key) => sealedKey(tenant, key));
      const inTheWay =
        guards.length > 0 ? await store.putUnless(guards, entries) : await store.putMany(entries);
      if (inTheWay) return opened(guards, inTheWay);
      // What is kept for less is never renewed.
      renewals.written(entries.flatMap(({ key, expiresAt = 0 }) => (expiresAt >= lasting ? [key] : [])));
      return undefined;
    },
    async recall(tenant, id) {
      const found = await find(checkedTenant(tenant), id);
      if (found.status === 'found') renewals.used(memoryKey(id), ttlMs);
      return found;
    },
    recallAny: (id) => find(undefined, id),
    async putSealed(tenant, keys, content, ttl) {
      const entries = await sealedAll(tenant, { keys, content, ttlMs: ttl });
      await store.putMany(entries);
      renewals.written(entries.map(({ key }) => key));
    },
    async getSealedMany(tenant, keys) {
      const places = keys.map((key) => sealedKey(tenant, key));
      const records = await store.getMany(places);
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

function createNames(secret: Uint8Array): Pick<EncryptedStore, 'tenantOf' | 'idOf'> {
  const tenantKey = deriveKey(secret, 'tenant');
  const idKey = deriveKey(secret, 'id');
  return {
    tenantOf(name, source = 'credential') {
      // The word that credentials had from the start: another one would give every tenant a new label.
      const kind = source === 'credential' ? 'some' : source;
      const text = name === undefined ? 'none' : `${kind} ${name}`;
      return base32Of(createHmac('sha256', tenantKey).update(text).digest());
    },
    idOf(tenant, original) {
      const mac = createHmac('sha256', idKey)
        .update(`${checkedTenant(tenant)} `)
        .update(original);
      return `mem_${base32Of(mac.digest())}`;
    },
  };
}

function memoryKey(id: string): string {
  return `memory/${id}`;
}

function sealedKey(tenant: string, key: string): string {
  return `sealed/${checkedTenant(tenant)}/${key}`;
}

/** Words for the allowed tenant labels. They complete the sentence "... but must be". */
export const tenantWords = '1 to 64 of a-z, 0-9 and -';

/** Labels have no blanks and slashes, so that a tenant and what follows it can never be read as another tenant. */
export function isTenantLabel(label: unknown): label is string {
  return typeof label === 'string' && /^[a-z0-9-]{1,64}$/.test(label);
}

/** Returns the label, or throws `bad-config`. */
export function checkedTenant(tenant: string): string {
  if (isTenantLabel(tenant)) return tenant;
  throw new LeporelloError(
    'bad-config',
    `The tenant is ${JSON.stringify(String(tenant).slice(0, 80))}, but must be ${tenantWords}, such as a digest of a user's name in hex.`,
  );
}

/**
 * The secret for a store. Throws `bad-config` where a store was given without one: what is kept under a secret that ends with the process
 * cannot be read by the next one. A store that is our own, and ends with the process as well, gets a random one.
 */
export function secretFor(given: Store | undefined, secret: Uint8Array | undefined): Uint8Array {
  if (secret === undefined && given !== undefined) {
    throw new LeporelloError(
      'bad-config',
      `secret is missing, but the ${given.name} store was given: without the secret of the last start nothing in it can be read again. Make one once (openssl rand -base64 32), keep it where you keep passwords, and pass it with every start: secret: new TextEncoder().encode(text).`,
    );
  }
  return secret ?? crypto.getRandomValues(new Uint8Array(32));
}
