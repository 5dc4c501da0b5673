/**
 * Encodes the records of the store, so that only the holder of the secret can read them, and decodes them: JSON with a version,
 * compressed, then encrypted with AES-256-GCM under a key of the tenant. The end of the file defines the records of folds, and renews
 * records that are used. A sealed record:
 *
 *     format (1 byte) | length of the tenant label (1) | tenant label | nonce (12) | ciphertext | tag (16)
 *
 * Format, label and key in the store are authenticated: a record moved to another key does not decrypt. The format byte says
 * how the content is compressed. Small content is compressed at once and large content in Node's thread pool, so the event loop
 * is never blocked for long.
 */
import type { KeyObject } from 'node:crypto';
import { createCaches, openFixed } from '../caches.ts';
import { concatBytes, literalContent } from '../conversation/json-scan.ts';
import { piecesOfText } from '../conversation/messages.ts';
import { type Steps, nextTurn } from '../conversation/steps.ts';
import { LeporelloError } from '../errors.ts';
import type { Fold, SentWith } from './folds.ts';
import { node, web } from './platform.ts';
import type { Clock, Store } from './store.ts';

export type Sealer = {
  /** Encrypts content. `tenant`: at most 255 ASCII characters. `place`: the key that the record is stored under. */
  seal(tenant: string, place: string, content: Uint8Array | Packed): Promise<Uint8Array>;
  /** Decrypts a record. Returns undefined if it was not sealed with this secret for this place, or if a bit changed. */
  unseal(record: Uint8Array, place: string): Promise<Unsealed | undefined>;
};

export type Unsealed = { readonly tenant: string; readonly content: Uint8Array };

const cipherName = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createSealer(secret: Uint8Array): Sealer {
  // Key objects: with raw bytes, Node imports the key at each use, four times slower.
  const keys = openFixed<string, TenantKey>('tenant keys');

  function keyOf(tenant: string): TenantKey {
    const known = keys.get(tenant);
    if (known) return known;
    const bytes = deriveKey(secret, `seal ${tenant}`);
    const key: TenantKey = { bytes, object: node?.crypto.createSecretKey(bytes) };
    keys.set(tenant, key);
    return key;
  }

  return {
    async seal(tenant, place, content) {
      const { format, bytes } = content instanceof Uint8Array ? await pack(content) : content;
      const label = encoder.encode(tenant);
      const header = new Uint8Array([format, label.length, ...label]);
      // Random nonces are safe for 2^32 records of one tenant (NIST SP 800-38D, 8.3).
      const nonce = crypto.getRandomValues(new Uint8Array(nonceBytes));
      const said = concatBytes([header, encoder.encode(place)]);
      const key = keyOf(tenant);
      if (!node || !key.object)
        return concatBytes([
          header,
          nonce,
          await web.encrypt({ key: key.bytes, nonce, header: said }, bytes),
        ]);
      const cipher = node.crypto.createCipheriv(cipherName, key.object, nonce, { authTagLength: tagBytes });
      cipher.setAAD(said);
      const encrypted = cipher.update(bytes);
      cipher.final();
      return concatBytes([header, nonce, encrypted, cipher.getAuthTag()]);
    },

    async unseal(record, place) {
      const format = record[0];
      const contentStart = 2 + (record[1] ?? 0) + nonceBytes;
      if (format === undefined || record.length < contentStart + tagBytes) return undefined;
      const header = record.subarray(0, contentStart - nonceBytes);
      const tenant = decoder.decode(header.subarray(2));
      const nonce = record.subarray(header.length, contentStart);
      const said = concatBytes([header, encoder.encode(place)]);
      const key = keyOf(tenant);
      try {
        if (!node || !key.object) {
          const sealed = record.subarray(contentStart);
          const bytes = await web.decrypt({ key: key.bytes, nonce, header: said }, sealed);
          return { tenant, content: await unpack({ format, bytes }) };
        }
        const options = { authTagLength: tagBytes };
        const decipher = node.crypto.createDecipheriv(cipherName, key.object, nonce, options);
        decipher.setAAD(said);
        decipher.setAuthTag(record.subarray(-tagBytes));
        const bytes = decipher.update(record.subarray(contentStart, -tagBytes));
        decipher.final();
        return { tenant, content: await unpack({ format, bytes: concatBytes([bytes]) }) };
      } catch {
        // The record is not ours. Node's message about a wrong tag helps nobody.
        return undefined;
      }
    },
  };
}

/** A key of a tenant, and the object that Node makes of it. */
type TenantKey = { readonly bytes: Uint8Array; readonly object: KeyObject | undefined };

/** Derives a 32-byte key for one purpose: HKDF-SHA256 (RFC 5869) with one block. */
export function deriveKey(secret: Uint8Array, purpose: string): Uint8Array {
  const extracted = macWith(encoder.encode('leporello memory 1'))(secret);
  return macWith(extracted)(encoder.encode(`${purpose}\u0001`));
}

/** Returns HMAC-SHA256 with a key of at most 64 bytes (RFC 2104): two digests of a short text take a tenth of the time of Node's Hmac object. */
export function macWith(key: Uint8Array): (...pieces: readonly Uint8Array[]) => Uint8Array {
  const padded = (byte: number) => new Uint8Array(64).fill(byte).map((pad, at) => pad ^ (key[at] ?? 0));
  const [inner, outer] = [padded(0x36), padded(0x5c)];
  return (...pieces) => digestOf(outer, digestOf(inner, ...pieces));
}

function digestOf(...pieces: readonly Uint8Array[]): Uint8Array {
  if (node) return node.crypto.hash('sha256', node.Buffer.concat(pieces), 'buffer');
  return web.sha256(concatBytes(pieces));
}

/** Record formats. High four bits: version of the record. Low four bits: compression of its content. */
export const formats = { stored: 0x10, deflated: 0x11, zstd: 0x12 } as const;

export type Packed = { readonly format: number; readonly bytes: Uint8Array };

/** Measured on recorded tool output, Node 24: zstd takes 0.2 ms for 64 kB at once, 0.5 ms through the thread pool. */
const largeBytes = 64 * 1024;

/** Content up to this size is not compressed: starting a compressor takes 30 us and saves nothing. Records of sent requests are shorter. */
const smallBytes = 200;

// Some runtimes have node:zlib without zstd, and browsers have no zstd. They cannot read what others compressed with it.
const best = node && 'zstdCompress' in node.zlib ? formats.zstd : formats.deflated;

/** Compresses content; content that does not get smaller is stored as it is. */
export async function pack(bytes: Uint8Array, format: number = best): Promise<Packed> {
  if (bytes.length <= smallBytes) return { format: formats.stored, bytes };
  const packed = await compress(bytes, format);
  return packed.length < bytes.length ? { format, bytes: packed } : { format: formats.stored, bytes };
}

/** Decompresses content. Throws for an unknown format and for damaged content. */
export async function unpack({ format, bytes }: Packed): Promise<Uint8Array> {
  if (format === formats.stored) return bytes;
  if (!node && format === formats.deflated) return web.inflate(bytes);
  if (!node || (format !== formats.deflated && format !== formats.zstd))
    throw new Error(`The record has the unknown format ${format}.`);
  const { zlib, promisify } = node;
  const large = bytes.length > largeBytes;
  if (format === formats.deflated)
    return plain(large ? await promisify(zlib.inflateRaw)(bytes) : zlib.inflateRawSync(bytes));
  return plain(large ? await promisify(zlib.zstdDecompress)(bytes) : zlib.zstdDecompressSync(bytes));
}

async function compress(bytes: Uint8Array, format: number): Promise<Uint8Array> {
  if (format === formats.stored) return bytes;
  if (!node && format === formats.deflated) return web.deflate(bytes);
  if (!node || (format !== formats.deflated && format !== formats.zstd))
    throw new Error(`Records cannot be written in format ${format}.`);
  const { zlib, promisify } = node;
  const large = bytes.length > largeBytes;
  if (format === formats.deflated) {
    const options = { level: 1 };
    return large ? promisify(zlib.deflateRaw)(bytes, options) : zlib.deflateRawSync(bytes, options);
  }
  // Most results fit into half of the content. The default, 128 kB for each call, takes a fifth of the time of a short one.
  const chunkSize = Math.max(1_024, bytes.length >> 1);
  const options = { chunkSize, params: { [zlib.constants.ZSTD_c_compressionLevel]: 3 } };
  return large ? promisify(zlib.zstdCompress)(bytes, options) : zlib.zstdCompressSync(bytes, options);
}

/** Returns a plain Uint8Array view of a Node buffer. */
function plain(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

// The content of our records: JSON with a version. It is encrypted by us, so only its version is checked; a record of a later version
// counts as absent.

const VERSION = 1;

export function encodeRecord(record: object): Uint8Array {
  return encoder.encode(JSON.stringify({ version: VERSION, ...record }));
}

/** Decodes a record; undefined for one of a later version. `what` names its kind in errors. Throws `store-failed` for bytes that are not JSON. */
export function decodeRecord(bytes: Uint8Array, what: string): unknown {
  try {
    const { version, ...kept } = JSON.parse(new TextDecoder().decode(bytes)) as { readonly version: number };
    return version === VERSION ? kept : undefined;
  } catch (cause) {
    const message = `${what} in the store is not JSON. Delete the data folder to start with an empty store.`;
    throw new LeporelloError('store-failed', message, { cause });
  }
}

// Records of folds: a fold, and the fold that a request was sent with; their keys and their format on disk.

export const foldKeys = {
  fold: (link: string) => `fold/${link}`,
  sentWith: (link: string) => `sent/${link}`,
  prefixFold: (link: string) => `near/${link}`,
};

/** Fields that records on disk call by an older name. */
const namesOnDisk: readonly (readonly [name: keyof Fold, onDisk: string])[] = [
  ['foldingDisabled', 'alone'],
  ['foldingDisabledSince', 'aloneSince'],
];

/** Encodes a fold, with or without its id. Fields keep their order, since the id is a digest of the bytes. */
export function encodeFold(fold: Omit<Fold, 'id'>): Uint8Array {
  return encodeRecord(renamed(fold, new Map<string, string>(namesOnDisk)));
}

/** UTF-16 units of a text that are encoded at once: 1 to 5 ms. */
const pieceUnits = 65_536;

/** Edits that are encoded at once: about a millisecond. */
const editsPerStep = 1_000;

/** Encodes a fold to the same bytes as `encodeFold`, in steps: it may have 100,000 edits, and a text in it may have megabytes. */
export function* encodeFoldInSteps(fold: Omit<Fold, 'id'>): Steps<Uint8Array> {
  const record = { version: VERSION, ...renamed(fold, new Map<string, string>(namesOnDisk)) };
  const pieces: Uint8Array[] = [];
  let before = '{';
  for (const [name, value] of Object.entries(record)) {
    if (value === undefined) continue;
    pieces.push(encoder.encode(`${before}${JSON.stringify(name)}:`));
    before = ',';
    if (name === 'edits') yield* encodeEdits(fold.edits, pieces);
    else pieces.push(encoder.encode(JSON.stringify(value)));
  }
  pieces.push(encoder.encode('}'));
  return concatBytes(pieces);
}

function* encodeEdits(edits: Fold['edits'], into: Uint8Array[]): Steps<void> {
  into.push(encoder.encode('['));
  for (let at = 0; at < edits.length; at += editsPerStep) {
    const some = edits.slice(at, at + editsPerStep);
    if (at > 0) into.push(encoder.encode(','));
    if (some.some(hasLongText)) yield* encodeWithLongTexts(some, into);
    else into.push(encoder.encode(JSON.stringify(some).slice(1, -1)));
    yield;
  }
  into.push(encoder.encode(']'));
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > pieceUnits;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLongText);
}

function* encodeWithLongTexts(edits: Fold['edits'], into: Uint8Array[]): Steps<void> {
  // It stands for a long text, and no text contains it. Edge runtimes have no random numbers while a module is loaded.
  const longTextMark = `long text ${crypto.getRandomValues(new Uint32Array(4)).join(' ')}`;
  const longTexts: string[] = [];
  // Without a function, `JSON.stringify` is ten times as fast.
  const json = JSON.stringify(edits, (_, value: unknown) => {
    if (typeof value !== 'string' || value.length <= pieceUnits) return value;
    longTexts.push(value);
    return longTextMark;
  });
  for (const [index, part] of json.slice(1, -1).split(longTextMark).entries()) {
    into.push(encoder.encode(part));
    yield;
    for (const piece of piecesOfText(longTexts[index] ?? '', pieceUnits)) {
      into.push(literalContent(piece));
      yield;
    }
  }
}

/** Adds the id to the bytes of a fold without one. */
export function withFoldId(fold: Uint8Array, id: string): Uint8Array {
  return concatBytes([fold.subarray(0, -1), encoder.encode(`,"id":${JSON.stringify(id)}}`)]);
}

/** Reads a fold; undefined if it is missing or of a later version. Returns `here` if it is the same fold, for what others remember of it. */
export function parseFold(record: Uint8Array | undefined, here?: Fold): Fold | undefined {
  const stored = record && (decodeRecord(record, 'A fold') as object | undefined);
  if (stored === undefined) return undefined;
  const fold = renamed(stored, new Map(namesOnDisk.map(([name, onDisk]) => [onDisk, name]))) as Fold;
  return fold.id === here?.id ? here : fold;
}

function renamed(record: object, names: ReadonlyMap<string, string>): object {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [names.get(name) ?? name, value]));
}

/** Reads the record of a sent request; undefined for one that is missing or of a later version. */
export function parseSentWith(record: Uint8Array | undefined): SentWith | undefined {
  return record && (decodeRecord(record, 'The record of a sent request') as SentWith | undefined);
}

// Renewals extend the retention of records from their last use. Renewing is a write, so not every use renews: a record is renewed
// when a tenth of its retention, at most one day, has passed since this process last wrote or renewed it. Nobody waits for a
// renewal, and a failed one is left to a use a minute later. Records used in one turn of the event loop are renewed together.

export type Renewals = {
  /** Notes that these keys were written just now. */
  written(keys: readonly string[]): void;
  /** Notes that a record is used now and must be kept for `ttlMs` from now on. Returns at once. */
  used(key: string, ttlMs: number, known?: RecordUse): void;
};

type RecordUse = {
  /** When the record was written, in milliseconds since the epoch, if the record says so. */
  readonly writtenAt?: number | undefined;
  /** Further keys that are renewed together with this one. */
  readonly along?: () => readonly string[];
};

const dayMs = 24 * 60 * 60 * 1_000;
const renewAfterMs = (ttlMs: number): number => Math.min(ttlMs / 10, dayMs);
const retryMs = 60_000;
/** Keys that one call of the store renews: some stores read and write each, and all of it must end within one deadline. */
const renewedAtOnce = 64;

export function createRenewals(store: Pick<Store, 'touch'>, clock: Clock, caches = createCaches()): Renewals {
  const freshAt = caches<number>('fresh records');
  /** Keys to renew, by their retention in milliseconds. */
  const due = new Map<number, string[]>();

  function renewLater(keys: readonly string[], ttlMs: number): void {
    if (due.size === 0) void nextTurn().then(renewDue);
    const others = due.get(ttlMs);
    if (others) for (const key of keys) others.push(key);
    else due.set(ttlMs, [...keys]);
  }

  function renewDue(): void {
    for (const [ttlMs, keys] of due) void renew(keys, ttlMs);
    due.clear();
  }

  async function renew(keys: readonly string[], ttlMs: number): Promise<void> {
    let from = 0;
    try {
      for (; from < keys.length; from += renewedAtOnce)
        await store.touch(keys.slice(from, from + renewedAtOnce), clock() + ttlMs);
    } catch {
      for (const key of keys.slice(from)) freshAt.set(key, clock() - renewAfterMs(ttlMs) + retryMs);
    }
  }

  return {
    written(keys) {
      const now = clock();
      for (const key of keys) freshAt.set(key, now);
    },
    used(key, ttlMs, { writtenAt = Number.NEGATIVE_INFINITY, along } = {}) {
      const now = clock();
      const latest = now - renewAfterMs(ttlMs);
      if ((freshAt.get(key) ?? Number.NEGATIVE_INFINITY) > latest) return;
      const isFresh = writtenAt > latest;
      freshAt.set(key, isFresh ? writtenAt : now);
      if (!isFresh) renewLater([key, ...(along?.() ?? [])], ttlMs);
    },
  };
}
