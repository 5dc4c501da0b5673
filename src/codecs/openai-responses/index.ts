/** The codec of OpenAI Responses. */
import type { Codec } from '../codec.ts';
import { explainError } from '../explain-error.ts';
import { errorBody, overflowIn } from './errors.ts';
import { insertHiddenRecalls } from './hidden-recalls.ts';
import { goOnFrom } from './kept.ts';
import { promptBody } from './prompt.ts';
import { read } from './read.ts';
import { isCut, isWhole, readResponse, writeResponse } from './response.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';
import { continueWith, write } from './write.ts';

/** OpenAI Responses, and every server that speaks it: `POST /v1/responses`. */
export const openaiResponses: Codec = {
  name: 'openai-responses',
  read,
  write,
  rules,
  readResponse,
  isWhole,
  isCut,
  writeResponse,
  openStream,
  continueWith,
  insertHiddenRecalls,
  goOnFrom,
  promptBody,
  errorBody,
  overflowIn,
  // Calls cannot stand without the reasoning that led to them.
  refusesReasoning: () => false,
  explainError,
};
