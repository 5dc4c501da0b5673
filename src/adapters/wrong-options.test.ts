import { describe, expect, it } from 'vitest';
import { scriptedModel } from '../../test/support/scripted-sdk-model.ts';
import { createLeporello } from '../library/leporello.ts';
import * as sdk from './ai-sdk.ts';
import { createLeporelloFetch } from './fetch.ts';
import * as langchain from './langchain.ts';
import { openMemory } from './mcp.ts';
import * as agents from './openai-agents.ts';

const leporello = createLeporello();
const model = scriptedModel(() => []) as never;

const rounds =
  'maxRecallRound is not an option. Did you mean maxRecallRounds? Known options: tenant, maxRecallRounds, maxRecallTokens, onPrepared';
const shrinking = 'model, windowTokens, triggerShare, targetShare, question, summarizer, waitMs, tenant';

/** Calls as a program without types may make them: `options` is not what the types allow. */
const wrong: readonly (readonly [
  name: string,
  call: (options: never) => unknown,
  options: object,
  message: string,
])[] = [
  [
    'the middleware of the AI SDK',
    (options) => sdk.leporelloMiddleware(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}.`,
  ],
  [
    'prepareStep of the AI SDK',
    (options) => sdk.leporelloPrepareStep(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}.`,
  ],
  [
    'the tools of the AI SDK',
    (options) => sdk.leporelloTools(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}.`,
  ],
  [
    'shorter results of the AI SDK',
    (options) => sdk.shrinkResults(leporello, {}, options),
    { windowToken: 3 },
    `windowToken is not an option. Did you mean windowTokens? Known options: ${shrinking}.`,
  ],
  [
    'the middleware of LangChain',
    (options) => langchain.leporelloMiddleware(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}, shrinkResults, recall.`,
  ],
  [
    'shorter results of LangChain',
    (options) => langchain.leporelloMiddleware(leporello, options),
    { shrinkResults: { windowToken: 3 } },
    `shrinkResults.windowToken is not an option. Did you mean shrinkResults.windowTokens? Known options: ${shrinking}.`,
  ],
  [
    'the model of LangChain',
    (options) => langchain.leporelloModel(model, leporello, options),
    { maxRecallRound: 3 },
    `${rounds}.`,
  ],
  [
    'the provider of OpenAI Agents',
    (options) => agents.leporelloProvider(model, leporello, options),
    { maxRecallRound: 3 },
    `${rounds}, model.`,
  ],
  [
    'the model of OpenAI Agents',
    (options) => agents.leporelloModel(model, leporello, options),
    { maxRecallRound: 3 },
    `${rounds}, model.`,
  ],
  [
    'the filter of OpenAI Agents',
    (options) => agents.leporelloInputFilter(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}, model.`,
  ],
  [
    'the tool of OpenAI Agents',
    (options) => agents.leporelloRecallTool(leporello, options),
    { maxRecallRound: 3 },
    `${rounds}, model.`,
  ],
  [
    'the session of OpenAI Agents',
    (options) => new agents.LeporelloSession(leporello, options),
    { sessionID: 'one' },
    'sessionID is not an option. Did you mean sessionId? Known options: sessionId, tenant, ttlMs.',
  ],
  [
    'a value that is not allowed',
    (options) => sdk.leporelloMiddleware(leporello, options),
    { maxRecallRounds: '3' },
    'maxRecallRounds is "3", but must be a whole number of at least 0.',
  ],
];

describe('a wrong argument', () => {
  const missing = undefined as never;
  it.each<[string, () => unknown, string]>([
    [
      'no tools',
      () => sdk.shrinkResults(leporello, missing),
      'tools is missing, but must be an object of tools by name.',
    ],
    [
      'an instance in place of its options',
      () => createLeporelloFetch(leporello as never),
      'The options are what createLeporello() returned. Pass the options of createLeporello() themselves, such as models and store.',
    ],
    [
      'no instance',
      () => langchain.leporelloMiddleware(missing),
      'The first argument is missing, but must be what createLeporello() returned.',
    ],
  ])('is refused at once: %s', (_, call, message) => {
    expect(call).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });
});

describe('the adapters', () => {
  it.each(wrong)('refuse a wrong option: %s', (_, call, options, message) => {
    expect(() => call(options as never)).toThrow(expect.objectContaining({ code: 'bad-config', message }));
  });

  it('refuse a wrong option: the memory for MCP', async () => {
    await expect(openMemory({ data: '/nowhere', tennant: 'me' } as never)).rejects.toMatchObject({
      code: 'bad-config',
      message: 'tennant is not an option. Did you mean tenant? Known options: data, tenant, maxTokens.',
    });
  });
});
