/**
 * Reads bodies: to the end under a limit, or only their beginning; and decompresses request bodies. Runs on every runtime: Node's zlib is
 * used if there is one, otherwise the platform's DecompressionStream.
 */
import type { Codec } from '../../codecs/codec.ts';
import { concatBytes, parseRecord } from '../../conversation/json-scan.ts';
import { nextTurn } from '../../conversation/steps.ts';
import { LeporelloError } from '../../errors.ts';
import type { IncomingMessage } from 'node:http';
import type * as zlibTypes from 'node:zlib';
import type { HeaderList, RequestBody } from './http.ts';

/**
 * Reads the whole body into one array; a body of a single chunk is returned without copying. Stops reading and throws `body-too-large` as
 * soon as more than `maxBytes` bytes have arrived. Errors of the iteration pass through.
 */
export async function readBody(body: RequestBody | undefined, maxBytes: number): Promise<Uint8Array> {
  if (body === undefined) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new LeporelloError('body-too-large', `The body is larger than the limit of ${maxBytes} bytes.`);
    }
    chunks.push(chunk);
  }
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const whole = size <= maxCopiedBytes ? concatBytes(chunks) : await joined(chunks, size);
  if (body.ownsChunks)
    for (const { buffer, length } of chunks) if (buffer.byteLength === length) free(buffer);
  return whole;
}

/**
 * Frees the memory of a buffer, whose views are then empty. Garbage waits for a collection, and memory outside of the heap is what makes
 * V8 collect while bodies are large. Node 20 cannot free it.
 */
function free(buffer: ArrayBufferLike): void {
  (buffer as { readonly transfer?: (length: number) => unknown }).transfer?.(0);
}

/** Bytes that are copied at once. Copying more would make other requests wait. */
const maxCopiedBytes = 2 * 1024 * 1024;

/** Joins chunks, and lets other requests run in between. */
async function joined(chunks: readonly Uint8Array[], size: number): Promise<Uint8Array> {
  const whole = new Uint8Array(size);
  let at = 0;
  let pauseAt = maxCopiedBytes;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
    if (at < pauseAt) continue;
    await nextTurn();
    pauseAt = at + maxCopiedBytes;
  }
  return whole;
}

/** Copies a body of any size, and lets other requests run in between. */
export async function copyBody(body: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = new Uint8Array(body.length);
  for (let at = 0; at < body.length; at += maxCopiedBytes) {
    if (at > 0) await nextTurn();
    copy.set(body.subarray(at, at + maxCopiedBytes), at);
  }
  return copy;
}

/** Returns the body of a node:http request as an iterable with a timeout. Time counts only while the core waits for a chunk. */
export function incomingBody(
  incoming: IncomingMessage,
  ask: () => void,
  { uploadIdleMs, stall }: { readonly uploadIdleMs: number; readonly stall: () => LeporelloError },
): RequestBody {
  return {
    ownsChunks: true,
    [Symbol.asyncIterator]() {
      ask();
      // Node's own iterator would close the connection of a reader that stops early, but the answer is sent on it.
      let wake: (() => void) | undefined;
      const onEvent = (): void => wake?.();
      for (const event of bodyEvents) incoming.on(event, onEvent);
      const stop = (): void => {
        for (const event of bodyEvents) incoming.off(event, onEvent);
      };
      const more = async (): Promise<void> =>
        new Promise((resolve, reject) => {
          const timer = setTimeout(() => reject(stall()), uploadIdleMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      return {
        async next() {
          for (;;) {
            const value = incoming.destroyed ? null : (incoming.read() as Uint8Array | null);
            if (value !== null) return { done: false, value };
            // The end is known before its event, which would need another wait.
            const hasEnded = incoming.readableEnded || (incoming.complete && !incoming.destroyed);
            if (hasEnded || incoming.destroyed) stop();
            if (hasEnded) return { done: true, value: undefined };
            if (incoming.destroyed)
              throw incoming.errored ?? new Error('The client disconnected before its body was complete.');
            await more();
          }
        },
        async return() {
          stop();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

const bodyEvents = ['readable', 'end', 'error', 'close'] as const;

/** The beginning of a body as text. */
export type PeekedText = {
  /** The whole body as text; undefined when it is longer than the limit or breaks off. */
  readonly text: string | undefined;
  /** The complete body again. An error met while peeking is thrown again at the same place. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Bytes of a provider's error that are read at most. Providers send a few hundred. */
export const maxErrorBytes = 1024 * 1024;

/** Reads a body of up to `maxBytes` bytes as text, and returns the complete body again. */
export async function peekBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<PeekedText> {
  const peeked = await peekBytes(body, maxBytes);
  const { status } = peeked;
  return {
    text: status === 'whole' ? new TextDecoder().decode(peeked.bytes) : undefined,
    body: peeked.body,
  };
}

/** `too long`: the body is longer than the limit. `broken`: the body ended in an error. `body` is the complete body again. */
export type PeekedBytes = { readonly body: AsyncIterable<Uint8Array> } & (
  | { readonly status: 'whole'; readonly bytes: Uint8Array }
  | { readonly status: 'too long' }
  | { readonly status: 'broken'; readonly error: unknown }
);

/** Reads a body of up to `maxBytes` bytes, and returns the complete body again. */
export async function peekBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<PeekedBytes> {
  const chunks = body[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let size = 0;
  try {
    while (size <= maxBytes) {
      const step = await chunks.next();
      if (step.done) return { status: 'whole', bytes: concatBytes(read), body: replayed(read, chunks) };
      read.push(step.value);
      size += step.value.length;
    }
  } catch (error) {
    const again: AsyncIterator<Uint8Array> = { next: () => Promise.reject(error) };
    return { status: 'broken', error, body: replayed(read, again) };
  }
  return { status: 'too long', body: replayed(read, chunks) };
}

/**
 * Says how a model's reply is read: as a stream of events or as one JSON value. Undefined for a reply of another type, which passes through unread.
 * If the reply names no type, the request decides.
 */
export function replyKindOf(
  headers: HeaderList,
  { route }: Pick<Codec, 'route'>,
  request: Uint8Array,
): 'stream' | 'whole' | undefined {
  const named = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  const type = named.split(';', 1)[0]!.trim().toLowerCase();
  if (type === '') {
    const isStream = route?.streaming ?? parseRecord(new TextDecoder().decode(request))?.['stream'] === true;
    return isStream ? 'stream' : 'whole';
  }
  if (type === 'text/event-stream') return 'stream';
  return /^(?:application|text)\/(?!stream\+)(?:[^+]*\+)?json$/.test(type) ? 'whole' : undefined;
}

/** Ends a body that nobody reads any further, so that its connection is free again. Never rejects: nobody needs to know that it failed. */
export async function discardBody(body: AsyncIterable<Uint8Array>): Promise<void> {
  await body[Symbol.asyncIterator]()
    .return?.()
    .catch(() => undefined);
}

/** Yields the chunks already read, then the rest. Not a generator: one that is returned before its first `next()` would not end `rest`. */
function replayed(read: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  let at = 0;
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const value = read[at++];
        return value === undefined ? rest.next() : { done: false, value };
      },
      async return() {
        await rest.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

/** Returns the stream as an iterable. Ending the iteration, even before the first `next()`, cancels the stream. */
export function iterate(stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream.getReader();
      return {
        next: async () => {
          const { done, value } = await reader.read();
          return done ? { done, value: undefined } : { done, value };
        },
        return: async () => {
          await reader.cancel();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** A request body as the client sent it, and decompressed. */
export type ReceivedBody = {
  /** The client's own bytes, compressed or not. */
  readonly wire: Uint8Array;
  /** The decompressed bytes; `wire` itself when it is not compressed or cannot be decompressed. */
  readonly body: Uint8Array;
  /** The reason why the body cannot be read; undefined when it can. */
  readonly unreadReason: string | undefined;
};

/**
 * Decompresses a request body, so that it can be read and folded. The client's bytes are kept, to be sent when nothing changes. Throws
 * `body-too-large` for more than `maxBytes` decompressed bytes, and never holds more than that.
 */
export async function unpackBody(
  headers: HeaderList,
  wire: Uint8Array,
  maxBytes: number,
): Promise<ReceivedBody> {
  const applied = codingsOf(headers);
  const [coding] = applied;
  if (coding === undefined) return { wire, body: wire, unreadReason: undefined };
  const unread = (reason: string): ReceivedBody => ({ wire, body: wire, unreadReason: reason });
  if (applied.length > 1)
    return unread(`the body is compressed more than once (${sanitized(applied.join(', '))})`);
  const unpacked = unpack(coding, wire);
  if (!unpacked) return unread(`the gateway cannot read this content-encoding (${sanitized(coding)})`);
  try {
    return { wire, body: await readBody(unpacked, maxBytes), unreadReason: undefined };
  } catch (error) {
    if (LeporelloError.isInstance(error) && error.code === 'body-too-large') throw error;
    return unread(
      `the body cannot be decompressed with its content-encoding (${sanitized(coding)}): correct or remove that header`,
    );
  }
}

/** The option that limits request bodies, and its variable. */
const bodyLimit = 'limits.maxBodyBytes (LEPORELLO_LIMITS_MAX_BODY_BYTES)';

/**
 * Reads a whole request body and decompresses it. Throws `body-too-large` for more than `maxBytes` bytes, with the size of the body and the
 * name of the limit. `limit`: another one than the option.
 */
export async function receiveBody(
  { headers, body }: { readonly headers: HeaderList; readonly body: AsyncIterable<Uint8Array> | undefined },
  maxBytes: number,
  limit?: string,
): Promise<ReceivedBody> {
  try {
    return await unpackBody(headers, await readBody(body, maxBytes), maxBytes);
  } catch (cause) {
    if (!LeporelloError.isInstance(cause) || cause.code !== 'body-too-large') throw cause;
    const announced = Number(headers.find(([name]) => name === 'content-length')?.[1]);
    const size =
      announced > maxBytes
        ? `${announced} bytes`
        : `more than ${maxBytes} bytes${codingsOf(headers).length > 0 ? ' when decompressed' : ''}`;
    const advice = limit === undefined ? 'send a smaller body, or raise that limit' : 'send a smaller body';
    throw new LeporelloError(
      'body-too-large',
      `The body has ${size}, but ${limit ?? bodyLimit} allows only ${maxBytes}: ${advice}.`,
      { cause },
    );
  }
}

/** Returns the encodings of the body in the order in which they were applied, without `identity`. */
function codingsOf(headers: HeaderList): readonly string[] {
  return headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
}

/** Returns a name from the client in a form that is safe to log. */
function sanitized(coding: string): string {
  return coding.slice(0, 40).replaceAll(/[^\w, -]/g, '?');
}

/** Decompresses; undefined for an encoding that this runtime does not know. */
function unpack(coding: string, packed: Uint8Array): AsyncIterable<Uint8Array> | undefined {
  const decoder = zlibDecoder(coding);
  if (decoder) {
    decoder.end(packed);
    return decoder as AsyncIterable<Uint8Array>;
  }
  return platformDecoder(coding, packed);
}

type Zlib = Pick<
  typeof zlibTypes,
  'constants' | 'createBrotliDecompress' | 'createGunzip' | 'createInflate' | 'createZstdDecompress'
>;

type NodeProcess = { readonly getBuiltinModule?: (name: 'node:zlib') => Zlib };

/** Returns Node's decoder. The module is not imported, because this file must also load on runtimes without it. */
function zlibDecoder(coding: string) {
  const zlib = (globalThis as { readonly process?: NodeProcess }).process?.getBuiltinModule?.('node:zlib');
  if (!zlib) return undefined;
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip({ chunkSize });
    case 'deflate':
      return zlib.createInflate({ chunkSize });
    case 'br':
      return zlib.createBrotliDecompress({ chunkSize });
    case 'zstd': {
      // Over HTTP the zstd window is at most 8 MiB (RFC 9659); a larger one would only cost memory.
      const params = { [zlib.constants.ZSTD_d_windowLogMax]: 23 };
      return zlib.createZstdDecompress({ chunkSize, params });
    }
    default:
      return undefined;
  }
}

const chunkSize = 64 * 1024;

/** The platform's names of the encodings. Not every platform supports all of them. */
const platformNames: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
  zstd: 'zstd',
};

function platformDecoder(coding: string, packed: Uint8Array): AsyncIterable<Uint8Array> | undefined {
  const name = Object.hasOwn(platformNames, coding) ? platformNames[coding] : undefined;
  if (name === undefined) return undefined;
  try {
    const decoder = new DecompressionStream(name as CompressionFormat);
    const bytes = new Blob([packed as Uint8Array<ArrayBuffer>]).stream();
    return iterate(bytes.pipeThrough(decoder));
  } catch {
    return undefined;
  }
}
