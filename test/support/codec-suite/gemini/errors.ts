/** Errors of Gemini generateContent for the codec suite, in the words of the provider. */
import type { ErrorFixture, ErrorResponse } from '../fixture.ts';

const statuses: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'UNIMPLEMENTED',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
  'UNAVAILABLE',
]);

/** The official client keeps the JSON as its message, and the status; a stream ends at a `code` of 400 to 599. */
export function parseError(status: number, body: Uint8Array) {
  const { error } = JSON.parse(new TextDecoder().decode(body)) as {
    readonly error: { readonly code: number; readonly message: string; readonly status: string };
  };
  return { message: error.message, isTyped: error.code === status && statuses.has(error.status) };
}

function said(message: string, status = 'INVALID_ARGUMENT', code = 400): ErrorResponse {
  return { status: code, body: JSON.stringify({ error: { code, message, status } }, null, 2) };
}

function tokens(response: ErrorResponse, prompt?: number, limit?: number) {
  return { ...response, means: { unit: 'tokens', limit, prompt } as const };
}

export const overflows: ErrorFixture['overflows'] = {
  'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).': tokens(
    said('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
    1_200_000,
    1_048_576,
  ),
  'The input token count exceeds the maximum number of tokens allowed 1048576.': tokens(
    said('The input token count exceeds the maximum number of tokens allowed 1048576.'),
    undefined,
    1_048_576,
  ),
  'Unable to submit request because the input token count is 1200000': tokens(
    said(
      'Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count and try again.',
    ),
    1_200_000,
    1_048_576,
  ),
  'Request payload size exceeds the limit: 20971520 bytes.': {
    ...said('Request payload size exceeds the limit: 20971520 bytes.'),
    means: { unit: 'bytes' },
  },
};

export const otherErrors: Readonly<Record<string, ErrorResponse>> = {
  'a bad key': said('API key not valid. Please pass a valid API key.'),
  'a rate limit by tokens': said(
    'You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000',
    'RESOURCE_EXHAUSTED',
    429,
  ),
  'a signature of another model': said('Corrupted thought signature.'),
  'a missing signature': said(
    'Function call `f` in the `2.` content block is missing a `thought_signature`.',
  ),
  'unpaired calls': said(
    'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
  ),
  'too many output tokens': said(
    'Unable to submit request because it has a maxOutputTokens value of 200000 but the supported range is from 1 (inclusive) to 65537 (exclusive).',
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
  'no candidates': '{"responseId":"r"}',
  'candidates of another type': '{"candidates":{}}',
  'an empty list of candidates': '{"candidates":[]}',
  'a candidate that is no object': '{"candidates":[5]}',
  'an error': '{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}',
};
