/**
 * Sends requests to providers over undici's keep-alive pool, one pool per origin. Bytes pass unchanged; only when a request says `decode`
 * are compressed responses decompressed. It does not retry, follow redirects or keep cookies: the client does.
 */
import { type Duplex, pipeline, type Readable } from 'node:stream';
import type * as undici from 'undici';
import type { Agent, buildConnector } from 'undici';
import { type HeaderList, splitUrl, type Upstream, upstreamError, type UpstreamRequest } from './http.ts';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

export type UndiciUpstreamOptions = {
  /** Maximum number of connections per origin. Default: unlimited, because a model call can use one for minutes. */
  readonly connections?: number;
  /** Milliseconds to establish a connection. Default: 10 seconds. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds from sending the request to the response's headers. Default: 15 minutes, as a complete response arrives when the model is done. */
  readonly headersTimeoutMs?: number;
  /** Milliseconds of the longest silence within a response body; 0 means unlimited. Default: 15 minutes. */
  readonly bodyTimeoutMs?: number;
  /** Milliseconds that an idle connection is kept, unless the upstream says otherwise. Default: 30 seconds, as agents pause between calls. */
  readonly keepAliveMs?: number;
};

const minute = 60_000;

export type UndiciUpstream = Upstream & {
  /** Loads undici, so that the first request need not wait for it (about 60 ms). Without a call, the first request loads it. */
  load(): Promise<void>;
  /** Closes the connections at once. Requests in progress fail. */
  cut(): Promise<void>;
};

/** Creates an upstream over the network, for http and https. */
export function undiciUpstream(options: UndiciUpstreamOptions = {}): UndiciUpstream {
  let opened: Promise<Agent> | undefined;
  let closing: Promise<void> | undefined;
  const open = (): Promise<Agent> => {
    opened ??= import('undici').then(
      (loaded) =>
        new loaded.Agent({
          connections: options.connections ?? null,
          connect: connectorThatSkips100(loaded, { timeout: options.connectTimeoutMs ?? 10_000 }),
          headersTimeout: options.headersTimeoutMs ?? 15 * minute,
          bodyTimeout: options.bodyTimeoutMs ?? 15 * minute,
          keepAliveTimeout: options.keepAliveMs ?? 30_000,
        }),
    );
    return opened;
  };
  return {
    async load() {
      await open();
    },
    async send(request) {
      const { origin, target } = splitUrl(request.url);
      const agent = await open();
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
      closing ??= open().then((agent) => agent.close());
      await closing;
    },
    cut: async () => {
      closing ??= open().then((agent) => agent.destroy());
      await closing;
    },
  };
}

/** Casts the body: undici accepts any async iterable, but its types require a Node stream. */
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
 * Returns the stream as an iterable whose early end always frees the connection. Not a generator: one that was never started runs nothing
 * when it is ended.
 */
function bytesOf(stream: Readable, errorOf: (error: unknown) => unknown): AsyncIterable<Uint8Array> {
  // A stream may fail while it is not read. The reader gets the error later.
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

type EncodedBody = { readonly headers: HeaderList; readonly body: Readable };

/**
 * Decompresses a response, for upstreams that compress although they were asked not to. Drops the headers that describe the compression. A
 * body without an encoding, or with an unknown one, is returned unchanged. Destroying the returned stream destroys the given one.
 */
function decoded(headers: HeaderList, body: Readable): EncodedBody {
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
  // The reader gets all errors from `last`.
  pipeline([body, ...stages], () => undefined);
  return {
    headers: headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length'),
    body: last,
  };
}

/** Reads the bytes of a connection before undici does. */
type StatusReader = {
  /** Announces that the next bytes are the status line of a response. */
  expectResponse(): void;
  /** Changes a status of 100 in place. */
  read(chunk: Uint8Array): void;
};

const readers = new WeakMap<object, StatusReader>();
let isSubscribed = false;

/**
 * Returns undici's connector, changed to skip an unrequested `100 Continue`, as HTTP requires of clients (RFC 9110, section 15.2). undici
 * skips all other interim responses, but treats a 100 as a server error and closes the connection. So undici is shown 102 instead of 100.
 */
function connectorThatSkips100(
  { buildConnector: buildUndiciConnector }: typeof undici,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  // One subscription for the process: undici publishes every request there, just before it writes the first byte.
  if (!isSubscribed) subscribe('undici:client:sendHeaders', onRequest);
  isSubscribed = true;
  const connect = buildUndiciConnector(options);
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

/** Wraps `read` of the socket, with which undici takes the bytes. */
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
/** The bytes before the status. */
const version = new TextEncoder().encode('HTTP/1.1 ');
const minorVersion = version.length - 2;

function createStatusReader(): StatusReader {
  let state: 'status' | 'interim' | 'final' = 'status';
  /** Number of bytes of the status line that have arrived. */
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
    // After a 101 the connection uses another protocol.
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
