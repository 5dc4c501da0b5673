/** The answers of Anthropic Messages to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, model, oddBodies, refused, sameMeaning } from './bodies.ts';
import { exchanges } from './exchanges.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { official } from './official.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';
import { usage } from './usage.ts';

export const messagesFixture: CodecFixture = {
  body,
  model,
  route: { in: 'body' },
  messagesKey: 'messages',
  userTwiceInARow: 'allowed',
  newNeighbours: 'stay apart',
  turnInRequest: 'whole',
  oddBodies,
  refused,
  recorded: recordedBodies('anthropic-messages'),
  broken: brokenBodies,
  sameMeaning,
  movingKeys: new Set(['cache_control']),
  response,
  clientResponse,
  reasoningShown: { ofEarlierRounds: 'kept', whereOnlyRecallsFollow: 'kept' },
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
