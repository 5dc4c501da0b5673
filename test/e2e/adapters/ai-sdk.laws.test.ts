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
import { expect } from 'vitest';
import { z } from 'zod';
import { leporelloMiddleware } from '../../../src/adapters/ai-sdk.ts';
import { contentOf, expectedTexts, paths, question, searching, tool, usage } from './long-loop.ts';
import { type AtUrl, describeAdapter, plainFormat, playLoop } from './play-loop.ts';

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

describeAdapter({
  name: 'leporelloMiddleware',
  formats: Object.keys(providers),
  play: (format, { streaming, isStateless, ...says }, folding) =>
    playLoop(says, async (url, read) => {
      const problems: unknown[] = [];
      const model = providers[format]!(url, folding.fetch) as Wrapped;
      const options = {
        model: folding.fetch
          ? model
          : wrapLanguageModel({ model, middleware: leporelloMiddleware(folding.leporello, folding.options) }),
        prompt: question,
        maxRetries: 0,
        maxOutputTokens: 1_000,
        stopWhen: isStepCount(100),
        tools: {
          ...(says.searches && ownTools[format]),
          [tool.name]: toolOf({
            description: tool.description,
            inputSchema: z.object({ path: z.string() }),
            execute: read,
          }),
        },
        // Otherwise the SDK sends ids in place of what the provider keeps, and a gateway does not know it.
        ...(isStateless === true && { providerOptions: { openai: { store: false } } }),
      };
      const result = streaming
        ? streamText({ ...options, onError: ({ error }) => void problems.push(error) })
        : await generateText(options);
      const events: unknown[] = [];
      if ('fullStream' in result) for await (const part of result.fullStream) events.push(part);
      expect(problems).toEqual([]);
      return { steps: await result.steps, messages: await result.responseMessages, events };
    }),
  check: ({ steps, messages, events, sent }, format) => {
    expect(steps.map(({ text }) => text).filter((text) => text !== '')).toEqual(expectedTexts);
    const inputs = steps.map((step) => step.usage.inputTokens);
    expect(inputs.filter((tokens) => tokens === 2 * usage.input).length).toBe(2);
    // The program's own messages are complete.
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    expect(results.map((part) => (part.type === 'tool-result' ? part.output : part))).toEqual(
      paths.map((path) => ({ type: 'text', value: contentOf(path) })),
    );
    // The program and the last request have each search of the provider.
    for (const index of format === plainFormat ? [] : searching) {
      const search = new RegExp(`"(?:ws|srvtoolu)_${index}"|search ${index}\\b`);
      expect(JSON.stringify(messages)).toMatch(search);
      expect(sent.at(-1)).toMatch(search);
    }
    return [events, messages, steps.map((step) => step.content)];
  },
});
