/** The answers of Gemini generateContent to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, oddBodies } from './bodies.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';

export const geminiFixture: CodecFixture = {
  body,
  oddBodies,
  recorded: recordedBodies('gemini'),
  broken: brokenBodies,
  // Clients of this format neither move marks about nor spell one content in two ways.
  sameMeaning: [],
  movingKeys: new Set(),
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
