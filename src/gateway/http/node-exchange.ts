/**
 * A request of node:http as the gateway's core takes it. Reads the body only when the core asks for it, and knows what is left
 * to read when the core answers without having read it all.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LeporelloError } from '../../errors.ts';
import type { GatewayRequest, GatewayResponse, HeaderList } from './http.ts';

/** How much of an unwanted body is still taken after the answer, so that a client that is still sending can read it. */
const lingerBytes = 64 * 1024 * 1024;
const lingerMs = 5_000;
/** A rest of this size is read rather than giving the connection up. */
const cheapBytes = 1024 * 1024;

export type NodeRequest = {
  readonly request: GatewayRequest;
  /** True when the client may be sending more than is cheap to read. Answer with `connection: close` then. */
  isUnread(): boolean;
  /** True when the body was waited for and nothing of it came in time. */
  hasStalled(): boolean;
  /** Reads and drops what the client still sends; resolves at its end, or at a bound. Never rejects. */
  discard(): Promise<void>;
};

type Reading = {
  /** The client holds its body back until it is asked for (`expect: 100-continue`). */
  readonly waitsToSend: boolean;
  /** How long the client may send nothing while its body is waited for, in ms. */
  readonly uploadIdleMs: number;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
};

export function toGatewayRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { waitsToSend, uploadIdleMs, signal }: Reading,
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
    return new LeporelloError('deadline', `The client sent nothing of its request for ${uploadIdleMs} ms.`);
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

/** Time counts only while a chunk is waited for: what the core does not ask for yet is no fault of the client. */
function bodyOf(
  incoming: IncomingMessage,
  ask: () => void,
  { uploadIdleMs, stall }: { readonly uploadIdleMs: number; readonly stall: () => LeporelloError },
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      ask();
      // The connection outlives a reader that stops early: the answer still has to go out on it.
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
 * Sends the response and resolves when it has been handed over, or when the client is gone (the body's iterator is ended then).
 * Throws what the status, the headers or the body throw; after `outgoing.headersSent` the caller can only `breakOff`.
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
  // The end closes such a connection, and closing it with bytes unread would take the answer back.
  if (unread) await request.discard();
  outgoing.end();
  // Else the rest is read to get at the next request: node does so only for bodies that nobody began to read.
  if (!unread) await request.discard();
}

/** Cuts the connection after what was written, without the ending that would make it look complete. */
export function breakOff(outgoing: ServerResponse): void {
  const { socket, httpVersionMinor } = outgoing.req;
  // Before chunked coding a closed connection was the regular end of a body; only a reset tells these clients.
  if (httpVersionMinor === 0) socket.resetAndDestroy();
  // A turn later, as what was written in this one may still be corked.
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
    // A generator that never ran cannot clean up behind itself, so it is started even where nothing may be sent.
    if (bodiless) await iterator.next();
    else await pump(iterator, outgoing);
  } finally {
    await endEarly(iterator);
  }
}

async function pump(iterator: AsyncIterator<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // A first chunk that is already there travels with the head; the head never waits for one that is not.
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
