/** The answers of Chat Completions to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, oddBodies, sameMeaning } from './bodies.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { client, clientResponse, heard, response, stream, streamError } from './responses.ts';

export const chatFixture: CodecFixture = {
  body,
  oddBodies,
  recorded: recordedBodies('openai-chat'),
  broken: brokenBodies,
  sameMeaning,
  movingKeys: new Set(['cache_control']),
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
