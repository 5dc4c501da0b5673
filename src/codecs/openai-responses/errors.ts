/** Errors of OpenAI Responses: our own in its shape, and how it words that a request is too long. https://platform.openai.com/docs/guides/error-codes */
import { jsonBytes } from '../../conversation/splice.ts';
import type { GatewayProblem } from '../codec.ts';

export function errorBody(problem: GatewayProblem): Uint8Array {
  return jsonBytes({ error: errorOf(problem) });
}

/** The event that ends a stream: the SDK, and with it most clients, read `message` and `code` from its top level. */
export function errorEvent(problem: GatewayProblem, sequenceNumber: number): Uint8Array {
  const { message, param, code, type } = errorOf(problem);
  return jsonBytes({ type: 'error', code: code ?? type, message, param, sequence_number: sequenceNumber });
}

function errorOf(problem: GatewayProblem) {
  const type = problem.status < 500 ? 'invalid_request_error' : 'server_error';
  const code = problem.status === 413 ? 'request_too_large' : null;
  return { message: problem.message, type, param: null, code };
}

const overflowWordings: readonly RegExp[] = [
  // error.code of OpenAI itself and of many compatible servers
  /"code"\s*:\s*"context_length_exceeded"/,
  // "Your input exceeds the context window of this model. Please adjust your input and try again."
  /exceeds the context window/i,
  // "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens."
  /maximum context length is/i,
  // "Input tokens exceed the configured limit of 272000 tokens."
  /input tokens exceed the configured limit/i,
];

export function isOverflow(status: number, body: string): boolean {
  return (status === 400 || status === 413) && overflowWordings.some((wording) => wording.test(body));
}
