import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, HumanMessage, type UsageMetadata } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool as toolOf } from 'langchain';
import { z } from 'zod';
import { tool, usageOfOne } from './scenario.ts';
import { type ClientOptions, type SdkClient, sdkSuite } from './suite.ts';

type Where = Pick<ClientOptions, 'url' | 'fetch'>;

/** Uses the agent's own loop. When streaming, LangChain reports no finish reason in one place. */
function clientOf(
  modelAt: (at: Where) => BaseChatModel,
  reported: Pick<SdkClient, 'usageOf'> = {},
): SdkClient {
  return {
    ...reported,
    finish: { calls: undefined, stop: undefined },
    start({ url, fetch, streaming, runTool }) {
      const agent = createAgent({
        model: modelAt({ url, fetch }),
        tools: [
          toolOf(({ path }: { path: string }) => runTool(path), {
            ...tool,
            schema: z.object({ path: z.string() }),
          }),
        ],
      });
      let messages: BaseMessage[] = [];

      async function stream(input: BaseMessage[]) {
        const seen: unknown[] = [];
        let state: { messages: BaseMessage[] } = { messages: [] };
        const options = {
          streamMode: ['messages', 'values'] as ('messages' | 'values')[],
          recursionLimit: 100,
        };
        for await (const [mode, data] of await agent.stream({ messages: input }, options)) {
          if (mode === 'values') state = data as typeof state;
          else seen.push(data);
        }
        return { state, seen };
      }

      return async (userText) => {
        const input = [...messages, new HumanMessage(userText)];
        const { state, seen } = streaming
          ? await stream(input)
          : { state: await agent.invoke({ messages: input }, { recursionLimit: 100 }), seen: [] };
        messages = state.messages;
        const replies = repliesIn(messages.slice(input.length));
        return { replies, everything: [seen, messages] };
      };
    },
  };
}

function repliesIn(messages: readonly BaseMessage[]) {
  return messages
    .filter((message) => AIMessage.isInstance(message))
    .map(({ text, usage_metadata: usage }: { text: string; usage_metadata?: UsageMetadata | undefined }) => ({
      text,
      finish: undefined,
      input: usage?.input_tokens,
      output: usage?.output_tokens,
    }));
}

/** When streaming, it takes the input tokens from the first event of a message and adds the one output token reported there. */
function usageOfStart(replies: number, streaming: boolean) {
  const output = usageOfOne.output * replies;
  return streaming
    ? { input: usageOfOne.input, output: output + 1 }
    : { input: usageOfOne.input * replies, output };
}

const apiKey = 'dummy';
const openai = ({ url, fetch }: Where, useResponsesApi: boolean) =>
  new ChatOpenAI({
    model: useResponsesApi ? 'gpt-5' : 'gpt-4o',
    apiKey,
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${url}/v1`, ...(fetch && { fetch }) },
  });

sdkSuite(
  'langchain and @langchain/openai, chat',
  clientOf((at) => openai(at, false)),
);
sdkSuite(
  'langchain and @langchain/openai, responses',
  clientOf((at) => openai(at, true)),
);
sdkSuite(
  'langchain and @langchain/anthropic',
  clientOf(
    ({ url, fetch }) =>
      new ChatAnthropic({
        model: 'claude-sonnet-5',
        apiKey,
        maxRetries: 0,
        maxTokens: 1_000,
        anthropicApiUrl: url,
        ...(fetch && { clientOptions: { fetch } }),
      }),
    { usageOf: usageOfStart },
  ),
);
