/** Exports the codec of Gemini generateContent. */
import type { Codec } from '../codec.ts';
import { explainError } from '../provider-errors.ts';
import { continueWith, insertHiddenRecalls } from './hidden-recalls.ts';
import { type GeminiRoute, promptBody, write, readOn } from './request.ts';
import {
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

/** Gemini generateContent on one route: `POST /v1beta/models/MODEL:generateContent`, or `:streamGenerateContent?alt=sse`. */
export function geminiFor(route: GeminiRoute): Codec {
  return {
    name: 'gemini',
    genAi: { provider: 'gcp.gemini', operation: 'generate_content' },
    route,
    read: readOn(route),
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
}

/** Gemini generateContent when the route names neither model nor streaming. */
export const gemini: Codec = geminiFor({ model: undefined, streaming: false });
