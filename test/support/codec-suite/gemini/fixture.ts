/** The answers of Gemini generateContent to the codec suite. */
import { geminiFor } from '../../../../src/codecs/gemini/index.ts';
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, oddBodies, refused } from './bodies.ts';
import { exchanges } from './exchanges.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';
import { usage } from './usage.ts';

export const geminiFixture: CodecFixture = {
  body,
  model: 'gemini-2.5-pro',
  route: { in: 'url', codecFor: geminiFor },
  messagesKey: 'contents',
  userTwiceInARow: { breaks: 'roles-alternate' },
  newNeighbours: { standIn: '[Earlier replies are folded.]' },
  turnInRequest: 'whole',
  oddBodies,
  refused,
  recorded: recordedBodies('gemini'),
  broken: brokenBodies,
  sameMeaning: {
    absent: 'Clients of this format neither move marks about nor spell one content in two ways.',
  },
  movingKeys: new Set(),
  response,
  clientResponse,
  reasoningShown: { ofEarlierRounds: 'kept', whereOnlyRecallsFollow: 'kept' },
  stream,
  streamError,
  client,
  official: {
    absent: 'The official client hands every chunk on as a response of its own: it accumulates nothing.',
  },
  heard,
  exchanges,
  parseError,
  overflows,
  otherErrors,
  badResponses,
  usage,
};
