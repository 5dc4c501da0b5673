/**
 * Sends requests to providers over undici's keep-alive pool, one pool per origin. Bytes pass unchanged; only when a request says `decode`
 * are compressed responses decompressed. It does not retry, follow redirects or keep cookies: the client does.
 */
import { type Duplex, pipeline, Readable } from 'node:stream';
import type * as undici from 'undici';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import {
  type HeaderList,
  splitUrl,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
  maxHeaderBytes,
} from './http.ts';
import { upstreamError } from './problems.ts';
import { withResolvers } from '../../es2024.ts';
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
  /** Loads undici, so that the first request need not wait for it (about 10 ms). Without a call, the first request loads it. */
  load(): Promise<void>;
  /** Closes the connections at once. Requests in progress fail. */
  cut(): Promise<void>;
};

/** Creates an upstream over the network, for http and https. */
export function undiciUpstream(options: UndiciUpstreamOptions = {}): UndiciUpstream {
  let opened: Promise<Agent> | undefined;
  let closing: Promise<void> | undefined;
  const open = (): Promise<Agent> => {
    opened ??= loadParts().then(
      (loaded) =>
        new loaded.Agent({
          connections: options.connections ?? null,
          connect: connectorThatSkips100(loaded, { timeout: options.connectTimeoutMs ?? 10_000 }),
          headersTimeout: options.headersTimeoutMs ?? 15 * minute,
          bodyTimeout: options.bodyTimeoutMs ?? 15 * minute,
          keepAliveTimeout: options.keepAliveMs ?? 30_000,
          maxHeaderSize: maxHeaderBytes,
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
      const failure = (error: unknown) => upstreamError(error, origin, signal);
      const sent = { origin, path: target, method, headers: headers.flat(), body: toBody(body) };
      const { status, ...plain } = await exchanged(agent, sent, signal, failure);
      const unpacks = request.decode === true && method !== 'HEAD' && ![204, 304].includes(status);
      return { status, ...(unpacks ? decoded(plain, failure) : plain) };
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

type Parts = Pick<typeof undici, 'Agent' | 'buildConnector'>;

/**
 * Loads the two files of undici with the parts that are used, in a quarter of the time of the whole. Loads all of it where these files are
 * missing: in another version, or in a bundle.
 */
async function loadParts(): Promise<Parts> {
  try {
    const [agent, connect] = (await Promise.all([
      // @ts-expect-error undici has no types for its single files.
      import('undici/lib/dispatcher/agent.js'),
      // @ts-expect-error the same.
      import('undici/lib/core/connect.js'),
    ])) as [{ readonly default: Parts['Agent'] }, { readonly default: Parts['buildConnector'] }];
    return { Agent: agent.default, buildConnector: connect.default };
  } catch {
    return import('undici');
  }
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

/** Bytes of a response that are held at most while nobody reads it; then the provider has to wait. */
const maxHeldBytes = 65_536;

/**
 * Sends a request, and resolves when the headers of its response have arrived. Not with undici's own `request`: the stream that it makes of each
 * response costs more CPU than the rest of the request.
 */
async function exchanged(
  agent: Agent,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  failure: (error: unknown) => unknown,
): Promise<UpstreamResponse> {
  if (signal.aborted) throw failure(undefined);
  let controller: Dispatcher.DispatchController | undefined;
  let chunks: Uint8Array[] = [];
  let heldBytes = 0;
  let end: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;
  const answered = withResolvers<UpstreamResponse>();
  const cancel = (): void => {
    const reason = new Error('The response is no longer needed.');
    if (controller) return controller.abort(reason);
    // The connection is still being made, so undici cannot abort yet. It does as soon as the request starts.
    finish({ error: reason });
    answered.reject(failure(reason));
  };
  const finish = (how: { readonly error?: unknown }): void => {
    signal.removeEventListener('abort', cancel);
    end ??= how;
    wake?.();
  };
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      for (;;) {
        const value = chunks.shift();
        if (value !== undefined) {
          heldBytes -= value.length;
          if (chunks.length === 0) controller?.resume();
          return { done: false, value };
        }
        if (end && 'error' in end) throw failure(end.error);
        if (end) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async return() {
      if (!end) cancel();
      chunks = [];
      return { done: true, value: undefined };
    },
  };
  const body = { [Symbol.asyncIterator]: () => iterator };
  signal.addEventListener('abort', cancel);
  agent.dispatch(options, {
    onRequestStart(given) {
      controller = given;
      if (signal.aborted) cancel();
    },
    onResponseStart(_, status, headers) {
      // Interim responses are not for the client.
      if (status >= 200) answered.resolve({ status, headers: listOf(headers), body });
    },
    onResponseData(given, chunk) {
      chunks.push(chunk);
      heldBytes += chunk.length;
      if (heldBytes >= maxHeldBytes) given.pause();
      wake?.();
    },
    onResponseEnd: () => finish({}),
    onResponseError(_, error) {
      finish({ error });
      answered.reject(failure(error));
    },
  });
  return answered.promise;
}

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
  deflate: createInflate,
};

type EncodedBody = Pick<UpstreamResponse, 'headers' | 'body'>;

/**
 * Decompresses a response, for upstreams that compress although they were asked not to. Drops the headers that describe the compression. A
 * body without an encoding, or with an unknown one, is returned unchanged. Ending the returned iteration ends the given one.
 */
function decoded({ headers, body }: EncodedBody, failure: (error: unknown) => unknown): EncodedBody {
  const applied = headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== 'identity' && encoding !== '');
  if (applied.length === 0 || !applied.every((name) => Object.hasOwn(decoders, name))) {
    return { headers, body };
  }
  const stages = applied.toReversed().map((name) => decoders[name]!());
  // The reader gets all errors from the last stage.
  pipeline([Readable.from(body, { objectMode: false }), ...stages], () => undefined);
  return {
    headers: headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length'),
    body: bytesOf(stages.at(-1)!, body, failure),
  };
}

/**
 * Returns the stream as an iterable whose early end always ends the source, too. Not a generator: one that was never started runs nothing
 * when it is ended.
 */
function bytesOf(
  stream: Readable,
  source: AsyncIterable<Uint8Array>,
  failure: (error: unknown) => unknown,
): AsyncIterable<Uint8Array> {
  // A stream may fail while it is not read. The reader gets the error later.
  stream.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]() {
      const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
      return {
        next: () =>
          chunks.next().catch((error: unknown) => {
            throw failure(error);
          }),
        return: async () => {
          stream.destroy();
          await source[Symbol.asyncIterator]().return?.();
          return { done: true, value: undefined };
        },
      };
    },
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
  { buildConnector: buildUndiciConnector }: Parts,
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
