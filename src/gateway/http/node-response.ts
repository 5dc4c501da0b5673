/**
 * Writes a response of the gateway's core to node:http, no faster than the client reads. A body that fails breaks the connection
 * off, so that no client takes a part for the whole. Decides nothing about content.
 */
import type { ServerResponse } from 'node:http';
import type { GatewayResponse, HeaderList } from './http.ts';
import type { NodeRequest } from './node-request.ts';

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
