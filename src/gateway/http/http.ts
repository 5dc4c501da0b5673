/**
 * Defines HTTP as the core of the gateway sees it: requests and responses as values and byte streams, their headers, and errors. It uses no
 * sockets and no transport library: the servers (node-server.ts, fetch.ts) convert their requests to these types, and the upstreams
 * (undici-upstream.ts, fetch.ts) send them.
 */
import { LeporelloError } from '../../errors.ts';
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';

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

/** Says whether the bytes of a body are unchanged; `changed` drops the headers that describe the old bytes. */
export type BodyState = 'same' | 'changed';

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which end at the gateway in both directions. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
/** Prefixes of other headers that end at the gateway, among them its own. */
const endingPrefixes = ['proxy-', 'x-leporello-'];
/** Headers that the sending transport writes itself (`host`), or that the receiving server has answered (`expect`). */
const requestOnly: ReadonlySet<string> = new Set(['host', 'expect']);
/** Headers that describe the bytes of a body. */
const bodyHeaders: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);
const nothing: ReadonlySet<string> = new Set();

/** Returns the client's headers for the upstream. All headers that pass stay unchanged, with duplicates and in order. */
export function headersToUpstream(headers: HeaderList, body: BodyState): HeaderList {
  return passing(headers, requestOnly, body);
}

/** Returns the upstream's headers for the client. */
export function headersToClient(headers: HeaderList, body: BodyState): HeaderList {
  return passing(headers, nothing, body);
}

/** Returns the first value of a header. `name` is in lower case. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  return headers.find((header) => header[0] === name)?.[1];
}

/** Returns the list with these headers in place of all others of the same names. Names are in lower case. */
export function withHeaders(headers: HeaderList, replacing: HeaderList): HeaderList {
  const names = new Set(replacing.map(([name]) => name));
  return [...headers.filter(([name]) => !names.has(name)), ...replacing];
}

function passing(headers: HeaderList, alsoStays: ReadonlySet<string>, body: BodyState): HeaderList {
  const named = namedByConnection(headers);
  return headers.filter(
    ([name]) =>
      !hopByHop.has(name) &&
      !alsoStays.has(name) &&
      !named.has(name) &&
      !endingPrefixes.some((prefix) => name.startsWith(prefix)) &&
      !(body === 'changed' && bodyHeaders.has(name)),
  );
}

/** Returns the names in the `connection` header: `connection: close, x-hop` makes `x-hop` a hop-by-hop header. */
function namedByConnection(headers: HeaderList): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name !== 'connection') continue;
    names ??= new Set();
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names ?? nothing;
}

/** Returns an upstream's response for the client. `state` says whether the bytes of the body are still the upstream's. */
export function answer(
  from: UpstreamResponse,
  state: 'same' | 'changed',
  headers: HeaderList,
  body: GatewayResponse['body'],
): GatewayResponse {
  return { status: from.status, headers: [...headersToClient(from.headers, state), ...headers], body };
}

/** Returns an error of the gateway in the wire format of the client. */
export function problemResponse(codec: Codec, problem: GatewayProblem, headers: HeaderList): GatewayResponse {
  return {
    status: problem.status,
    headers: [['content-type', 'application/json'], ...headers],
    body: codec.errorBody(problem),
  };
}

/** Returns the client's error for a failed upstream: 504 when it took too long, otherwise 502. */
export function upstreamProblem(error: unknown): GatewayProblem {
  if (!LeporelloError.isInstance(error))
    return { status: 502, message: 'The upstream could not be reached. Try again later.' };
  return { status: error.code === 'deadline' ? 504 : 502, message: error.message };
}

export function jsonResponse(status: number, value: unknown): GatewayResponse {
  return {
    status,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
  };
}

/** Returns the response of a server whose handler failed. It reveals nothing of the request or the error. */
export function internalError(): GatewayResponse {
  const error = { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' };
  return {
    status: 500,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}
