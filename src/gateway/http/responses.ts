/** Builds responses of the gateway: an upstream's response with more headers, or an error in the provider's shape. */
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';
import { LeporelloError } from '../../errors.ts';
import { headersToClient } from './headers.ts';
import type { GatewayResponse, HeaderList, UpstreamResponse } from './http.ts';

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
