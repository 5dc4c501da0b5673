import {
  Agent,
  type AgentInputItem,
  type AgentOutputItem,
  type AgentOutputType,
  OpenAIProvider,
  Runner,
  tool as toolOf,
  user,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { tool } from './scenario.ts';
import { collect, type SdkClient, sdkSuite } from './suite.ts';

/** Returns the text of an output item. `finalOutput` has only the last such text if there is no reasoning in between. */
function textOf(item: AgentOutputItem): string {
  if (item.type !== 'message' || item.role !== 'assistant') return '';
  return item.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
}

/** Uses the runner's own loop, which reports no finish reason. */
function clientOf(model: string, useResponses: boolean): SdkClient {
  return {
    finish: { calls: undefined, stop: undefined },
    start({ url, fetch, streaming, runTool }) {
      const openAIClient = new OpenAI({
        baseURL: `${url}/v1`,
        apiKey: 'dummy',
        maxRetries: 0,
        ...(fetch && { fetch }),
      });
      const runner = new Runner({
        tracingDisabled: true,
        modelProvider: new OpenAIProvider({ openAIClient, useResponses }),
      });
      const agent = new Agent<unknown, AgentOutputType>({
        name: 'Reader',
        instructions: 'Be brief.',
        model,
        tools: [
          toolOf({
            ...tool,
            parameters: z.object({ path: z.string() }),
            execute: ({ path }) => runTool(path),
          }),
        ],
      });
      let history: AgentInputItem[] = [];

      async function stream(input: AgentInputItem[]) {
        const result = await runner.run(agent, input, { stream: true, maxTurns: 20 });
        const events = await collect(result);
        await result.completed;
        return { result, events };
      }

      return async (userText) => {
        const input = [...history, user(userText)];
        const { result, events } = streaming
          ? await stream(input)
          : { result: await runner.run(agent, input, { maxTurns: 20 }), events: [] };
        history = result.history;
        const replies = result.rawResponses.map(({ output, usage }) => ({
          text: output.map(textOf).join(''),
          finish: undefined,
          input: usage.inputTokens,
          output: usage.outputTokens,
        }));
        return { replies, everything: [events, history] };
      };
    },
  };
}

sdkSuite('@openai/agents, chat', clientOf('gpt-4o', false));
sdkSuite('@openai/agents, responses', clientOf('gpt-5', true));
