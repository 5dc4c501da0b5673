import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import {
  generateText,
  isStepCount,
  type LanguageModel,
  streamText,
  tool as toolOf,
  wrapLanguageModel,
} from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AdapterOptions, leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { createLeporelloFetch } from '../../../src/adapters/fetch.ts';
import { createLeporello, type FoldReport } from '../../../src/index.ts';
import { startFakeProvider } from '../../support/fake-provider/fake-provider.ts';
import {
  changedBeginnings,
  contentOf,
  expectedTexts,
  model,
  paths,
  question,
  requestsOfRun,
  settings,
  tool,
  usage,
  firstDifference,
} from './long-loop.ts';

type Wrapped = Parameters<typeof wrapLanguageModel>[0]['model'];

const apiKey = 'dummy';
const providers: Readonly<Record<string, (url: string, fetch?: typeof globalThis.fetch) => LanguageModel>> = {
  'chat completions': (url, fetch) =>
    createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) }).chat('gpt-4o'),
  responses: (url, fetch) => createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('gpt-5'),
  messages: (url, fetch) =>
    createAnthropic({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('claude-sonnet-5'),
  gemini: (url, fetch) =>
    createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey, ...(fetch && { fetch }) })('gemini-3-pro'),
};

type Run = {
  readonly modelAt: (url: string) => LanguageModel;
  readonly streaming: boolean;
  readonly thinks: boolean;
};

/** Plays the conversation. Returns everything that the program and the provider saw. */
async function play({ modelAt, streaming, thinks }: Run) {
  const provider = await startFakeProvider({ script: model({ thinks }) });
  try {
    const toolsRun: string[] = [];
    const problems: unknown[] = [];
    const options = {
      model: modelAt(provider.url),
      prompt: question,
      maxRetries: 0,
      maxOutputTokens: 1_000,
      stopWhen: isStepCount(100),
      tools: {
        [tool.name]: toolOf({
          description: tool.description,
          inputSchema: z.object({ path: z.string() }),
          execute: ({ path }: { path: string }) => {
            toolsRun.push(path);
            return contentOf(path);
          },
        }),
      },
    };
    const result = streaming
      ? streamText({ ...options, onError: ({ error }) => void problems.push(error) })
      : await generateText(options);
    const events: unknown[] = [];
    if ('fullStream' in result) for await (const part of result.fullStream) events.push(part);
    expect(problems).toEqual([]);
    const [steps, messages] = [await result.steps, await result.responseMessages];
    const sent = provider.requests.map(({ body }) => new TextDecoder().decode(body));
    return { steps, messages, events, toolsRun, sent };
  } finally {
    await provider.close();
  }
}

function wrapped(modelAt: Run['modelAt'], options: AdapterOptions = {}): Run['modelAt'] {
  const middleware = leporelloMiddleware(createLeporello(settings), options);
  return (url) => wrapLanguageModel({ model: modelAt(url) as Wrapped, middleware });
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
    const noted = wrapped(modelAt, { onPrepared: ({ report }) => void reports.push(report) });
    const { steps, messages, events, toolsRun, sent } = await play({ ...way, modelAt: noted });
    expect(steps.map(({ text }) => text).filter((text) => text !== '')).toEqual(expectedTexts);
    expect(toolsRun).toEqual(paths);
    expect(sent.length).toBe(requestsOfRun);
    const inputs = steps.map((step) => step.usage.inputTokens);
    expect(inputs.filter((tokens) => tokens === 2 * usage.input).length).toBe(2);
    // The program's own messages are complete.
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    expect(results.map((part) => (part.type === 'tool-result' ? part.output : part))).toEqual(
      paths.map((path) => ({ type: 'text', value: contentOf(path) })),
    );
    const everything = JSON.stringify([events, messages, steps.map((step) => step.content)]);
    expect(['read_memory', 'mem_', '[Folded'].filter((text) => everything.includes(text))).toEqual([]);
    // The untouched context overflows, and what was sent changes its beginning only by a fold.
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
      const way = { streaming: true, thinks: false };
      const byGateway = await play({ ...way, modelAt: (url) => modelAt(url, fetch) });
      const byAdapter = await play({ ...way, modelAt: wrapped(modelAt) });
      expect(firstDifference(byAdapter.sent, byGateway.sent)).toBeUndefined();
    },
  );
});
