/** Errors of Anthropic Messages for the codec suite, in the words of the provider. */
import { APIError } from '@anthropic-ai/sdk';
import type { ErrorFixture, ErrorResponse } from '../fixture.ts';

export function parseError(status: number, body: Uint8Array) {
  const json = JSON.parse(new TextDecoder().decode(body)) as { readonly error: { readonly message: string } };
  const error = APIError.generate(status, json, undefined, new Headers());
  const type = String(error.type);
  return { message: json.error.message, isTyped: type === 'request_too_large' || type.endsWith('_error') };
}

function said(message: string, type = 'invalid_request_error', status = 400): ErrorResponse {
  return { status, body: JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }) };
}

function tokens(response: ErrorResponse, prompt?: number, limit?: number) {
  return { ...response, means: { unit: 'tokens', limit, prompt } as const };
}

function bytes(response: ErrorResponse) {
  return { ...response, means: { unit: 'bytes' } as const };
}

export const overflows: ErrorFixture['overflows'] = {
  'prompt is too long: 205123 tokens > 200000 maximum': tokens(
    said('prompt is too long: 205123 tokens > 200000 maximum'),
    205_123,
    200_000,
  ),
  'Prompt is too long': tokens(said('Prompt is too long')),
  'Input is too long for requested model.': tokens(said('Input is too long for requested model.')),
  'input length and `max_tokens` exceed context limit': tokens(
    said(
      'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    190_000,
    200_000,
  ),
  'Request exceeds the maximum size': bytes(
    said('Request exceeds the maximum size', 'request_too_large', 413),
  ),
  'Request exceeds the maximum allowed number of bytes.': bytes(
    said('Request exceeds the maximum allowed number of bytes.', 'request_too_large', 413),
  ),
};

export const otherErrors: Readonly<Record<string, ErrorResponse>> = {
  'a bad key': said('invalid x-api-key', 'authentication_error', 401),
  'a rate limit by tokens': said(
    'This request would exceed the rate limit for your organization of 40,000 input tokens per minute.',
    'rate_limit_error',
    429,
  ),
  'a signature bound to another conversation': said(
    'messages.1.content.0: Invalid `signature` in `thinking` block: bound to a different conversation',
  ),
  'unpaired calls': said(
    'messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.',
  ),
  'too many output tokens': said(
    'max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens',
  ),
  'a page of a proxy': { status: 413, body: '<html><h1>413 Request Entity Too Large</h1></html>' },
  nothing: { status: 400, body: '' },
};

export const badResponses: Readonly<Record<string, string>> = {
  'not JSON': '<html>',
  nothing: '',
  null: 'null',
  'an array': '[]',
  'a number': '5',
  'no content': '{"id":"msg_1","type":"message"}',
  'content of another type': '{"content":"hello"}',
  'an error': '{"type":"error","error":{"type":"api_error","message":"x"}}',
};
