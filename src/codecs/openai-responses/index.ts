/** Exports the codec of OpenAI Responses. */
import type { Codec } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
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
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};
