/** Responses of the gateway: an upstream's, with what the receipt tells in front, or our own error in the provider's shape. Pure. */
import type { Codec, GatewayProblem } from '../../codecs/codec.ts';
import { LeporelloError } from '../../errors.ts';
import { headersToClient } from './headers.ts';
import type { GatewayResponse, HeaderList, UpstreamResponse } from './http.ts';

/** An upstream's response for the client; `state` says whether the body's bytes are still those that came. */
export function answer(
  from: UpstreamResponse,
  state: 'same' | 'changed',
  headers: HeaderList,
  body: GatewayResponse['body'],
): GatewayResponse {
  return { status: from.status, headers: [...headersToClient(from.headers, state), ...headers], body };
}

/** Our own error in the shape of the format the client speaks. */
export function problemResponse(codec: Codec, problem: GatewayProblem, headers: HeaderList): GatewayResponse {
  return {
    status: problem.status,
    headers: [['content-type', 'application/json'], ...headers],
    body: codec.errorBody(problem),
  };
}

/** What a failed upstream is to the client: 504 when it took too long, else 502. */
export function upstreamProblem(error: unknown): GatewayProblem {
  if (!LeporelloError.isInstance(error))
    return { status: 502, message: 'The upstream could not be reached.' };
  return { status: error.code === 'deadline' ? 504 : 502, message: error.message };
}

export function jsonResponse(status: number, value: unknown): GatewayResponse {
  return {
    status,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
  };
}

/** What a rim answers for a handler that failed: nothing of the request, nothing of the error. */
export function internalError(): GatewayResponse {
  const error = { type: 'internal_error', message: 'The gateway failed on this request. Its log says why.' };
  return {
    status: 500,
    headers: [['content-type', 'application/json']],
    body: new TextEncoder().encode(JSON.stringify({ error })),
  };
}
