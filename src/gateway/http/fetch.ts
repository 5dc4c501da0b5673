/**
 * Connects the gateway to runtimes with fetch: as a handler of fetch requests and as an upstream that sends with fetch. Both stream in both
 * directions. On Node, node-server.ts and undici-upstream.ts use several times less CPU.
 */
import {
  type GatewayResponse,
  type Handler,
  type HeaderList,
  splitUrl,
  type Upstream,
  type UpstreamRequest,
} from './http.ts';
import { internalError, upstreamError } from './problems.ts';
import { iterate } from './body.ts';
import { maxTimerMs } from '../../checks.ts';
import { LeporelloError } from '../../errors.ts';

/**
 * Serves fetch requests. Never rejects: when the handler fails, the response is a 500, and `onError` gets the error (default: it is printed
 * with `console.error`). `basePath` is the path under which another app mounts the gateway; the handler sees paths without it.
 * @example
 * export default { fetch: createFetchHandler(handler) };
 * @example
 * const serve = createFetchHandler(handler, { basePath: '/llm' });
 * app.all('/llm/*', (context) => serve(context.req.raw)); // In a Hono app.
 */
export function createFetchHandler(
  handler: Handler,
  { basePath = '/', onError = printError }: FetchHandlerOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => serve(handler, request, { basePath, onError });
}

type FetchHandlerOptions = { readonly basePath?: string; readonly onError?: (error: unknown) => void };

function printError(error: unknown): void {
  // A program without a log of its own must see it, too.
  // oxlint-disable-next-line no-console
  console.error('leporello: the gateway failed on a request.', error);
}

async function serve(
  handler: Handler,
  request: Request,
  { basePath, onError }: Required<FetchHandlerOptions>,
): Promise<Response> {
  const gone = new AbortController();
  try {
    const response = await handler({
      method: request.method,
      target: targetOf(request.url, basePath),
      headers: [...request.headers],
      body: request.body === null ? undefined : iterate(request.body),
      signal: AbortSignal.any([request.signal, gone.signal]),
    });
    return await toResponse(response, request.method, () => gone.abort());
  } catch (error) {
    // A client that left breaks the body of its request off, which is no failure of the gateway.
    if (!request.signal.aborted) onError(error);
    return toResponse(internalError(), request.method, () => undefined);
  }
}

function targetOf(url: string, mountedAt: string): string {
  const [target = '/'] = splitUrl(url).target.split('#', 1);
  const prefix = mountedAt.endsWith('/') ? mountedAt.slice(0, -1) : mountedAt;
  const rest = target.slice(prefix.length);
  // `/llm` is no part of `/llmfoo`, which is a path of the app.
  if (!target.startsWith(prefix) || !/^(?:[/?]|$)/.test(rest)) return target;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Converts a response. `onCancel` is called when its reader stops early. */
export async function toResponse(
  { status, headers, body }: GatewayResponse,
  method: string,
  onCancel: () => void,
): Promise<Response> {
  const init = { status, headers: toHeaders(headers) };
  if (body === undefined || body instanceof Uint8Array) {
    const bytes = method === 'HEAD' || isBodiless(status) ? undefined : (body as Uint8Array<ArrayBuffer>);
    return new Response(bytes ?? null, init);
  }
  if (method !== 'HEAD' && !isBodiless(status)) return new Response(toStream(body, onCancel), init);
  // A generator that has never run does not run its cleanup, so it is started even when nothing may be sent.
  const iterator = body[Symbol.asyncIterator]();
  await iterator.next();
  await iterator.return?.();
  return new Response(null, init);
}

function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function toHeaders(list: HeaderList): Headers {
  const headers = new Headers();
  for (const [name, value] of list) headers.append(name, value);
  return headers;
}

/** The part of fetch that the gateway uses. */
type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type FetchUpstreamOptions = {
  /** Milliseconds from sending the request to the response's headers. Default: 15 minutes. */
  readonly headersTimeoutMs?: number;
};

/**
 * Sends requests to providers with fetch, without retries and without following redirects. Fetch decompresses responses, so the headers that
 * describe the compression are dropped. `close` does nothing, because connections belong to the runtime.
 */
export function fetchUpstream(fetchFn: Fetch = fetch, options: FetchUpstreamOptions = {}): Upstream {
  return {
    async send(request) {
      const { origin } = splitUrl(request.url);
      const late = new AbortController();
      const signal = AbortSignal.any([request.signal, late.signal]);
      const timer = setTimeout(
        () => late.abort(new LeporelloError('deadline', `${origin} took too long to answer.`)),
        Math.min(options.headersTimeoutMs ?? 900_000, maxTimerMs),
      );
      const fail = (error: unknown): never => {
        throw upstreamError(error, origin, signal);
      };
      try {
        const response = await fetchFn(request.url, initOf(request, signal)).catch(fail);
        return {
          status: response.status,
          headers: headersOf(response),
          body: bytesOf(response.body, fail),
        };
      } finally {
        clearTimeout(timer);
      }
    },
    close: async () => undefined,
  };
}

function initOf({ method, headers, body }: UpstreamRequest, signal: AbortSignal): RequestInit {
  const init: RequestInit = { method, headers: headers.map(([name, value]) => [name, value]), signal };
  init.redirect = 'manual';
  if (body === undefined) return init;
  if (body instanceof Uint8Array) return { ...init, body: body as Uint8Array<ArrayBuffer> };
  // The platform's types lack `duplex`, but fetch rejects a stream without it.
  return { ...init, body: toStream(body), duplex: 'half' } as RequestInit;
}

function headersOf(response: Response): HeaderList {
  const packed = response.headers.has('content-encoding');
  return [...response.headers].filter(
    ([name]) => !(packed && (name === 'content-encoding' || name === 'content-length')),
  );
}

function bytesOf(
  stream: ReadableStream<Uint8Array> | null,
  fail: (error: unknown) => never,
): AsyncIterable<Uint8Array> {
  const body = iterate(stream ?? new Response('').body!);
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      return { ...chunks, next: () => chunks.next().catch(fail) };
    },
  };
}

/** Returns the iterable as a stream that pulls a chunk only when it is read. Canceling the stream ends the iteration. */
function toStream(
  body: AsyncIterable<Uint8Array>,
  onCancel: () => void = () => undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      pull: async (controller) => {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        // Web streams accept only bytes that no other thread shares, and ours are never shared.
        else controller.enqueue(value as Uint8Array<ArrayBuffer>);
      },
      cancel: async () => {
        onCancel();
        // The reader has gone, and `onCancel` may have broken the body off. SDKs would take an error here for a failed request.
        await iterator.return?.().catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
