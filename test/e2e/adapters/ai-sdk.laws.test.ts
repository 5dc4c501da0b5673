import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import {
  generateText,
  isStepCount,
  type LanguageModel,
  streamText,
  tool as toolOf,
  type ToolSet,
  wrapLanguageModel,
} from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AdapterOptions, leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
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
  usage,
} from './long-loop.ts';
import { type AtUrl, expectFoldedRun, expectSameEdits, playLoop, ways } from './play-loop.ts';

type Wrapped = Parameters<typeof wrapLanguageModel>[0]['model'];

const apiKey = 'dummy';
const providers: Readonly<Record<string, AtUrl<LanguageModel>>> = {
  'chat completions': (url, fetch) =>
    createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) }).chat('gpt-4o'),
  responses: (url, fetch) => createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('gpt-5'),
  messages: (url, fetch) =>
    createAnthropic({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('claude-sonnet-5'),
  gemini: (url, fetch) =>
    createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey, ...(fetch && { fetch }) })('gemini-3-pro'),
};

/** Tools that a provider runs itself. The scripted one uses them without being asked. */
const ownTools: Readonly<Record<string, ToolSet>> = {
  'chat completions': {},
  responses: { web_search: createOpenAI({ apiKey }).tools.webSearch({}) },
  messages: { web_search: createAnthropic({ apiKey }).tools.webSearch_20250305({}) },
  gemini: { code_execution: createGoogleGenerativeAI({ apiKey }).tools.codeExecution({}) },
};

type Run = {
  readonly modelAt: (url: string) => LanguageModel;
  readonly streaming: boolean;
  readonly thinks: boolean;
  readonly searches?: readonly number[];
  readonly own?: ToolSet;
};

/** Plays the conversation. Returns everything that the program and the provider saw. */
const play = ({ modelAt, streaming, own, ...says }: Run) =>
  playLoop(says, async (url, read) => {
    const problems: unknown[] = [];
    const options = {
      model: modelAt(url),
      prompt: question,
      maxRetries: 0,
      maxOutputTokens: 1_000,
      stopWhen: isStepCount(100),
      tools: {
        ...own,
        [tool.name]: toolOf({
          description: tool.description,
          inputSchema: z.object({ path: z.string() }),
          execute: read,
        }),
      },
    };
    const result = streaming
      ? streamText({ ...options, onError: ({ error }) => void problems.push(error) })
      : await generateText(options);
    const events: unknown[] = [];
    if ('fullStream' in result) for await (const part of result.fullStream) events.push(part);
    expect(problems).toEqual([]);
    return { steps: await result.steps, messages: await result.responseMessages, events };
  });

function wrapped(
  modelAt: Run['modelAt'],
  options: AdapterOptions = {},
  leporello = createLeporello(settings),
): Run['modelAt'] {
  const middleware = leporelloMiddleware(leporello, options);
  return (url) => wrapLanguageModel({ model: modelAt(url) as Wrapped, middleware });
}

describe.each(Object.entries(providers))('leporelloMiddleware over %s', (format, modelAt) => {
  it.each(ways)('runs 60 steps through folds and hidden recalls, %s', async (_name, way) => {
    const reports: FoldReport[] = [];
    const noted = wrapped(modelAt, { onPrepared: ({ report }) => void reports.push(report) });
    const run = await play({ ...way, modelAt: noted, searches: searching, own: ownTools[format]! });
    const { steps, messages, events } = run;
    expect(steps.map(({ text }) => text).filter((text) => text !== '')).toEqual(expectedTexts);
    const inputs = steps.map((step) => step.usage.inputTokens);
    expect(inputs.filter((tokens) => tokens === 2 * usage.input).length).toBe(2);
    // The program's own messages are complete.
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    expect(results.map((part) => (part.type === 'tool-result' ? part.output : part))).toEqual(
      paths.map((path) => ({ type: 'text', value: contentOf(path) })),
    );
    // The program and the last request have each search of the provider. Chat Completions has nothing like it.
    for (const index of format === 'chat completions' ? [] : searching) {
      const search = new RegExp(`"(?:ws|srvtoolu)_${index}"|search ${index}\\b`);
      expect(JSON.stringify(messages)).toMatch(search);
      expect(run.sent.at(-1)).toMatch(search);
    }
    expectFoldedRun(run, reports, [events, messages, steps.map((step) => step.content)]);
  });
});

describe.each(Object.entries(providers))('leporelloMiddleware over %s', (_, modelAt) => {
  it('sends the same from a second instance on the same store', async () => {
    const store = inMemoryStore();
    const way = { streaming: false, thinks: false };
    const sent = () =>
      play({ ...way, modelAt: wrapped(modelAt, {}, createLeporello({ ...settings, store })) });
    expect(firstDifference((await sent()).sent, (await sent()).sent)).toBeUndefined();
  });
});

describe('the same conversation', () => {
  it.each(Object.entries(providers))('is sent by the adapter as by the gateway over %s', (format, modelAt) =>
    expectSameEdits(({ fetch, leporello, onPrepared }) => {
      const folding = fetch
        ? (url: string) => modelAt(url, fetch)
        : wrapped(modelAt, { onPrepared }, leporello);
      const own = ownTools[format]!;
      return play({ streaming: true, thinks: true, searches: searching, own, modelAt: folding });
    }, 150),
  );
});
