/** The answers of OpenAI Responses to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, oddBodies, sameMeaning } from './bodies.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';

export const responsesFixture: CodecFixture = {
  body,
  oddBodies,
  recorded: recordedBodies('openai-responses'),
  broken: brokenBodies,
  sameMeaning,
  movingKeys: new Set(['prompt_cache_breakpoint']),
  response,
  clientResponse,
  stream,
  streamError,
  client,
  heard,
  parseError,
  overflows,
  otherErrors,
  badResponses,
};
