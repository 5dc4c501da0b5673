import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool as toolOf } from 'langchain';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';
import { leporelloMiddleware } from '../../../src/adapters/langchain.ts';
import { createLeporello, type FoldReport } from '../../../src/index.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import {
  changedBeginnings,
  contentOf,
  expectedTexts,
  firstDifference,
  model,
  paths,
  question,
  requestsOfRun,
  settings,
  tool,
} from './long-loop.ts';

type Fetch = typeof globalThis.fetch;

const apiKey = 'dummy';
const openai = (url: string, useResponsesApi: boolean, fetch: Fetch | undefined) =>
  new ChatOpenAI({
    model: useResponsesApi ? 'gpt-5' : 'gpt-4o',
    apiKey,
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${url}/v1`, ...(fetch && { fetch }) },
  });
const providers: Readonly<Record<string, (url: string, fetch?: Fetch) => BaseChatModel>> = {
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
  readonly middleware?: ReturnType<typeof leporelloMiddleware>;
};

/** Plays the conversation. Returns what the program, its checkpoint and the provider saw. */
async function play({ modelAt, streaming, thinks, middleware }: Run) {
  const provider = await startFakeProvider({ script: model({ thinks }) });
  try {
    const toolsRun: string[] = [];
    const checkpointer = new MemorySaver();
    const agent = createAgent({
      model: modelAt(provider.url),
      checkpointer,
      ...(middleware && { middleware: [middleware] }),
      tools: [
        toolOf(
          ({ path }: { path: string }) => {
            toolsRun.push(path);
            return contentOf(path);
          },
          { ...tool, schema: z.object({ path: z.string() }) },
        ),
      ],
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
    const sent = provider.requests.map(({ body }) => new TextDecoder().decode(body));
    return { messages, events, saved, toolsRun, sent };
  } finally {
    await provider.close();
  }
}

const ways = [
  ['plain', { streaming: false, thinks: false }],
  ['streamed', { streaming: true, thinks: false }],
  ['plain, with a model that reasons', { streaming: false, thinks: true }],
  ['streamed, with a model that reasons', { streaming: true, thinks: true }],
] as const;

describe.each(Object.entries(providers))('leporelloMiddleware over %s', (_, modelAt) => {
  it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_name, way) => {
    const reports: FoldReport[] = [];
    const middleware = leporelloMiddleware(createLeporello(settings), {
      onPrepared: ({ report }) => void reports.push(report),
    });
    const { messages, events, saved, toolsRun, sent } = await play({ ...way, modelAt, middleware });
    const texts = messages.filter((message) => AIMessage.isInstance(message)).map((message) => message.text);
    expect(texts.filter((text) => text !== '')).toEqual(expectedTexts);
    expect(toolsRun).toEqual(paths);
    expect(sent.length).toBe(requestsOfRun);
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    expect(results.map(({ content }) => content)).toEqual(paths.map(contentOf));
    const everything = JSON.stringify([events, messages, saved]);
    expect(['read_memory', 'mem_', '[Folded'].filter((text) => everything.includes(text))).toEqual([]);
    expect(reports.at(-1)!.tokensBefore).toBeGreaterThan(32_000);
    expect(Math.max(...reports.map(({ tokensAfter }) => tokensAfter!))).toBeLessThan(32_000);
    const folds = reports.filter(({ trigger }) => trigger !== undefined).length;
    expect(folds).toBeGreaterThan(0);
    expect(changedBeginnings(sent)).toBe(folds);
  });
});

describe('the same conversation', () => {
  it.each(Object.entries(providers))(
    'is sent by the adapter as by the gateway over %s',
    async (_, modelAt) => {
      const fetch = createLeporelloFetch({ ...settings, cacheMarks: false, prepareDeadlineMs: 600_000 });
      const way = { streaming: false, thinks: false };
      const byGateway = await play({ ...way, modelAt: (url) => modelAt(url, fetch) });
      const byAdapter = await play({
        ...way,
        modelAt,
        middleware: leporelloMiddleware(createLeporello(settings)),
      });
      expect(firstDifference(byAdapter.sent, byGateway.sent)).toBeUndefined();
    },
  );
});
