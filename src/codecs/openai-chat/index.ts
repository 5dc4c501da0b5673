/** Exports the codec of OpenAI Chat Completions. */
import type { Codec, Resending } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
import { parseFields, providerTool, positiveNumberIn } from '../resending.ts';
import { insertHiddenRecalls, promptBody, write, read } from './request.ts';
import {
  continueWith,
  errorBody,
  isComplete,
  isTruncated,
  overflowIn,
  readResponse,
  refusesReasoning,
  writeResponse,
} from './response.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';

/** OpenAI Chat Completions, and every server that speaks it: `POST /v1/chat/completions`. */
export const openaiChat: Codec = {
  name: 'openai-chat',
  genAi: { provider: 'openai', operation: 'chat' },
  read,
  write,
  rules,
  readResponse,
  isComplete,
  isTruncated,
  writeResponse,
  openStream,
  continueWith,
  insertHiddenRecalls,
  resending,
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};

/** Fields that make the provider do or keep something. */
const effects = ['store', 'web_search_options', 'plugins'] as const;
const resendingFields = new Set(['tools', 'max_tokens', 'max_completion_tokens', 'n', ...effects]);

function resending(body: Uint8Array): Resending {
  const fields = parseFields(body, resendingFields);
  const tokens = positiveNumberIn(fields['max_completion_tokens']) ?? positiveNumberIn(fields['max_tokens']);
  return {
    effect:
      effects.find((name) => fields[name]) ??
      providerTool(fields['tools'], (type) => ['function', 'custom', ''].includes(type)),
    maxOutputTokens: tokens,
    replies: positiveNumberIn(fields['n']),
  };
}
