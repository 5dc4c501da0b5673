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
import { collect, type SdkClient, sdkSuite } from './suite.ts';

type ProviderOptions = NonNullable<Parameters<typeof generateText>[0]['providerOptions']>;

/** Uses the SDK's own loop, which runs the tools and sends requests until the model answers. */
function clientOf(modelAt: (url: string) => LanguageModel, providerOptions: ProviderOptions = {}): SdkClient {
  return {
    finish: { calls: 'tool-calls', stop: 'stop' },
    start({ url, streaming, runTool }) {
      const messages: ModelMessage[] = [];
      const settings = {
        model: modelAt(url),
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
const openai = (url: string) => createOpenAI({ baseURL: `${url}/v1`, apiKey });

sdkSuite(
  'ai and @ai-sdk/openai, chat',
  clientOf((url) => openai(url).chat('gpt-4o')),
);
sdkSuite(
  'ai and @ai-sdk/openai, responses stored by the client',
  clientOf((url) => openai(url)('gpt-5'), { openai: { store: false } }),
);
sdkSuite(
  'ai and @ai-sdk/openai, responses stored by the provider',
  clientOf((url) => openai(url)('gpt-5')),
);
sdkSuite(
  'ai and @ai-sdk/anthropic',
  clientOf((url) => createAnthropic({ baseURL: `${url}/v1`, apiKey })('claude-sonnet-5')),
);
sdkSuite(
  'ai and @ai-sdk/google',
  clientOf((url) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })('gemini-3-pro')),
);
