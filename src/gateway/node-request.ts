/**
 * A request of node:http as the gateway's core takes it. Reads the body only when the core asks for it, and knows what is left
 * to read when the core answers without having read it all.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRequest, HeaderList } from './http.ts';

/** How much of an unwanted body is still taken after the answer, so that a client that is still sending can read it. */
const lingerBytes = 64 * 1024 * 1024;
const lingerMs = 5_000;
/** A rest of this size is read rather than giving the connection up. */
const cheapBytes = 1024 * 1024;

export type NodeRequest = {
  readonly request: GatewayRequest;
  /** True when the client may be sending more than is cheap to read. Answer with `connection: close` then. */
  isUnread(): boolean;
  /** Reads and drops what the client still sends; resolves at its end, or at a bound. Never rejects. */
  discard(): Promise<void>;
};

/** `waitsToSend`: the client holds its body back until it is asked for (`expect: 100-continue`). */
export function toGatewayRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  waitsToSend: boolean,
  signal: AbortSignal,
): NodeRequest {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  let isHeldBack = waitsToSend;
  const ask = (): void => {
    if (isHeldBack) outgoing.writeContinue();
    isHeldBack = false;
  };
  const hasBody = declared > 0 || incoming.headers['transfer-encoding'] !== undefined;
  return {
    request: {
      method: incoming.method ?? 'GET',
      target: incoming.url ?? '/',
      headers: headerList(incoming.rawHeaders),
      body: hasBody ? bodyOf(incoming, ask) : undefined,
      signal,
    },
    isUnread: () => hasBody && !incoming.complete && !(declared > 0 && declared <= cheapBytes && !isHeldBack),
    discard: async () => {
      if (!isHeldBack && !incoming.complete) await discard(incoming);
    },
  };
}

function bodyOf(incoming: IncomingMessage, ask: () => void): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      ask();
      // The connection outlives a reader that stops early: the answer still has to go out on it.
      return incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
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
