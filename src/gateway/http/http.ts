/**
 * Defines HTTP as the core of the gateway sees it: values and byte streams, without sockets and without any transport library. The servers
 * (node-server.ts, fetch.ts) convert their requests to these types, and the upstreams (undici-upstream.ts, fetch.ts) send them.
 */
import { LeporelloError } from '../../errors.ts';

/** Headers with names in lower case. Several values of one name are several entries, in order. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

export type GatewayRequest = {
  readonly method: string;
  /** Path with query, as the client sent it. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
};

export type GatewayResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Iterated once, and ended early (`return`) when the client disconnects. An error in it breaks the response off. */
  readonly body: AsyncIterable<Uint8Array> | Uint8Array | undefined;
};

export type Handler = (request: GatewayRequest) => Promise<GatewayResponse>;

export type UpstreamRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
  /** True to decompress a compressed response, for callers that read it. Otherwise the bytes stay as they are if the transport can do that. */
  readonly decode?: boolean;
};

export type UpstreamResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Can be iterated once. It must be read to its end or ended early (`break`, `return`), otherwise its connection stays in use. */
  readonly body: AsyncIterable<Uint8Array>;
};

/**
 * Sends requests to a provider. `send` rejects with LeporelloError `upstream-failed` (cannot connect, or the connection broke) or `deadline`
 * (no response headers in time). Reading the body can throw the same errors. It never retries.
 */
export interface Upstream {
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Lets requests in progress end, then closes the connections. May be called twice. */
  close(): Promise<void>;
}

/** Splits an absolute URL into its origin and the rest. Not with a URL parser, which would rewrite the path. */
export function splitUrl(url: string): { readonly origin: string; readonly target: string } {
  const slash = url.indexOf('/', url.indexOf('://') + 3);
  return slash < 0 ? { origin: url, target: '/' } : { origin: url.slice(0, slash), target: url.slice(slash) };
}

const deadlines: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/**
 * Converts a failure on the way to a provider to `deadline` or `upstream-failed`. A LeporelloError with which the signal was aborted is
 * returned itself. Messages name only the origin, because paths and queries can contain secrets.
 */
export function upstreamError(error: unknown, origin: string, signal: AbortSignal): LeporelloError {
  if (signal.aborted) {
    const { reason } = signal as { reason: unknown };
    if (LeporelloError.isInstance(reason)) return reason;
    return new LeporelloError('upstream-failed', `The request to ${origin} was canceled.`, { cause: error });
  }
  const code = codeOf(error);
  if (deadlines.has(code)) {
    return new LeporelloError('deadline', `${origin} took too long to answer (${code}).`, { cause: error });
  }
  return new LeporelloError(
    'upstream-failed',
    `${origin} could not be reached, or the connection broke (${code}). Check that it is up and its URL is right.`,
    { cause: error },
  );
}

/** Returns the system's error code. fetch hides it in `cause`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const found = [error, error.cause].find((one) => one instanceof Error && 'code' in one);
  return found instanceof Error && 'code' in found ? String(found.code) : error.name;
}
