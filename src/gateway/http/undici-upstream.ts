/**
 * Sends requests to providers over undici's keep-alive pool, one pool per origin. Bytes go out and come back as they are; only
 * where a request says `decode` are compressed responses unpacked. No retries, no redirects, no cookies: a gateway passes those on.
 */
import type { Readable } from 'node:stream';
import { Agent } from 'undici';
import { decoded } from './decode-body.ts';
import type { HeaderList, Upstream, UpstreamRequest } from './http.ts';
import { connectorThatSkips100 } from './skip-continue.ts';
import { splitUrl } from './split-url.ts';
import { upstreamError } from './upstream-error.ts';

export type UndiciUpstreamOptions = {
  /** Connections per origin; no bound by default, as a model call can hold one for minutes. */
  readonly connections?: number;
  /** Until a connection stands, in ms. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** From the request being sent to the response's headers, in ms. Default 15 min: plain responses come when the model is done. */
  readonly headersTimeoutMs?: number;
  /** Longest silence within a response body, in ms; 0 is for ever. Default 15 min. */
  readonly bodyTimeoutMs?: number;
  /** How long an idle connection is kept, in ms, unless the upstream says. Default 30 s: agents pause between calls. */
  readonly keepAliveMs?: number;
};

const minute = 60_000;

export type UndiciUpstream = Upstream & {
  /** Closes the connections at once, whatever is under way: it fails. */
  cut(): Promise<void>;
};

/** An upstream over the network, http and https. */
export function undiciUpstream(options: UndiciUpstreamOptions = {}): UndiciUpstream {
  const agent = new Agent({
    connections: options.connections ?? null,
    connect: connectorThatSkips100({ timeout: options.connectTimeoutMs ?? 10_000 }),
    headersTimeout: options.headersTimeoutMs ?? 15 * minute,
    bodyTimeout: options.bodyTimeoutMs ?? 15 * minute,
    keepAliveTimeout: options.keepAliveMs ?? 30_000,
  });
  let closing: Promise<void> | undefined;
  return {
    async send(request) {
      const { origin, target } = splitUrl(request.url);
      const { method, headers, body, signal } = request;
      const response = await agent
        .request({ origin, path: target, method, headers: headers.flat(), body: toBody(body), signal })
        .catch((error: unknown) => {
          throw upstreamError(error, origin, signal);
        });
      const plain = { headers: listOf(response.headers), body: response.body };
      const unpacks =
        request.decode === true && method !== 'HEAD' && ![204, 304].includes(response.statusCode);
      const given = unpacks ? decoded(plain.headers, plain.body) : plain;
      return {
        status: response.statusCode,
        headers: given.headers,
        body: bytesOf(given.body, (error) => upstreamError(error, origin, signal)),
      };
    },
    close: async () => {
      closing ??= agent.close();
      await closing;
    },
    cut: async () => {
      closing ??= agent.destroy();
      await closing;
    },
  };
}

/** undici's types want a node stream where its code takes any async iterable. */
function toBody(body: UpstreamRequest['body']): Uint8Array | Readable | null {
  return body === undefined ? null : (body as Uint8Array | Readable);
}

function listOf(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderList {
  const list: [string, string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') list.push([name, value]);
    else for (const one of value ?? []) list.push([name, one]);
  }
  return list;
}

/**
 * The stream as an iterable whose early end always frees the connection. A generator would not do: one that was never started
 * runs nothing when it is ended.
 */
function bytesOf(stream: Readable, errorOf: (error: unknown) => unknown): AsyncIterable<Uint8Array> {
  // A stream may fail while nobody reads it; the reader still gets the error.
  stream.on('error', () => undefined);
  return {
    [Symbol.asyncIterator]() {
      const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
      return {
        next: () =>
          chunks.next().catch((error: unknown) => {
            throw errorOf(error);
          }),
        return: async () => {
          stream.destroy();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
