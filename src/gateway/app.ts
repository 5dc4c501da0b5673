/**
 * The core of the gateway turns a request (values and bytes) into a response (values and bytes). It has no transport and no clock.
 * This file guards and routes each request; model-call.ts serves model calls, admin.ts the gateway's own paths.
 */
import type { Codec, GatewayProblem } from '../codecs/codec.ts';
import { answerOwn } from './admin.ts';
import {
  type GatewayRequest,
  type GatewayResponse,
  type Handler,
  type HeaderList,
  headerOf,
  headersToClient,
  headersToUpstream,
  jsonResponse,
  problemResponse,
  upstreamProblem,
} from './http/http.ts';
import { carriesToken } from './routing/tenant.ts';
import { serveModel } from './model-call.ts';
import type { GatewayOptions } from './options.ts';
import { routeOf } from './routing/routes.ts';

/** Creates the handler of all requests. */
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

/** True when the request contains the admin token, alone or next to another credential. It opens every tenant's originals, so no provider may see it. */
function holdsAdminToken({ adminToken }: GatewayOptions, request: GatewayRequest): boolean {
  return adminToken !== undefined && carriesToken(request, adminToken);
}

const adminTokenProblem: GatewayProblem = {
  status: 401,
  message:
    "The request was not sent: it contains this gateway's adminToken, which is only for /_leporello/* and /metrics. Send the provider's own key.",
};

/** Streams the request and the response through, without reading or buffering either. */
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

/**
 * Returns a refusal for a request that is addressed to an unknown host name or sent by a web page of another host; undefined when the
 * request may pass. A web page can make a browser send requests to 127.0.0.1 and, through a name of its own that resolves there (DNS
 * rebinding), even read the answers. Programs send no Origin, and address the host they mean.
 */
export function refuseForeign(
  { headers }: GatewayRequest,
  allowedHosts: readonly string[] | undefined,
): GatewayResponse | undefined {
  if (allowedHosts === undefined) return undefined;
  const host = hostName(headerOf(headers, 'host') ?? '');
  if (!allowedHosts.includes(host)) {
    return refusal(
      421,
      `This gateway does not serve the host ${JSON.stringify(host.slice(0, 100))}. Add it to allowedHosts if it should.`,
    );
  }
  const origin = headerOf(headers, 'origin');
  // Desktop programs use schemes of their own. Web pages send http, https or, where the browser hides the origin, null.
  const isForeign =
    origin === 'null' ||
    (/^https?:/.test(origin ?? '') && !allowedHosts.includes(hostName(origin!.replace(/^https?:\/\//, ''))));
  return isForeign || isLoadedByPage(headers)
    ? refusal(403, 'This gateway does not answer web pages of other hosts.')
    : undefined;
}

/**
 * True when a page of another site loads this URL as an image, a script or a frame: browsers send no Origin for these. False when a person
 * follows a link.
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
