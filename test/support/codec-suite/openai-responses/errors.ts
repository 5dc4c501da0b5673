/** Errors of OpenAI Responses for the codec suite, in the words of the provider. */
import { APIError } from 'openai';
import type { ErrorFixture, ErrorResponse } from '../fixture.ts';

export function parseError(status: number, body: Uint8Array) {
  const json = JSON.parse(new TextDecoder().decode(body)) as object;
  const error = APIError.generate(status, json, undefined, new Headers());
  return {
    message: error.message,
    isTyped: error.type === 'invalid_request_error' || error.type === 'server_error',
  };
}

function said(message: string, more: object = {}, status = 400): ErrorResponse {
  return {
    status,
    body: JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'input', ...more } }),
  };
}

function tokens(response: ErrorResponse, prompt?: number, limit?: number) {
  return { ...response, means: { unit: 'tokens', limit, prompt } as const };
}

export const overflows: ErrorFixture['overflows'] = {
  'code context_length_exceeded': tokens(said('Too long.', { code: 'context_length_exceeded' })),
  'Your input exceeds the context window of this model.': tokens(
    said('Your input exceeds the context window of this model. Please adjust your input and try again.', {
      code: null,
    }),
  ),
  "This model's maximum context length is 128000 tokens.": tokens(
    said(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.",
    ),
    150_000,
    128_000,
  ),
  'Input tokens exceed the configured limit of 272000 tokens.': tokens(
    said(
      'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.',
    ),
    300_000,
    272_000,
  ),
};

export const otherErrors: Readonly<Record<string, ErrorResponse>> = {
  'a bad key': said('Incorrect API key provided: sk-x.', { code: 'invalid_api_key' }, 401),
  'a rate limit by tokens': said(
    'Rate limit reached for responses-large on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.',
    { code: 'rate_limit_exceeded' },
    429,
  ),
  'a call without its reasoning': said(
    "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
  ),
  'reasoning without its item': said(
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
  ),
  'an unanswered call': said('No tool output found for function call call_1.'),
  'a page of a proxy': { status: 413, body: '<html><h1>413 Request Entity Too Large</h1></html>' },
  nothing: { status: 400, body: '' },
};

export const badResponses: Readonly<Record<string, string>> = {
  'not JSON': '<html>',
  nothing: '',
  null: 'null',
  'an array': '[]',
  'no output': '{"id":"resp_1","object":"response"}',
  'output of another type': '{"output":{}}',
  'output of null': '{"output":null}',
};
