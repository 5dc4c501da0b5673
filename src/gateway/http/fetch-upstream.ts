/**
 * Sends requests to providers with fetch, for runtimes without sockets. Fetch unpacks compressed responses, so the headers that
 * spoke of the packing are dropped; everything else comes as it is. No retries, no redirects.
 */
import { LeporelloError } from '../../errors.ts';
import type { HeaderList, Upstream, UpstreamRequest } from './http.ts';
import { splitUrl } from './split-url.ts';
import { upstreamError } from './upstream-error.ts';
import { iterate, toStream } from './web-streams.ts';

/** The part of fetch that is used here. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type FetchUpstreamOptions = {
  /** From the request being sent to the response's headers, in ms. Default 15 min. */
  readonly headersTimeoutMs?: number;
};

/** `close` has nothing to do here: connections belong to the runtime. */
export function fetchUpstream(fetchFn: Fetch = fetch, options: FetchUpstreamOptions = {}): Upstream {
  return {
    async send(request) {
      const { origin } = splitUrl(request.url);
      const late = new AbortController();
      const signal = AbortSignal.any([request.signal, late.signal]);
      const timer = setTimeout(
        () => late.abort(new LeporelloError('deadline', `${origin} took too long to answer.`)),
        options.headersTimeoutMs ?? 900_000,
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
  // The types of the platform do not know `duplex`; without it a stream is refused.
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
