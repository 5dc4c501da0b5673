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
import { leporelloProvider } from '../../../src/adapters/openai-agents.ts';
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

type Run = {
  readonly name: string;
  readonly providerAt: (url: string) => ModelProvider;
  readonly streaming: boolean;
  readonly thinks: boolean;
  readonly searches?: readonly number[];
};

/** Returns the text of an item that the model said. */
function textOf(item: AgentInputItem): string {
  if (!('role' in item) || item.role !== 'assistant') return '';
  return item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}

/** Plays the conversation. Returns what the program, its session and the provider saw. */
const play = ({ name, providerAt, streaming, ...says }: Run) =>
  playLoop(says, async (url, read) => {
    const session = new MemorySession();
    const runner = new Runner({ tracingDisabled: true, modelProvider: providerAt(url) });
    const agent = new Agent<unknown, AgentOutputType>({
      name: 'Reader',
      instructions: 'Be brief.',
      model: name,
      tools: [toolOf({ ...tool, parameters: z.object({ path: z.string() }), execute: (args) => read(args) })],
    });
    const events: unknown[] = [];
    const options = { maxTurns: 100, session };
    if (streaming) {
      const result = await runner.run(agent, question, { ...options, stream: true });
      for await (const event of result) events.push(event);
      await result.completed;
    } else await runner.run(agent, question, options);
    return { items: await session.getItems(), events };
  });

describe.each(Object.entries(providers))('leporelloProvider over %s', (_, [name, providerAt]) => {
  it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_way, way) => {
    const reports: FoldReport[] = [];
    const leporello = createLeporello(settings);
    const onPrepared = ({ report }: { readonly report: FoldReport }) => void reports.push(report);
    const folding = (url: string) => leporelloProvider(providerAt(url), leporello, { onPrepared });
    const run = await play({ ...way, name, providerAt: folding });
    const { items, events } = run;
    expect(items.map(textOf).join('')).toBe(expectedTexts.join(''));
    const results = items.filter((item) => item.type === 'function_call_result');
    expect(results.map(({ output }) => output)).toEqual(
      paths.map((path) => ({ type: 'text', text: contentOf(path) })),
    );
    expectFoldedRun(run, reports, [events, items]);
  });
});

describe.each(Object.entries(providers))('leporelloProvider over %s', (_, [name, providerAt]) => {
  it('sends the same from a second instance on the same store', async () => {
    const store = inMemoryStore();
    const sent = () => {
      const leporello = createLeporello({ ...settings, store });
      const folding = (url: string) => leporelloProvider(providerAt(url), leporello);
      return play({ name, providerAt: folding, streaming: false, thinks: false });
    };
    expect(firstDifference((await sent()).sent, (await sent()).sent)).toBeUndefined();
  });
});

describe('the same conversation', () => {
  it.each(Object.entries(providers))(
    'is sent by the adapter as by the gateway over %s',
    (_, [name, providerAt]) =>
      expectSameEdits(({ fetch, leporello, onPrepared }) => {
        const folding = (url: string) =>
          fetch ? providerAt(url, fetch) : leporelloProvider(providerAt(url), leporello, { onPrepared });
        return play({ name, providerAt: folding, streaming: false, thinks: true, searches: searching });
      }, 150),
  );
});
