import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool as toolOf } from 'langchain';
import { expect } from 'vitest';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/langchain.ts';
import { contentOf, expectedTexts, paths, question, searching, tool } from './long-loop.ts';
import { type AtUrl, describeAdapter, plainFormat, playLoop } from './play-loop.ts';

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

describeAdapter({
  name: 'leporelloMiddleware',
  formats: Object.keys(providers),
  // LangChain drops the arguments of a search that Anthropic ran in a streamed reply.
  losesInStreams: ['messages'],
  play: (format, { streaming, ...says }, folding) =>
    playLoop({ ...says, runsCode: says.thinks }, async (url, read) => {
      const checkpointer = new MemorySaver();
      const agent = createAgent({
        model: providers[format]!(url, folding.fetch),
        checkpointer,
        ...(!folding.fetch && { middleware: [leporelloMiddleware(folding.leporello, folding.options)] }),
        tools: [toolOf(read, { ...tool, schema: z.object({ path: z.string() }) })],
      });
      const input = { messages: [new HumanMessage(question)] };
      const config = { recursionLimit: 400, configurable: { thread_id: 'one' } };
      const events: unknown[] = [];
      if (streaming) {
        for await (const event of await agent.stream(input, {
          ...config,
          streamMode: ['messages', 'updates'],
        }))
          events.push(event);
      } else await agent.invoke(input, config);
      const { values } = await agent.graph.getState(config);
      const { messages } = values as { readonly messages: readonly BaseMessage[] };
      const saved = await checkpointer.getTuple(config);
      return { messages, events, saved };
    }),
  check: ({ messages, events, saved, sent }, format) => {
    const texts = messages.filter((message) => AIMessage.isInstance(message)).map((message) => message.text);
    expect(texts.filter((text) => text !== '')).toEqual(expectedTexts);
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    expect(results.map(({ content }) => content)).toEqual(paths.map(contentOf));
    // Every later request has each search of the provider, or what it ran; a second one would be refused.
    for (const index of format === plainFormat ? [] : searching) {
      const search = new RegExp(`"(?:ws|srvtoolu)_${index}"`);
      for (const body of sent.slice(index + 1)) expect(body).toMatch(search);
      expect(JSON.stringify(messages)).toMatch(search);
    }
    return [events, messages, saved];
  },
});
