/**
 * HTTP as the gateway's core sees it: values and byte streams, no sockets and no library of any transport.
 * The rims (node-server, fetch-handler) turn what they speak into these shapes; the upstreams do the sending.
 */
import { LeporelloError } from '../../errors.ts';

/** Names in lower case; several values of one name are several entries, in order. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

export type GatewayRequest = {
  readonly method: string;
  /** Path with query, as sent. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
};

export type GatewayResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Iterated once, and ended early (`return`) when the client goes away. An error in it breaks the response off. */
  readonly body: AsyncIterable<Uint8Array> | Uint8Array | undefined;
};

export type Handler = (request: GatewayRequest) => Promise<GatewayResponse>;

export type UpstreamRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
  /** Unpack a compressed response, for callers that must read it. Otherwise the bytes come as they are, where the transport can. */
  readonly decode?: boolean;
};

export type UpstreamResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Can be iterated once. It must be read to its end or ended early (`break`, `return`), else its connection stays taken. */
  readonly body: AsyncIterable<Uint8Array>;
};

/**
 * Rejects with LeporelloError 'upstream-failed' (cannot connect, broken off) or 'deadline' (no response headers in time).
 * Reading the body can throw the same. Never retries.
 */
export interface Upstream {
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Lets requests under way end, then closes the connections. May be called twice. */
  close(): Promise<void>;
}

/**
 * The whole body as one array; a body of a single chunk comes back without copying. Stops reading (ends the iteration) and
 * throws `body-too-large` as soon as more than `maxBytes` bytes have come. What the iteration throws goes through.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (body === undefined) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new LeporelloError(
        'body-too-large',
        `The body is larger than the ${maxBytes} bytes that are taken. Send a smaller one or raise the limit.`,
      );
    }
    chunks.push(chunk);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : joinBytes(chunks, size);
}

/** What a rim answers for a handler that failed: nothing of the request, nothing of the error. */
export function internalError(): GatewayResponse {
  const error = { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' };
  return {
    status: 500,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}

function joinBytes(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}
