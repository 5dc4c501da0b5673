/** Errors of OpenAI Responses: our own in its shape, and how it words that a request is too long. https://platform.openai.com/docs/guides/error-codes */
import { jsonBytes } from '../../conversation/splice.ts';
import type { GatewayProblem } from '../codec.ts';
import { contextLengthWordings, type Overflow, type OverflowWording, readOverflow } from '../overflow.ts';

export function errorBody(problem: GatewayProblem): Uint8Array {
  return jsonBytes({ error: errorOf(problem) });
}

/** The event that ends a stream: the SDK, and with it most clients, read `message` and `code` from its top level. */
export function errorEvent(error: Readonly<Record<string, unknown>>, sequenceNumber: number): Uint8Array {
  const { message, param = null, code, type } = error;
  return jsonBytes({ type: 'error', code: code ?? type, message, param, sequence_number: sequenceNumber });
}

export function errorOf({ status, message }: GatewayProblem) {
  if (status === 429) return { message, type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' };
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return { message, type, param: null, code: status === 413 ? 'request_too_large' : null };
}

const overflowWordings: readonly OverflowWording[] = [
  ...contextLengthWordings,
  // The code alone, from servers with a wording of their own
  /"code"\s*:\s*"context_length_exceeded"/,
];

export function overflowIn(status: number, body: string): Overflow | undefined {
  return readOverflow(status, body, overflowWordings);
}
