/**
 * The gateway's core: a request as values and bytes in, a response as values and bytes out. Knows no transport and no clock of its
 * own. Here it is decided what a request is; model calls are served in model-call.ts.
 */
import type { Codec, GatewayProblem } from '../codecs/codec.ts';
import { answerOwn } from './admin.ts';
import { jsonResponse, problemResponse, upstreamProblem } from './http/responses.ts';
import { carriesToken } from './routing/credentials.ts';
import { headerOf, headersToClient, headersToUpstream } from './http/headers.ts';
import type { GatewayRequest, GatewayResponse, Handler, HeaderList } from './http/http.ts';
import { serveModel } from './model-call.ts';
import type { GatewayOptions } from './options.ts';
import { routeOf } from './routing/routes.ts';

export function createGateway(options: GatewayOptions): Handler {
  return async function handle(request) {
    const refused = refuseForeign(request, options.allowedHosts);
    if (refused) return refused;
    const route = routeOf(request.method, request.target, request.headers, options.urls);
    if (route.kind !== 'own' && route.kind !== 'refused' && holdsAdminToken(options, request))
      return problemResponse(route.codec, adminTokenProblem, []);
    switch (route.kind) {
      case 'own':
        return answerOwn(options, request, route);
      case 'refused':
        return problemResponse(route.codec, route.problem, []);
      case 'pass':
        return pass(options, forwarded(options, request), route.url, route.codec);
      case 'model':
      case 'count': {
        const tenant = options.tenants.tenantOf(request);
        if (tenant.label === undefined)
          return problemResponse(route.codec, { status: 401, message: tenant.problem }, []);
        return serveModel(options, forwarded(options, request), route, tenant.label);
      }
    }
  };
}

function forwarded({ tenants }: GatewayOptions, request: GatewayRequest): GatewayRequest {
  return { ...request, headers: tenants.forwarded(request.headers) };
}

/** The token opens every tenant's memory here, so no provider may see it, beside another credential or alone. */
function holdsAdminToken({ adminToken }: GatewayOptions, request: GatewayRequest): boolean {
  return adminToken !== undefined && carriesToken(request, adminToken);
}

const adminTokenProblem: GatewayProblem = {
  status: 401,
  message:
    "The request was not sent: it holds this gateway's adminToken, which is for /_leporello/* and /metrics alone; send the provider's own key.",
};

/** Bytes in, bytes out; nothing is read, nothing is buffered. */
async function pass(
  options: GatewayOptions,
  request: GatewayRequest,
  url: string,
  codec: Codec,
): Promise<GatewayResponse> {
  try {
    const response = await options.upstream.send({
      method: request.method,
      url,
      headers: headersToUpstream(request.headers, 'same'),
      body: request.body,
      signal: request.signal,
    });
    return {
      status: response.status,
      headers: headersToClient(response.headers, 'same'),
      body: response.body,
    };
  } catch (error) {
    return problemResponse(codec, upstreamProblem(error), []);
  }
}

/** The refusal of a request that was addressed to a foreign name or sent by a foreign page; undefined when it may pass. */
export function refuseForeign(
  { headers }: GatewayRequest,
  allowedHosts: readonly string[] | undefined,
): GatewayResponse | undefined {
  if (allowedHosts === undefined) return undefined;
  const host = hostName(headerOf(headers, 'host') ?? '');
  if (!allowedHosts.includes(host)) {
    return refusal(
      421,
      `This gateway does not answer for the host ${JSON.stringify(host.slice(0, 100))}. Add it to allowedHosts if it should.`,
    );
  }
  const origin = headerOf(headers, 'origin');
  // Desktop programs have schemes of their own; the web's are http, https and, for what hides it, null.
  const isForeign =
    origin === 'null' ||
    (/^https?:/.test(origin ?? '') && !allowedHosts.includes(hostName(origin!.replace(/^https?:\/\//, ''))));
  return isForeign || isLoadedByPage(headers)
    ? refusal(403, 'This gateway does not answer web pages of other hosts.')
    : undefined;
}

/**
 * True when a page of another site loads this as an image, a script or a frame, for which browsers send no Origin. A link that a person
 * follows is no such thing.
 */
function isLoadedByPage(headers: HeaderList): boolean {
  if (headerOf(headers, 'origin') !== undefined) return false;
  return (
    headerOf(headers, 'sec-fetch-site') === 'cross-site' && headerOf(headers, 'sec-fetch-dest') !== 'document'
  );
}

function hostName(authority: string): string {
  return authority.replace(/:\d+$/, '').toLowerCase();
}

function refusal(status: number, message: string): GatewayResponse {
  return jsonResponse(status, { error: { type: 'permission_error', message } });
}
