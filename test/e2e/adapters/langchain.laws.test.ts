import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool as toolOf } from 'langchain';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/langchain.ts';
import { createLeporello, type FoldReport, inMemoryStore } from '../../../src/index.ts';
import {
  contentOf,
  expectedTexts,
  firstDifference,
  paths,
  question,
  searching,
  settings,
  tool,
} from './long-loop.ts';
import { type AtUrl, expectFoldedRun, expectSameEdits, playLoop, ways } from './play-loop.ts';

const apiKey = 'dummy';
const openai = (url: string, useResponsesApi: boolean, fetch: typeof globalThis.fetch | undefined) =>
  new ChatOpenAI({
    model: useResponsesApi ? 'gpt-5' : 'gpt-4o',
    apiKey,
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${url}/v1`, ...(fetch && { fetch }) },
  });
const providers: Readonly<Record<string, AtUrl<BaseChatModel>>> = {
  'chat completions': (url, fetch) => openai(url, false, fetch),
  responses: (url, fetch) => openai(url, true, fetch),
  messages: (url, fetch) =>
    new ChatAnthropic({
      model: 'claude-sonnet-5',
      apiKey,
      maxRetries: 0,
      maxTokens: 1_000,
      anthropicApiUrl: url,
      ...(fetch && { clientOptions: { fetch } }),
    }),
};

type Run = {
  readonly modelAt: (url: string) => BaseChatModel;
  readonly streaming: boolean;
  readonly thinks: boolean;
  readonly searches?: readonly number[];
  readonly runsCode?: boolean;
  readonly middleware?: ReturnType<typeof leporelloMiddleware>;
};

/** Plays the conversation. Returns what the program, its checkpoint and the provider saw. */
const play = ({ modelAt, streaming, middleware, ...says }: Run) =>
  playLoop(says, async (url, read) => {
    const checkpointer = new MemorySaver();
    const agent = createAgent({
      model: modelAt(url),
      checkpointer,
      ...(middleware && { middleware: [middleware] }),
      tools: [toolOf(read, { ...tool, schema: z.object({ path: z.string() }) })],
    });
    const input = { messages: [new HumanMessage(question)] };
    const config = { recursionLimit: 400, configurable: { thread_id: 'one' } };
    const events: unknown[] = [];
    if (streaming) {
      for await (const event of await agent.stream(input, { ...config, streamMode: ['messages', 'updates'] }))
        events.push(event);
    } else await agent.invoke(input, config);
    const { values } = await agent.graph.getState(config);
    const { messages } = values as { readonly messages: readonly BaseMessage[] };
    const saved = await checkpointer.getTuple(config);
    return { messages, events, saved };
  });

describe.each(Object.entries(providers))('leporelloMiddleware over %s', (format, modelAt) => {
  it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_name, way) => {
    const reports: FoldReport[] = [];
    const middleware = leporelloMiddleware(createLeporello(settings), {
      onPrepared: ({ report }) => void reports.push(report),
    });
    const run = await play({ ...way, modelAt, middleware, searches: searching, runsCode: way.thinks });
    const { messages, events, saved } = run;
    const texts = messages.filter((message) => AIMessage.isInstance(message)).map((message) => message.text);
    expect(texts.filter((text) => text !== '')).toEqual(expectedTexts);
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    expect(results.map(({ content }) => content)).toEqual(paths.map(contentOf));
    // Every later request has each search of the provider, or what it ran; a second one would be refused. Chat Completions has nothing like it.
    for (const index of format === 'chat completions' ? [] : searching) {
      const search = new RegExp(`"(?:ws|srvtoolu)_${index}"`);
      for (const body of run.sent.slice(index + 1)) expect(body).toMatch(search);
      expect(JSON.stringify(messages)).toMatch(search);
    }
    expectFoldedRun(run, reports, [events, messages, saved]);
  });
});

describe.each(Object.entries(providers))('leporelloMiddleware over %s', (_, modelAt) => {
  it('sends the same from a second instance on the same store', async () => {
    const store = inMemoryStore();
    const sent = () => {
      const middleware = leporelloMiddleware(createLeporello({ ...settings, store }));
      return play({ streaming: false, thinks: false, modelAt, middleware });
    };
    expect(firstDifference((await sent()).sent, (await sent()).sent)).toBeUndefined();
  });
});

describe('the same conversation', () => {
  it.each(Object.entries(providers))('is sent by the adapter as by the gateway over %s', (_, modelAt) =>
    expectSameEdits(({ fetch, leporello, onPrepared }) => {
      const way = { streaming: false, thinks: true, searches: searching, runsCode: true };
      if (fetch) return play({ ...way, modelAt: (url) => modelAt(url, fetch) });
      return play({ ...way, modelAt, middleware: leporelloMiddleware(leporello, { onPrepared }) });
    }, 150),
  );
});
