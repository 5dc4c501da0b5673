/** The answers of Chat Completions to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, model, oddBodies, refused, sameMeaning } from './bodies.ts';
import { exchanges } from './exchanges.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { official } from './official.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';
import { usage } from './usage.ts';

export const chatFixture: CodecFixture = {
  body,
  model,
  route: { in: 'body' },
  messagesKey: 'messages',
  userTwiceInARow: 'allowed',
  newNeighbours: 'stay apart',
  turnInRequest: 'whole',
  oddBodies,
  refused,
  recorded: recordedBodies('openai-chat'),
  broken: brokenBodies,
  sameMeaning,
  movingKeys: new Set(['cache_control']),
  response,
  clientResponse,
  reasoningShown: { ofEarlierRounds: 'left out', whereOnlyRecallsFollow: 'kept' },
  stream,
  streamError,
  client,
  official,
  heard,
  exchanges,
  parseError,
  overflows,
  otherErrors,
  badResponses,
  usage,
};
