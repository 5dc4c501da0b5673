import {
  Agent,
  type AgentInputItem,
  type AgentOutputType,
  MemorySession,
  type ModelProvider,
  OpenAIProvider,
  Runner,
  tool as toolOf,
} from '@openai/agents';
import OpenAI from 'openai';
import { expect } from 'vitest';
import { z } from 'zod';
import { leporelloProvider } from '../../../src/adapters/openai-agents.ts';
import { contentOf, expectedTexts, paths, question, tool } from './long-loop.ts';
import { type AtUrl, describeAdapter, playLoop } from './play-loop.ts';

const openai = (url: string, useResponses: boolean, fetch: typeof globalThis.fetch | undefined) => {
  const openAIClient = new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: 'dummy',
    maxRetries: 0,
    ...(fetch && { fetch }),
  });
  return new OpenAIProvider({ openAIClient, useResponses });
};
const providers: Readonly<Record<string, readonly [string, AtUrl<ModelProvider>]>> = {
  'chat completions': ['gpt-4o', (url, fetch) => openai(url, false, fetch)],
  responses: ['gpt-5', (url, fetch) => openai(url, true, fetch)],
};

/** Returns the text of an item that the model said. */
function textOf(item: AgentInputItem): string {
  if (!('role' in item) || item.role !== 'assistant') return '';
  return item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}

describeAdapter({
  name: 'leporelloProvider',
  formats: Object.keys(providers),
  play: (format, { streaming, ...says }, folding) =>
    playLoop(says, async (url, read) => {
      const [name, providerAt] = providers[format]!;
      const provider = providerAt(url, folding.fetch);
      const session = new MemorySession();
      const runner = new Runner({
        tracingDisabled: true,
        modelProvider: folding.fetch
          ? provider
          : leporelloProvider(provider, folding.leporello, folding.options),
      });
      const agent = new Agent<unknown, AgentOutputType>({
        name: 'Reader',
        instructions: 'Be brief.',
        model: name,
        tools: [
          toolOf({ ...tool, parameters: z.object({ path: z.string() }), execute: (args) => read(args) }),
        ],
      });
      const events: unknown[] = [];
      const options = { maxTurns: 100, session };
      if (streaming) {
        const result = await runner.run(agent, question, { ...options, stream: true });
        for await (const event of result) events.push(event);
        await result.completed;
      } else await runner.run(agent, question, options);
      return { items: await session.getItems(), events };
    }),
  check: ({ items, events }) => {
    expect(items.map(textOf).join('')).toBe(expectedTexts.join(''));
    const results = items.filter((item) => item.type === 'function_call_result');
    expect(results.map(({ output }) => output)).toEqual(
      paths.map((path) => ({ type: 'text', text: contentOf(path) })),
    );
    return [events, items];
  },
});
