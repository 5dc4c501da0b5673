/** Exports the codec of OpenAI Chat Completions. */
import type { Codec } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
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
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};
