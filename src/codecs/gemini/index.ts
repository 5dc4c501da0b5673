/** Exports the codec of Gemini generateContent. */
import type { Codec, Resending } from '../codec.ts';
import { isRecord, objectsOf } from '../../conversation/json-scan.ts';
import { explainError } from '../provider-errors.ts';
import { parseFields, positiveNumberIn } from '../resending.ts';
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

/** Returns the codec of generateContent on one route: `POST /v1beta/models/MODEL:generateContent`, or `:streamGenerateContent?alt=sse`. */
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
    resending,
    promptBody,
    errorBody,
    overflowIn,
    refusesReasoning,
    explainError,
  };
}

/** Gemini generateContent when the route names neither model nor streaming. */
export const gemini: Codec = geminiFor({ model: undefined, streaming: false });

/** Fields that make the provider keep something, or use what it keeps. The API takes both spellings. */
const effects = ['cachedContent', 'cached_content', 'store'] as const;
const resendingFields = new Set(['tools', 'generationConfig', 'generation_config', ...effects]);

/** The one kind of tool that clients run. */
const clientTools: ReadonlySet<string> = new Set(['functionDeclarations', 'function_declarations']);

function resending(body: Uint8Array): Resending {
  const fields = parseFields(body, resendingFields);
  const kinds = objectsOf(fields['tools']).flatMap(Object.keys);
  const foreign = kinds.find((kind) => !clientTools.has(kind));
  const config = fields['generationConfig'] ?? fields['generation_config'];
  const settings = isRecord(config) ? config : {};
  const tokens =
    positiveNumberIn(settings['maxOutputTokens']) ?? positiveNumberIn(settings['max_output_tokens']);
  const replies =
    positiveNumberIn(settings['candidateCount']) ?? positiveNumberIn(settings['candidate_count']);
  return {
    effect: effects.find((name) => fields[name]) ?? (foreign && `the tool ${foreign} of the provider`),
    maxOutputTokens: tokens,
    replies,
  };
}
