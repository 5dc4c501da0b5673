/**
 * Converts a request of node:http to a gateway request, and writes a gateway response to node:http. A request body is read only when the core
 * asks for it, and the rest is discarded after the answer. A response is written no faster than the client reads.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LeporelloError } from '../../errors.ts';
import type { GatewayRequest, GatewayResponse, HeaderList } from './http.ts';

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

export function toGatewayRequest(
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
      body: hasBody ? bodyOf(incoming, ask, { uploadIdleMs, stall }) : undefined,
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

/** Returns the body as an iterable with a timeout. Time counts only while the core waits for a chunk. */
function bodyOf(
  incoming: IncomingMessage,
  ask: () => void,
  { uploadIdleMs, stall }: { readonly uploadIdleMs: number; readonly stall: () => LeporelloError },
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      ask();
      // The connection must outlive a reader that stops early, because the answer is sent on it.
      const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
      return {
        async next() {
          const late = Promise.withResolvers<never>();
          const timer = setTimeout(() => late.reject(stall()), uploadIdleMs);
          try {
            return await Promise.race([chunks.next(), late.promise]);
          } finally {
            clearTimeout(timer);
          }
        },
        async return() {
          await chunks.return?.();
          return { done: true, value: undefined };
        },
      };
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
export async function sendResponse(
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
export function breakOff(outgoing: ServerResponse): void {
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
