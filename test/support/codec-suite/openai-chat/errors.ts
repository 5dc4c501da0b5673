/** Errors of Chat Completions for the codec suite, in the words of the provider and of servers that speak its format. */
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
    body: JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'messages', ...more } }),
  };
}

function tokens(response: ErrorResponse, prompt?: number, limit?: number) {
  return { ...response, means: { unit: 'tokens', limit, prompt } as const };
}

/** Sentences of servers that speak this format, with the prompt and the limit that they name, in tokens. */
const sentences: readonly (readonly [sentence: string, prompt?: number, limit?: number])[] = [
  [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens. Please reduce the length of the messages.",
    150_000,
    128_000,
  ],
  [
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    66_000,
    65_536,
  ],
  [
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (138000 of text input, 2000 in the output).",
    138_000,
    131_072,
  ],
  ['Your input exceeds the context window of this model. Please adjust your input and try again.'],
  [
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.',
    300_000,
    272_000,
  ],
  [
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    1_196_265,
    1_048_575,
  ],
  ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537_812, 131_072],
  [
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    40_000,
    32_768,
  ],
  ['Please reduce the length of the messages or completion.'],
  ['prompt token count of 120000 exceeds the limit of 64000', 120_000, 64_000],
  ['Your request exceeded model token limit: 131,072 (requested: 200,000)', 200_000, 131_072],
  ['invalid params, context window exceeds limit'],
  ['the request exceeds the available context size, try increasing it'],
  ['request (5123 tokens) exceeds the available context size (4096 tokens), try increasing it', 5_123, 4_096],
  ['The number of tokens to keep from the initial prompt is greater than the context length'],
];

export const overflows: ErrorFixture['overflows'] = {
  'code context_length_exceeded': tokens(said('Too long.', { code: 'context_length_exceeded' })),
  'code spelled with spaces': tokens({
    status: 400,
    body: '{ "error" : { "message" : "" , "code" : "context_length_exceeded" } }',
  }),
  // FastAPI, which many servers are built with, refuses with this status.
  'status 422': tokens(said('context_length_exceeded', { code: 'context_length_exceeded' }, 422)),
  ...Object.fromEntries(
    sentences.map(([sentence, ...numbers]) => [sentence, tokens(said(sentence), ...numbers)]),
  ),
};

export const otherErrors: Readonly<Record<string, ErrorResponse>> = {
  'a bad key': said('Incorrect API key provided: sk-x.', { code: 'invalid_api_key' }, 401),
  'a rate limit by tokens': said(
    'Rate limit reached for chat-large on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.',
    { code: 'rate_limit_exceeded' },
    429,
  ),
  'a missing field': said("Missing required parameter: 'messages'.", { code: 'missing_required_parameter' }),
  'unpaired calls': said(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
  ),
  'too many output tokens': said(
    'max_tokens is too large: 200000. This model supports at most 16384 completion tokens.',
  ),
  'a page of a proxy': { status: 413, body: '<html><h1>413 Request Entity Too Large</h1></html>' },
  nothing: { status: 400, body: '' },
};

export const badResponses: Readonly<Record<string, string>> = {
  'not JSON': '<html>',
  nothing: '',
  null: 'null',
  'an array': '[]',
  'no choices': '{"id":"x"}',
  'choices of another type': '{"choices":{}}',
  'an empty list of choices': '{"choices":[]}',
  'a choice that is no object': '{"choices":[5]}',
  'a choice without a message': '{"choices":[{"index":0}]}',
  'a message that is no object': '{"choices":[{"message":"hello"}]}',
};
