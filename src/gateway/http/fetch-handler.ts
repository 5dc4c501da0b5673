/**
 * The gateway as a function of the fetch kind, for edge runtimes, for other servers and for calls within one process. Streams
 * both ways. For a server of its own on Node, node-server is several times cheaper.
 */
import { Hono } from 'hono';
import { basePath } from 'hono/route';
import { internalError } from './http.ts';
import type { GatewayResponse, Handler, HeaderList } from './http.ts';
import { splitUrl } from './split-url.ts';
import { iterate, toStream } from './web-streams.ts';

/**
 * Serves fetch requests. Never rejects: a handler that fails is a 500.
 * @example
 * export default { fetch: createFetchHandler(handler) };
 */
export function createFetchHandler(handler: Handler): (request: Request) => Promise<Response> {
  const app = honoApp(handler);
  return async (request) => app.fetch(request);
}

/**
 * The same as an app to mount in another one; the handler sees paths without the part it is mounted under.
 * @example
 * app.route('/llm', honoApp(handler));
 */
export function honoApp(handler: Handler): Hono {
  const app = new Hono();
  app.all('*', async (context) => serve(handler, context.req.raw, basePath(context)));
  return app;
}

async function serve(handler: Handler, request: Request, mountedAt: string): Promise<Response> {
  const gone = new AbortController();
  try {
    const response = await handler({
      method: request.method,
      target: targetOf(request.url, mountedAt),
      headers: [...request.headers],
      body: request.body === null ? undefined : iterate(request.body),
      signal: AbortSignal.any([request.signal, gone.signal]),
    });
    return await toResponse(response, request.method, () => gone.abort());
  } catch {
    return toResponse(internalError(), request.method, () => undefined);
  }
}

function targetOf(url: string, mountedAt: string): string {
  const [target = '/'] = splitUrl(url).target.split('#', 1);
  const prefix = mountedAt.endsWith('/') ? mountedAt.slice(0, -1) : mountedAt;
  const rest = target.startsWith(prefix) ? target.slice(prefix.length) : target;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

async function toResponse(
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
  // A generator that never ran cannot clean up behind itself, so it is started even where nothing may be sent.
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
