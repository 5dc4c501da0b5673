/** Exports the codec of Anthropic Messages. */
import type { Codec } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
import { cacheMarks } from './cache-marks.ts';
import { insertHiddenRecalls, promptBody, continueWith, write, read } from './request.ts';
import {
  errorBody,
  overflowIn,
  isTruncated,
  isComplete,
  readResponse,
  refusesReasoning,
  writeResponse,
} from './response.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';

/** Anthropic Messages: `POST /v1/messages`. */
export const anthropicMessages: Codec = {
  name: 'anthropic-messages',
  genAi: { provider: 'anthropic', operation: 'chat' },
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
  cacheMarks,
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};
