/** The answers of OpenAI Responses to the codec suite. */
import type { CodecFixture } from '../fixture.ts';
import { recordedBodies } from '../recorded.ts';
import { body, brokenBodies, model, oddBodies, refused, sameMeaning } from './bodies.ts';
import { exchanges } from './exchanges.ts';
import { badResponses, otherErrors, overflows, parseError } from './errors.ts';
import { official } from './official.ts';
import { clientResponse, response } from './responses.ts';
import { client, heard, stream, streamError } from './streams.ts';
import { usage } from './usage.ts';

export const responsesFixture: CodecFixture = {
  body,
  model,
  route: { in: 'body' },
  messagesKey: 'input',
  userTwiceInARow: 'allowed',
  newNeighbours: 'stay apart',
  turnInRequest: 'without its brackets',
  oddBodies,
  refused,
  recorded: recordedBodies('openai-responses'),
  broken: brokenBodies,
  sameMeaning,
  movingKeys: new Set(['prompt_cache_breakpoint']),
  response,
  clientResponse,
  reasoningShown: { ofEarlierRounds: 'kept', whereOnlyRecallsFollow: 'left out' },
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
