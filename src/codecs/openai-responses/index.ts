/** Exports the codec of OpenAI Responses. */
import type { Codec, Resending } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
import { parseFields, providerTool, positiveNumberIn } from '../resending.ts';
import {
  errorBody,
  isComplete,
  isTruncated,
  overflowIn,
  readResponse,
  refusesReasoning,
  writeResponse,
} from './response.ts';
import { insertHiddenRecalls, continueReply, promptBody, continueWith, write, read } from './request.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';

/** OpenAI Responses, and every server that speaks it: `POST /v1/responses`. */
export const openaiResponses: Codec = {
  name: 'openai-responses',
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
  continueReply,
  resending,
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};

/** Fields that make the provider do something, or continue what it keeps. */
const effects = ['background', 'previous_response_id', 'conversation', 'prompt'] as const;
const resendingFields = new Set(['tools', 'store', 'max_output_tokens', ...effects]);

/** Types of tools that clients run. */
const clientTools: ReadonlySet<string> = new Set(['function', 'custom', 'local_shell', 'apply_patch', '']);

function resending(body: Uint8Array): Resending {
  const fields = parseFields(body, resendingFields);
  // The provider keeps every response unless it is told not to.
  const kept = fields['store'] === false ? undefined : 'store';
  return {
    effect:
      effects.find((name) => fields[name]) ??
      kept ??
      providerTool(fields['tools'], (type) => clientTools.has(type)),
    maxOutputTokens: positiveNumberIn(fields['max_output_tokens']),
  };
}
