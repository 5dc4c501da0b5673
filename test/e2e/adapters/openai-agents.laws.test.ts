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
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';
import { leporelloProvider } from '../../../src/adapters/openai-agents.ts';
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

const openai = (url: string, useResponses: boolean, fetch: Fetch | undefined) => {
  const openAIClient = new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: 'dummy',
    maxRetries: 0,
    ...(fetch && { fetch }),
  });
  return new OpenAIProvider({ openAIClient, useResponses });
};
const providers: Readonly<Record<string, readonly [string, (url: string, fetch?: Fetch) => ModelProvider]>> =
  {
    'chat completions': ['gpt-4o', (url, fetch) => openai(url, false, fetch)],
    responses: ['gpt-5', (url, fetch) => openai(url, true, fetch)],
  };

type Run = {
  readonly name: string;
  readonly providerAt: (url: string) => ModelProvider;
  readonly streaming: boolean;
  readonly thinks: boolean;
};

/** Returns the text of an item that the model said. */
function textOf(item: AgentInputItem): string {
  if (!('role' in item) || item.role !== 'assistant') return '';
  return item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}

/** Plays the conversation. Returns what the program, its session and the provider saw. */
async function play({ name, providerAt, streaming, thinks }: Run) {
  const provider = await startFakeProvider({ script: model({ thinks }) });
  try {
    const toolsRun: string[] = [];
    const session = new MemorySession();
    const runner = new Runner({ tracingDisabled: true, modelProvider: providerAt(provider.url) });
    const agent = new Agent<unknown, AgentOutputType>({
      name: 'Reader',
      instructions: 'Be brief.',
      model: name,
      tools: [
        toolOf({
          ...tool,
          parameters: z.object({ path: z.string() }),
          execute: ({ path }) => {
            toolsRun.push(path);
            return contentOf(path);
          },
        }),
      ],
    });
    const events: unknown[] = [];
    const options = { maxTurns: 100, session };
    if (streaming) {
      const result = await runner.run(agent, question, { ...options, stream: true });
      for await (const event of result) events.push(event);
      await result.completed;
    } else await runner.run(agent, question, options);
    const items = await session.getItems();
    const sent = provider.requests.map(({ body }) => new TextDecoder().decode(body));
    return { items, events, toolsRun, sent };
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

describe.each(Object.entries(providers))('leporelloProvider over %s', (_, [name, providerAt]) => {
  it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_way, way) => {
    const reports: FoldReport[] = [];
    const leporello = createLeporello(settings);
    const onPrepared = ({ report }: { readonly report: FoldReport }) => void reports.push(report);
    const folding = (url: string) => leporelloProvider(providerAt(url), leporello, { onPrepared });
    const { items, events, toolsRun, sent } = await play({ ...way, name, providerAt: folding });
    expect(items.map(textOf).join('')).toBe(expectedTexts.join(''));
    expect(toolsRun).toEqual(paths);
    expect(sent.length).toBe(requestsOfRun);
    const results = items.filter((item) => item.type === 'function_call_result');
    expect(results.map(({ output }) => output)).toEqual(
      paths.map((path) => ({ type: 'text', text: contentOf(path) })),
    );
    const everything = JSON.stringify([events, items]);
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
    async (_, [name, providerAt]) => {
      const fetch = createLeporelloFetch({ ...settings, cacheMarks: false, prepareDeadlineMs: 600_000 });
      const way = { name, streaming: false, thinks: false };
      const byGateway = await play({ ...way, providerAt: (url) => providerAt(url, fetch) });
      const folding = (url: string) => leporelloProvider(providerAt(url), createLeporello(settings));
      const byAdapter = await play({ ...way, providerAt: folding });
      expect(firstDifference(byAdapter.sent, byGateway.sent)).toBeUndefined();
    },
  );
});
