/**
 * Sends requests to providers over undici's keep-alive pool, one pool per origin. Bytes go out and come back as they are; only
 * where a request says `decode` are compressed responses unpacked. No retries, no redirects, no cookies: a gateway passes those on.
 */
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { Agent, buildConnector } from 'undici';
import { type HeaderList, splitUrl, type Upstream, upstreamError, type UpstreamRequest } from './http.ts';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

export type UndiciUpstreamOptions = {
  /** Connections per origin; no bound by default, as a model call can hold one for minutes. */
  readonly connections?: number;
  /** Until a connection stands, in ms. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** From the request being sent to the response's headers, in ms. Default 15 min: plain responses come when the model is done. */
  readonly headersTimeoutMs?: number;
  /** Longest silence within a response body, in ms; 0 is for ever. Default 15 min. */
  readonly bodyTimeoutMs?: number;
  /** How long an idle connection is kept, in ms, unless the upstream says. Default 30 s: agents pause between calls. */
  readonly keepAliveMs?: number;
};

const minute = 60_000;

export type UndiciUpstream = Upstream & {
  /** Closes the connections at once, whatever is under way: it fails. */
  cut(): Promise<void>;
};

/** An upstream over the network, http and https. */
export function undiciUpstream(options: UndiciUpstreamOptions = {}): UndiciUpstream {
  const agent = new Agent({
    connections: options.connections ?? null,
    connect: connectorThatSkips100({ timeout: options.connectTimeoutMs ?? 10_000 }),
    headersTimeout: options.headersTimeoutMs ?? 15 * minute,
    bodyTimeout: options.bodyTimeoutMs ?? 15 * minute,
    keepAliveTimeout: options.keepAliveMs ?? 30_000,
  });
  let closing: Promise<void> | undefined;
  return {
    async send(request) {
      const { origin, target } = splitUrl(request.url);
      const { method, headers, body, signal } = request;
      const response = await agent
        .request({ origin, path: target, method, headers: headers.flat(), body: toBody(body), signal })
        .catch((error: unknown) => {
          throw upstreamError(error, origin, signal);
        });
      const plain = { headers: listOf(response.headers), body: response.body };
      const unpacks =
        request.decode === true && method !== 'HEAD' && ![204, 304].includes(response.statusCode);
      const given = unpacks ? decoded(plain.headers, plain.body) : plain;
      return {
        status: response.statusCode,
        headers: given.headers,
        body: bytesOf(given.body, (error) => upstreamError(error, origin, signal)),
      };
    },
    close: async () => {
      closing ??= agent.close();
      await closing;
    },
    cut: async () => {
      closing ??= agent.destroy();
      await closing;
    },
  };
}

/** undici's types want a node stream where its code takes any async iterable. */
function toBody(body: UpstreamRequest['body']): Uint8Array | Readable | null {
  return body === undefined ? null : (body as Uint8Array | Readable);
}

function listOf(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderList {
  const list: [string, string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') list.push([name, value]);
    else for (const one of value ?? []) list.push([name, one]);
  }
  return list;
}

/**
 * The stream as an iterable whose early end always frees the connection. A generator would not do: one that was never started
 * runs nothing when it is ended.
 */
function bytesOf(stream: Readable, errorOf: (error: unknown) => unknown): AsyncIterable<Uint8Array> {
  // A stream may fail while nobody reads it; the reader still gets the error.
  stream.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]() {
      const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
      return {
        next: () =>
          chunks.next().catch((error: unknown) => {
            throw errorOf(error);
          }),
        return: async () => {
          stream.destroy();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
  deflate: createInflate,
};

type Encoded = { readonly headers: HeaderList; readonly body: Readable };

/**
 * The response unpacked, without the headers that spoke of the packed one. What has no encoding, or one that is not known
 * here, comes back as it is. Destroying the stream that comes back destroys the one that went in.
 */
export function decoded(headers: HeaderList, body: Readable): Encoded {
  const applied = headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== 'identity' && encoding !== '');
  if (applied.length === 0 || !applied.every((name) => Object.hasOwn(decoders, name))) {
    return { headers, body };
  }
  const stages = applied.toReversed().map((name) => decoders[name]!());
  const last = stages.at(-1)!;
  // Errors come out of `last`, where the reader stands.
  pipeline([body, ...stages], () => undefined);
  return {
    headers: headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length'),
    body: last,
  };
}

/** Reads the bytes of one connection before undici does. */
type StatusReader = {
  /** The next bytes are the status line of a response. */
  expectResponse(): void;
  /** Changes the status of a 100 in place. */
  read(chunk: Uint8Array): void;
};

const readers = new WeakMap<object, StatusReader>();
let isSubscribed = false;

/** Connects as undici does by itself. */
export function connectorThatSkips100(options: buildConnector.BuildOptions): buildConnector.connector {
  // One subscription for the process: undici tells there of every request, just before it writes the first byte.
  if (!isSubscribed) subscribe('undici:client:sendHeaders', onRequest);
  isSubscribed = true;
  const connect = buildConnector(options);
  return (target, callback) => {
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null);
      else callback(null, watched(socket));
    });
  };
}

function onRequest(message: unknown): void {
  const { socket } = message as { readonly socket: object };
  readers.get(socket)?.expectResponse();
}

/** undici takes the bytes of a socket by `read`, so that is where they are seen first. */
function watched(socket: Socket): Socket {
  const reader = createStatusReader();
  readers.set(socket, reader);
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    if (chunk instanceof Uint8Array) reader.read(chunk);
    return chunk;
  };
  return socket;
}

const LF = 10;
const CR = 13;
const DIGIT_2 = 50;
/** The bytes before the status, and the offset of its three digits. */
const version = new TextEncoder().encode('HTTP/1.1 ');
const minorVersion = version.length - 2;

function createStatusReader(): StatusReader {
  let state: 'status' | 'interim' | 'final' = 'status';
  /** So many bytes of the status line have come. */
  let at = 0;
  let digits = '';
  let isLineEmpty = false;

  function readStatus(chunk: Uint8Array, place: number): void {
    const byte = chunk[place]!;
    if (at === 0 && (byte === CR || byte === LF)) return;
    if (at < version.length) {
      if (at !== minorVersion && byte !== version[at]) state = 'final';
      at += 1;
      return;
    }
    digits += String.fromCharCode(byte);
    if (digits.length < 3) return;
    if (digits === '100') chunk[place] = DIGIT_2;
    // Behind a 101 another protocol is spoken.
    state = digits.startsWith('1') && digits !== '101' ? 'interim' : 'final';
    isLineEmpty = false;
  }

  function readInterim(byte: number): void {
    if (byte === LF && isLineEmpty) restart();
    else if (byte === LF) isLineEmpty = true;
    else if (byte !== CR) isLineEmpty = false;
  }

  function restart(): void {
    state = 'status';
    at = 0;
    digits = '';
  }

  return {
    expectResponse: restart,
    read(chunk) {
      for (let place = 0; place < chunk.length && state !== 'final'; place++) {
        if (state === 'status') readStatus(chunk, place);
        else readInterim(chunk[place]!);
      }
    },
  };
}
