/**
 * The gateway's core: a request as values and bytes in, a response as values and bytes out. Knows no transport and no clock of its
 * own. Here it is decided what a request is; model calls are served in model-call.ts.
 */
import type { Codec } from '../codecs/codec.ts';
import { answerOwn } from './admin.ts';
import { problemResponse, upstreamProblem } from './answers.ts';
import { refuseForeign } from './browser-guard.ts';
import { headersToClient, headersToUpstream } from './headers.ts';
import type { GatewayRequest, GatewayResponse, Handler } from './http.ts';
import { jsonResponse } from './json-response.ts';
import { serveModel } from './model-call.ts';
import type { GatewayOptions } from './options.ts';
import { routeOf } from './routes.ts';

export function createGateway(options: GatewayOptions): Handler {
  return async function handle(request) {
    const refused = refuseForeign(request, options.allowedHosts);
    if (refused) return refused;
    const route = routeOf(request.method, request.target, request.headers, options.urls);
    switch (route.kind) {
      case 'own':
        return answerOwn(options, request, route);
      case 'unknown':
        return jsonResponse(404, {
          error: {
            type: 'not_found_error',
            message: `Leporello serves /v1/*, /v1beta/* and /_leporello/*, not ${request.target.split('?')[0]}. Point the client's base URL here.`,
          },
        });
      case 'pass':
        return pass(options, request, route.url, route.codec);
      case 'model':
      case 'count':
        return serveModel(options, request, route);
    }
  };
}

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
