/**
 * Implements the store in a service of the user's own: over HTTP (docs/http-store.md specifies the calls), or with the two functions that
 * every memory service has. A value is encrypted before it gets here, so the service sees only keys and sizes.
 */
import { baseUrlWords, isBaseUrl, maxTimerMs } from '../checks.ts';
import { LeporelloError } from '../errors.ts';
import { fromBase64, toBase64 } from './platform.ts';
import { type Clock, type FirstFound, type Store, type StoreEntry, originalPrefix } from './store.ts';

export type HttpStoreOptions = {
  /** The base URL of the service, without user, query and fragment, such as https://memory.internal/leporello. */
  readonly url: string;
  /** Headers of every call, such as `authorization`. Errors never show them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How long a call may take, in milliseconds. Default 400, less than a store's deadline (store.ts). */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
  /** Makes the calls. Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
};

/**
 * Opens a store in a service. It does not wait for the service: calls reject with `store-failed` while it cannot be reached. Throws
 * `bad-config` for a URL that is not allowed.
 *
 * @example
 * const store = httpStore({ url: 'http://127.0.0.1:7070', headers: { authorization: `Bearer ${process.env.MEMORY_TOKEN}` } });
 */
export function httpStore(options: HttpStoreOptions): Store {
  const { headers = {}, timeoutMs = 400, clock = Date.now } = options;
  const base = baseUrlOf(options.url);
  const lifetime = createLifetime(`The HTTP store at ${base}`);

  /** Makes one call and returns the members of its answer. */
  async function call(name: CallName, content: object): Promise<Readonly<Record<string, unknown>>> {
    const failed = (why: string, cause?: unknown) =>
      new LeporelloError('store-failed', `The HTTP store at ${base} failed at ${name}: ${why}`, { cause });
    let response: Response;
    let text: string;
    try {
      response = await (options.fetch ?? fetch)(`${base}/${name}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ ...content, now: clock() }),
        redirect: 'error',
        signal: AbortSignal.timeout(Math.min(timeoutMs, maxTimerMs)),
      });
      text = await response.text();
    } catch (error) {
      throw failed(whyUnreachable(error, timeoutMs), error);
    }
    if (!response.ok) throw failed(`it answered with status ${response.status}.`);
    const answer = parsed(text);
    if (answer === undefined) throw failed('its answer is not a JSON object.');
    return answer;
  }

  function read(name: CallName, content: object) {
    return lifetime.tracked(() => call(name, content));
  }

  function write(name: CallName, content: object) {
    return lifetime.inOrder(() => call(name, content));
  }

  function malformed(name: CallName, form: string): LeporelloError {
    return new LeporelloError(
      'store-failed',
      `The HTTP store at ${base} failed at ${name}: its answer has no ${form}. docs/http-store.md shows the answers.`,
    );
  }

  async function getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    lifetime.checkOpen();
    if (keys.length === 0) return [];
    const { values } = await read('get-many', { keys });
    if (!Array.isArray(values) || values.length !== keys.length || !values.every(isValue))
      throw malformed('get-many', `list 'values' of ${keys.length} base64 texts or nulls`);
    return values.map((value) => (value === null ? undefined : fromBase64(value)));
  }

  function foundIn(name: CallName, { found }: Readonly<Record<string, unknown>>): FirstFound | undefined {
    if (found === null) return undefined;
    if (!isFound(found)) throw malformed(name, "member 'found': null, or an object with at and value");
    return { at: found.at, value: fromBase64(found.value) };
  }

  return {
    name: 'http',
    get: async (key) => (await getMany([key]))[0],
    getMany,
    async getFirst(keys) {
      lifetime.checkOpen();
      return keys.length === 0 ? undefined : foundIn('get-first', await read('get-first', { keys }));
    },
    async putMany(entries) {
      lifetime.checkOpen();
      if (entries.length > 0) await write('put-many', { entries: entries.map(spelledEntry) });
    },
    async putUnless(guards, entries) {
      lifetime.checkOpen();
      const content = { guards, entries: entries.map(spelledEntry) };
      return foundIn('put-unless', await write('put-unless', content));
    },
    async touch(keys, expiresAt) {
      lifetime.checkOpen();
      if (keys.length > 0) await write('touch', { keys, expiresAt: spelledExpiry(expiresAt) });
    },
    async delete(keys) {
      lifetime.checkOpen();
      if (keys.length > 0) await write('delete', { keys });
    },
    close: () => lifetime.close(),
  };
}

type CallName = 'get-many' | 'get-first' | 'put-many' | 'put-unless' | 'touch' | 'delete';

function baseUrlOf(url: string): string {
  if (isBaseUrl(url)) return url.replace(/(?<!\/)\/+$/, '');
  throw new LeporelloError(
    'bad-config',
    `The url of the HTTP store must be ${baseUrlWords} https://memory.internal/leporello. Put a credential into headers.`,
  );
}

function whyUnreachable(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return 'it cannot be reached.';
  if (error.name === 'TimeoutError') return `it did not answer within ${timeoutMs} ms.`;
  const { cause } = error;
  return `it cannot be reached: ${cause instanceof Error ? cause.message || cause.name : error.message}.`;
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function isValue(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function isFound(value: unknown): value is { readonly at: number; readonly value: string } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'at' in value &&
    typeof value.at === 'number' &&
    'value' in value &&
    typeof value.value === 'string'
  );
}

function spelledEntry({ key, value, expiresAt }: StoreEntry) {
  return { key, value: toBase64(value), expiresAt: spelledExpiry(expiresAt) };
}

/** JSON has no infinity, so an entry that never expires has `null`. */
function spelledExpiry(expiresAt: number | undefined): number | null {
  return expiresAt === undefined || expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt;
}

/** A memory service with two calls. */
export type MemoryService = {
  /** Saves a value under a key, in place of the value before. Resolves when it is saved. */
  save(key: string, value: Uint8Array): Promise<void>;
  /** Returns the value that was saved last under a key; undefined or null if there is none. */
  read(key: string): Promise<Uint8Array | undefined | null>;
};

/**
 * Makes a store of a service with two calls. Such a service cannot do everything that a store promises: (1) The entries of one write are saved
 * 16 at a time, and a crash in between leaves some of them. Originals are saved before the fold that needs them, so no fold refers to a missing
 * original. (2) Only one process may use the service, because nothing keeps two processes from writing the
 * same fold. (3) Nothing is ever removed: an expired or deleted entry stays in the service, as an empty value if it was deleted.
 *
 * @example
 * const store = storeOfService({ save: (key, value) => kv.put(key, value), read: (key) => kv.get(key) });
 */
export function storeOfService(
  service: MemoryService,
  { clock = Date.now }: { readonly clock?: Clock } = {},
): Store {
  const lifetime = createLifetime('The store of a service');

  async function read(key: string): Promise<SavedValue | undefined> {
    const saved = await asked('read', async () => savedIn(await service.read(key)));
    return saved && saved.expiresAt > clock() ? saved : undefined;
  }

  async function getFirst(keys: readonly string[]): Promise<FirstFound | undefined> {
    const found = await Promise.all(keys.map(read));
    const at = found.findIndex((saved) => saved !== undefined);
    return at < 0 ? undefined : { at, value: found[at]!.value };
  }

  const save = (key: string, value: Uint8Array) => asked('save', () => service.save(key, value));

  async function saveAll(values: readonly Saved[]): Promise<void> {
    const originals = values.filter(isOriginal);
    const others = values.filter((value) => !isOriginal(value));
    for (const group of [originals, others]) await inWaves(group, ([key, value]) => save(key, value));
  }

  async function renew(key: string, expiresAt: number): Promise<void> {
    const saved = await read(key);
    if (saved && saved.expiresAt < expiresAt) await save(key, withExpiry(saved.value, expiresAt));
  }

  return {
    name: 'service',
    async get(key) {
      lifetime.checkOpen();
      return (await lifetime.tracked(() => read(key)))?.value;
    },
    async getMany(keys) {
      lifetime.checkOpen();
      const found = await lifetime.tracked(() => Promise.all(keys.map(read)));
      return found.map((saved) => saved?.value);
    },
    async getFirst(keys) {
      lifetime.checkOpen();
      return lifetime.tracked(() => getFirst(keys));
    },
    async putMany(entries) {
      lifetime.checkOpen();
      const values = entries.map(toSave);
      await lifetime.inOrder(() => saveAll(values));
    },
    async putUnless(guards, entries) {
      lifetime.checkOpen();
      const values = entries.map(toSave);
      return lifetime.inOrder(async () => {
        const guard = await getFirst(guards);
        if (guard === undefined) await saveAll(values);
        return guard;
      });
    },
    async touch(keys, expiresAt) {
      lifetime.checkOpen();
      await lifetime.inOrder(() => inWaves([...new Set(keys)], (key) => renew(key, expiresAt)));
    },
    async delete(keys) {
      lifetime.checkOpen();
      await lifetime.inOrder(() => inWaves([...new Set(keys)], (key) => save(key, new Uint8Array(0))));
    },
    close: () => lifetime.close(),
  };
}

/** A key with the value to save under it. */
type Saved = readonly [string, Uint8Array];

const isOriginal = ([key]: Saved): boolean => key.startsWith(originalPrefix);

/** Calls of a memory service at a time. One after the other, a fold with 25 originals would miss the deadline of a write. */
const callsAtOnce = 16;

/** Works on several values at a time. After a failure no further ones begin; it rejects when those in progress have ended. */
async function inWaves<T>(values: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < values.length; from += callsAtOnce) {
    const ended = await Promise.allSettled(values.slice(from, from + callsAtOnce).map(work));
    const failed = ended.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }
}

/** Makes a call of a memory service. Rejects with `store-failed`. */
async function asked<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new LeporelloError('store-failed', `The memory service could not ${what}: ${said}`, { cause });
  }
}

// A saved value is a format byte, the expiry (8 bytes, a double, big-endian, Infinity for never), and the value itself. Anything else
// counts as absent.

type SavedValue = { readonly value: Uint8Array; readonly expiresAt: number };

const format = 1;
const headBytes = 9;

function toSave({ key, value, expiresAt }: StoreEntry): Saved {
  return [key, withExpiry(value, expiresAt ?? Number.POSITIVE_INFINITY)];
}

function withExpiry(value: Uint8Array, expiresAt: number): Uint8Array {
  const saved = new Uint8Array(headBytes + value.length);
  saved[0] = format;
  new DataView(saved.buffer).setFloat64(1, expiresAt);
  saved.set(value, headBytes);
  return saved;
}

function savedIn(saved: Uint8Array | undefined | null): SavedValue | undefined {
  if (saved === undefined || saved === null) return undefined;
  if (!(saved instanceof Uint8Array))
    throw new TypeError(`its value is ${typeof saved}, not a Uint8Array; decode it in \`read\``);
  if (saved.length < headBytes || saved[0] !== format) return undefined;
  const view = new DataView(saved.buffer, saved.byteOffset, saved.byteLength);
  return { value: new Uint8Array(saved.subarray(headBytes)), expiresAt: view.getFloat64(1) };
}

/** Keeps track of the calls of a store: runs writes in the order in which they were made, and waits for all calls when it is closed. */
function createLifetime(place: string) {
  const pending = new Set<Promise<unknown>>();
  let lastWrite: Promise<unknown> = Promise.resolve();
  let closing: Promise<void> | undefined;

  function tracked<T>(work: () => Promise<T>): Promise<T> {
    const running = work().finally(() => pending.delete(running));
    pending.add(running);
    return running;
  }

  return {
    tracked,
    inOrder<T>(work: () => Promise<T>): Promise<T> {
      const before = lastWrite;
      const running = tracked(async () => {
        await before;
        return work();
      });
      lastWrite = running.catch(() => undefined);
      return running;
    },
    checkOpen() {
      if (closing !== undefined)
        throw new LeporelloError('store-failed', `${place} is closed: open it again.`);
    },
    close(): Promise<void> {
      closing ??= Promise.allSettled(pending).then(() => undefined);
      return closing;
    },
  };
}
