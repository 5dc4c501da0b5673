/** Errors of Chat Completions for the codec suite, in the words of the provider and of servers that speak its format. */
import { APIError } from 'openai';
import type { ErrorResponse } from '../fixture.ts';

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

export const overflows: Readonly<Record<string, ErrorResponse>> = {
  'code context_length_exceeded': said('Too long.', { code: 'context_length_exceeded' }),
  'code spelled with spaces': {
    status: 400,
    body: '{ "error" : { "message" : "" , "code" : "context_length_exceeded" } }',
  },
  "This model's maximum context length is 128000 tokens.": said(
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens. Please reduce the length of the messages.",
    { code: null },
  ),
  'Your input exceeds the context window of this model.': said(
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  ),
  'Input tokens exceed the configured limit of 272000 tokens.': said(
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.',
  ),
  ...quoted(
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    'Please reduce the length of the messages or completion.',
    'prompt token count of 120000 exceeds the limit of 64000',
    'Your request exceeded model token limit: 131072 (requested: 200000)',
    'invalid params, context window exceeds limit',
    'the request exceeds the available context size, try increasing it',
    'The number of tokens to keep from the initial prompt is greater than the context length',
  ),
};

function quoted(...sentences: readonly string[]): Readonly<Record<string, ErrorResponse>> {
  return Object.fromEntries(sentences.map((sentence) => [sentence, said(sentence)]));
}

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
