import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import {
  generateText,
  isStepCount,
  type LanguageModel,
  type ModelMessage,
  streamText,
  tool as toolOf,
} from 'ai';
import { z } from 'zod';
import { tool } from './scenario.ts';
import { type ClientOptions, collect, type SdkClient, sdkSuite } from './suite.ts';

type Where = Pick<ClientOptions, 'url' | 'fetch'>;

type ProviderOptions = NonNullable<Parameters<typeof generateText>[0]['providerOptions']>;

/** Uses the SDK's own loop, which runs the tools and sends requests until the model answers. */
function clientOf(modelAt: (at: Where) => LanguageModel, providerOptions: ProviderOptions = {}): SdkClient {
  return {
    finish: { calls: 'tool-calls', stop: 'stop' },
    start({ url, fetch, streaming, runTool }) {
      const messages: ModelMessage[] = [];
      const settings = {
        model: modelAt({ url, fetch }),
        messages,
        providerOptions,
        maxRetries: 0,
        maxOutputTokens: 1_000,
        stopWhen: isStepCount(20),
        tools: {
          [tool.name]: toolOf({
            description: tool.description,
            inputSchema: z.object({ path: z.string() }),
            execute: ({ path }) => runTool(path),
          }),
        },
      };

      async function generate() {
        const { steps, responseMessages } = await generateText(settings);
        return { steps, responseMessages, everything: steps };
      }

      async function stream() {
        const problems: unknown[] = [];
        const result = streamText({ ...settings, onError: ({ error }) => void problems.push(error) });
        const events = await collect(result.fullStream);
        if (problems.length > 0) throw problems[0];
        return {
          steps: await result.steps,
          responseMessages: await result.responseMessages,
          everything: events,
        };
      }

      return async (userText) => {
        messages.push({ role: 'user', content: userText });
        const { steps, responseMessages, everything } = await (streaming ? stream() : generate());
        messages.push(...responseMessages);
        const replies = steps.map(({ text, finishReason: finish, usage }) => ({
          text,
          finish,
          input: usage.inputTokens,
          output: usage.outputTokens,
        }));
        return { replies, everything: [everything, messages] };
      };
    },
  };
}

const apiKey = 'dummy';
const openai = ({ url, fetch }: Where) =>
  createOpenAI({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) });

sdkSuite(
  'ai and @ai-sdk/openai, chat',
  clientOf((at) => openai(at).chat('gpt-4o')),
);
sdkSuite(
  'ai and @ai-sdk/openai, responses stored by the client',
  clientOf((at) => openai(at)('gpt-5'), { openai: { store: false } }),
);
sdkSuite(
  'ai and @ai-sdk/openai, responses stored by the provider',
  clientOf((at) => openai(at)('gpt-5')),
);
sdkSuite(
  'ai and @ai-sdk/anthropic',
  clientOf(({ url, fetch }) =>
    createAnthropic({ baseURL: `${url}/v1`, apiKey, ...(fetch && { fetch }) })('claude-sonnet-5'),
  ),
);
sdkSuite(
  'ai and @ai-sdk/google',
  clientOf(({ url, fetch }) =>
    createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey, ...(fetch && { fetch }) })('gemini-3-pro'),
  ),
);
