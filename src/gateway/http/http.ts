/**
 * HTTP as the gateway's core sees it: values and byte streams, no sockets and no library of any transport.
 * The deps (node-server, fetch-handler) turn what they speak into these shapes; the upstreams do the sending.
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

/** Origin and the rest of an absolute URL, cut by hand: parsing would rewrite the path, and a gateway passes it on as it came. */
export function splitUrl(url: string): { readonly origin: string; readonly target: string } {
  const slash = url.indexOf('/', url.indexOf('://') + 3);
  return slash < 0 ? { origin: url, target: '/' } : { origin: url.slice(0, slash), target: url.slice(slash) };
}

const deadlines: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** `deadline` or `upstream-failed`; an error of ours that the signal was aborted with comes back itself. */
export function upstreamError(error: unknown, origin: string, signal: AbortSignal): LeporelloError {
  if (signal.aborted) {
    const { reason } = signal as { reason: unknown };
    if (LeporelloError.isInstance(reason)) return reason;
    return new LeporelloError('upstream-failed', `The request to ${origin} was cancelled.`, { cause: error });
  }
  const code = codeOf(error);
  if (deadlines.has(code)) {
    return new LeporelloError('deadline', `${origin} took too long to answer (${code}).`, { cause: error });
  }
  return new LeporelloError(
    'upstream-failed',
    `${origin} could not be reached or broke off (${code}). Check that it is up and its URL is right.`,
    { cause: error },
  );
}

/** fetch hides the reason in `cause`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const found = [error, error.cause].find((one) => one instanceof Error && 'code' in one);
  return found instanceof Error && 'code' in found ? String(found.code) : error.name;
}
