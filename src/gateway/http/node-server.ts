/**
 * Serves a handler on a port with plain node:http, because fetch objects would cost several times the CPU here. It
 * manages connections and shutdown, reads requests and writes responses.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, type Socket, Server as NetServer } from 'node:net';
import { performance } from 'node:perf_hooks';
import {
  type GatewayResponse,
  type Handler,
  type GatewayRequest,
  type HeaderList,
  maxHeaderBytes,
} from './http.ts';
import { incomingBody } from './body.ts';
import { internalError } from './problems.ts';
import { maxTimerMs } from '../../checks.ts';
import { LeporelloError } from '../../errors.ts';

// An import of this module would also load its web classes, with fetch: 25 ms of each start.
const { createServer } = process.getBuiltinModule('node:http');

export type NodeServerOptions = {
  /** Port to listen on; 0 uses any free port. */
  readonly port: number;
  readonly host: string;
  /** Milliseconds that an idle connection stays open. Default: 75,000, longer than proxies in front usually keep theirs. */
  readonly keepAliveMs?: number;
  /**
   * Milliseconds that a client may send nothing while its body is read. Default: 120,000. A slow upload that continues is never cut. The
   * headers of a request must arrive within 60 seconds. Responses have no limit.
   */
  readonly uploadIdleMs?: number;
  /** Called with each error of a handler (the client gets a 500) or of a response body (the client's response breaks off). */
  readonly onError?: (error: unknown, stage: 'handler' | 'body') => void;
};

export type NodeServer = {
  readonly port: number;
  readonly host: string;
  /**
   * Stops accepting connections, closes idle ones, lets requests in progress finish, and cuts the remaining ones after `graceMs`
   * milliseconds. Resolves when all connections are closed. A second call can only shorten the wait.
   */
  close(graceMs: number): Promise<void>;
};

/** Milliseconds of a look at how busy this thread is, and how long it may take until there is an idle moment. */
const [lookMs, mostLookedMs] = [20, 60_000];

/** Waits for a moment in which this thread has nothing to do for at least half of 20 ms. Resolves to false after a minute without one. */
export async function idleMoment(): Promise<boolean> {
  for (let ms = 0; ms < mostLookedMs; ms += lookMs) {
    const before = performance.eventLoopUtilization();
    await new Promise((resolve) => setTimeout(resolve, lookMs));
    if (performance.eventLoopUtilization(before).utilization < 0.5) return true;
  }
  return false;
}

/** Listens and serves. Rejects with the system's error when it cannot listen, for example because the port is in use. */
export async function serveNode(handler: Handler, options: NodeServerOptions): Promise<NodeServer> {
  const connections = trackConnections();
  const take = (incoming: IncomingMessage, outgoing: ServerResponse, waitsToSend: boolean): void => {
    connections.begin(outgoing);
    serveOne(handler, incoming, outgoing, waitsToSend, {
      ...options,
      isClosing: connections.isClosing,
    }).catch(() => outgoing.destroy());
  };
  const server = createServer({
    keepAliveTimeout: options.keepAliveMs ?? 75_000,
    headersTimeout: 60_000,
    maxHeaderSize: maxHeaderBytes,
    // Off, because Node counts it from the beginning of a request and would cut long uploads. `uploadIdleMs` replaces it.
    requestTimeout: 0,
  });
  server.on('connection', connections.open);
  server.on('request', (incoming, outgoing) => take(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => take(incoming, outgoing, true));
  await listen(server, options);
  const { port, address } = server.address() as AddressInfo;
  return { port, host: address, close: (graceMs) => connections.close(server, graceMs) };
}

type Serving = Pick<NodeServerOptions, 'onError' | 'uploadIdleMs'> & { readonly isClosing: () => boolean };

async function serveOne(
  handler: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  waitsToSend: boolean,
  { onError, isClosing, uploadIdleMs = 120_000 }: Serving,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const request = toGatewayRequest(incoming, outgoing, { waitsToSend, uploadIdleMs, signal: gone.signal });
  const serve = isWebSocket(incoming) ? refuseWebSocket : handler;
  try {
    const response = await serve(request.request);
    const isTimeout = request.hasStalled() && !isStream(response);
    await sendResponse(outgoing, isTimeout ? stalled(uploadIdleMs) : response, request, isClosing());
  } catch (error) {
    // The client has disconnected, which most likely caused the failure.
    if (gone.signal.aborted) return;
    if (request.hasStalled() && !outgoing.headersSent) {
      await sendResponse(outgoing, stalled(uploadIdleMs), request, isClosing());
      return;
    }
    onError?.(error, outgoing.headersSent ? 'body' : 'handler');
    if (outgoing.headersSent) breakOff(outgoing);
    else await sendResponse(outgoing, internalError(), request, isClosing());
  }
}

function isStream({ body }: GatewayResponse): boolean {
  return body !== undefined && !(body instanceof Uint8Array);
}

/** Returns the response to a client whose upload stalled. It replaces the handler's own response. */
function stalled(idleMs: number): GatewayResponse {
  const message = `The gateway received nothing of the request body for ${idleMs} ms. Send the request again.`;
  return refusal(408, { type: 'timeout_error', message });
}

/** True for a WebSocket request. Other upgrades, such as h2c, are ignored: these clients continue with HTTP/1.1. */
function isWebSocket(incoming: IncomingMessage): boolean {
  return incoming.headers.upgrade?.toLowerCase().includes('websocket') === true;
}

async function refuseWebSocket(): Promise<GatewayResponse> {
  const message = 'The gateway does not serve WebSockets. Use plain HTTP requests.';
  const headers: HeaderList = [
    ['upgrade', 'HTTP/1.1'],
    ['connection', 'upgrade, close'],
  ];
  return refusal(426, { type: 'upgrade_required', message }, headers);
}

function refusal(status: number, error: object, headers: HeaderList = []): GatewayResponse {
  const body = new TextEncoder().encode(JSON.stringify({ error }));
  return { status, headers: [...headers, ['content-type', 'application/json']], body };
}

async function listen(server: Server, { port, host }: NodeServerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Tracks which connections are open and which of them serve a request, so that a shutdown can close the idle ones. */
function trackConnections() {
  const sockets = new Set<Socket>();
  const busy = new Map<Socket, number>();
  let closing: Promise<void> | undefined;

  const end = (socket: Socket): void => {
    const left = (busy.get(socket) ?? 1) - 1;
    if (left > 0) busy.set(socket, left);
    else busy.delete(socket);
    if (left <= 0 && closing !== undefined) socket.destroySoon();
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    isClosing: () => closing !== undefined,
    open: (socket: Socket): void => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
    begin: (outgoing: ServerResponse): void => {
      const { socket } = outgoing.req;
      busy.set(socket, (busy.get(socket) ?? 0) + 1);
      outgoing.once('close', () => end(socket));
    },
    close: async (server: Server, graceMs: number): Promise<void> => {
      const timer = setTimeout(cut, Math.min(graceMs, maxTimerMs));
      closing ??= new Promise((resolve) => {
        // Not the `close` of http.Server, which destroys connections whose response has ended but is not yet written.
        NetServer.prototype.close.call(server, () => resolve());
        for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
      });
      await closing;
      clearTimeout(timer);
    },
  };
}

// Requests and responses of node:http, as the gateway sees them. A request body is read only when the core asks for it, and the
// rest is discarded after the answer. A response is written no faster than the client reads.

/** Bytes, and milliseconds, of an unread body that are still accepted after the answer, so that a client that is still sending can read it. */
const lingerBytes = 64 * 1024 * 1024;
const lingerMs = 5_000;
/** Bytes of an unread body that are read to keep the connection. */
const cheapBytes = 1024 * 1024;

export type NodeRequest = {
  readonly request: GatewayRequest;
  /** True when more of the body may arrive than is cheap to read. The answer then needs `connection: close`. */
  isUnread(): boolean;
  /** True when nothing of the body arrived in time. */
  hasStalled(): boolean;
  /** Reads and drops the rest of the body. Resolves at its end or at a limit, and never rejects. */
  discard(): Promise<void>;
};

type ReadOptions = {
  /** True when the client sends its body only after `100 Continue` (`expect: 100-continue`). */
  readonly waitsToSend: boolean;
  /** Milliseconds that the client may send nothing while its body is read. */
  readonly uploadIdleMs: number;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
};

function toGatewayRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { waitsToSend, uploadIdleMs, signal }: ReadOptions,
): NodeRequest {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  let isHeldBack = waitsToSend;
  const ask = (): void => {
    if (isHeldBack) outgoing.writeContinue();
    isHeldBack = false;
  };
  let hasStalled = false;
  const stall = (): LeporelloError => {
    hasStalled = true;
    return new LeporelloError(
      'deadline',
      `The client sent nothing of its request body for ${uploadIdleMs} ms.`,
    );
  };
  const hasBody = declared > 0 || incoming.headers['transfer-encoding'] !== undefined;
  return {
    request: {
      method: incoming.method ?? 'GET',
      target: incoming.url ?? '/',
      headers: headerList(incoming.rawHeaders),
      body: hasBody ? incomingBody(incoming, ask, { uploadIdleMs, stall }) : undefined,
      signal,
    },
    isUnread: () => {
      const isCheap = declared > 0 && declared <= cheapBytes && !isHeldBack && !hasStalled;
      return hasBody && !incoming.complete && !isCheap;
    },
    hasStalled: () => hasStalled,
    discard: async () => {
      if (!isHeldBack && !incoming.complete) await discard(incoming);
    },
  };
}

async function discard(incoming: IncomingMessage): Promise<void> {
  let left = lingerBytes;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, lingerMs);
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    incoming.once('end', done).once('close', done).once('error', done);
    incoming.removeAllListeners('readable').on('data', (chunk: Uint8Array) => {
      left -= chunk.byteLength;
      if (left < 0) done();
    });
    incoming.resume();
  });
}

function headerList(raw: readonly string[]): HeaderList {
  const headers: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) headers.push([raw[i]!.toLowerCase(), raw[i + 1]!]);
  return headers;
}

/**
 * Sends the response, and resolves when all of it has been passed to node:http, or when the client has disconnected (then the body's
 * iterator is ended). Throws the errors of the status, headers or body; after `outgoing.headersSent` the caller can only `breakOff`.
 */
async function sendResponse(
  outgoing: ServerResponse,
  response: GatewayResponse,
  request: NodeRequest,
  lastOnConnection: boolean,
): Promise<void> {
  const unread = request.isUnread();
  const extra: [string, string][] = unread || lastOnConnection ? [['connection', 'close']] : [];
  const bodiless = request.request.method === 'HEAD' || response.status === 204 || response.status === 304;
  if (response.body === undefined || response.body instanceof Uint8Array) {
    sendWhole(outgoing, response, response.body ?? new Uint8Array(0), bodiless, extra);
  } else {
    await sendStream(outgoing, response, response.body[Symbol.asyncIterator](), bodiless, extra);
  }
  // `end` closes the connection, and closing it with unread bytes can destroy the answer on its way.
  if (unread) await request.discard();
  outgoing.end();
  // Otherwise the rest is read to reach the next request: Node does so only for bodies that were never read.
  if (!unread) await request.discard();
}

/** Closes the connection after the bytes written so far, without the ending that would make the response look complete. */
function breakOff(outgoing: ServerResponse): void {
  const { socket, httpVersionMinor } = outgoing.req;
  // In HTTP/1.0 a closed connection is the regular end of a body; only a reset shows these clients that it failed.
  if (httpVersionMinor === 0) socket.resetAndDestroy();
  // One turn later, because bytes written in this turn may still be buffered.
  else setImmediate(() => socket.destroySoon());
}

function sendWhole(
  outgoing: ServerResponse,
  { status, headers }: GatewayResponse,
  body: Uint8Array,
  bodiless: boolean,
  extra: HeaderList,
): void {
  const hasLength = bodiless || headers.some(([name]) => name === 'content-length');
  const length: HeaderList = hasLength ? [] : [['content-length', String(body.byteLength)]];
  outgoing.writeHead(status, flat(headers, [...extra, ...length]));
  if (!bodiless && body.byteLength > 0) outgoing.write(body);
}

async function sendStream(
  outgoing: ServerResponse,
  { status, headers }: GatewayResponse,
  iterator: AsyncIterator<Uint8Array>,
  bodiless: boolean,
  extra: HeaderList,
): Promise<void> {
  try {
    if (outgoing.destroyed) return;
    outgoing.writeHead(status, flat(headers, extra));
    // A generator that has never run does not run its cleanup, so it is started even when nothing may be sent.
    if (bodiless) await iterator.next();
    else await pump(iterator, outgoing);
  } finally {
    await endEarly(iterator);
  }
}

async function pump(iterator: AsyncIterator<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // A first chunk that is available now is sent together with the headers; the headers never wait for a later chunk.
  const flush = setImmediate(() => outgoing.flushHeaders());
  const stop = (): void => void endEarly(iterator).catch(() => undefined);
  outgoing.once('close', stop);
  try {
    for (;;) {
      const next = await iterator.next();
      if (outgoing.destroyed || next.done === true) return;
      if (!outgoing.write(next.value)) await drained(outgoing);
    }
  } catch (error) {
    if (!outgoing.destroyed) throw error;
  } finally {
    clearImmediate(flush);
    outgoing.off('close', stop);
  }
}

async function endEarly(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  await iterator.return?.();
}

async function drained(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}

function flat(headers: HeaderList, extra: HeaderList): string[] {
  const names = new Set(extra.map(([name]) => name));
  return [...headers.filter(([name]) => !names.has(name)), ...extra].flat();
}
