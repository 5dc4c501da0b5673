import Anthropic from '@anthropic-ai/sdk';
import { parameters, tool } from './scenario.ts';
import { sdkSuite } from './suite.ts';

sdkSuite('@anthropic-ai/sdk', {
  finish: { calls: 'tool_use', stop: 'end_turn' },
  start({ url, fetch, streaming, runTool }) {
    const client = new Anthropic({ baseURL: url, apiKey: 'dummy', maxRetries: 0, ...(fetch && { fetch }) });
    const messages: Anthropic.MessageParam[] = [];

    async function complete(): Promise<Anthropic.Message> {
      const request = {
        model: 'claude-sonnet-5',
        max_tokens: 1_000,
        messages,
        tools: [{ ...tool, input_schema: parameters }],
      };
      return streaming ? client.messages.stream(request).finalMessage() : client.messages.create(request);
    }

    return async (userText) => {
      messages.push({ role: 'user', content: userText });
      const replies = [];
      for (;;) {
        const { content, stop_reason, usage } = await complete();
        replies.push({
          text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
          finish: stop_reason ?? undefined,
          input: usage.input_tokens,
          output: usage.output_tokens,
        });
        messages.push({ role: 'assistant', content });
        const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] => {
          if (block.type !== 'tool_use') return [];
          const { path } = block.input as { path: string };
          return [{ type: 'tool_result', tool_use_id: block.id, content: runTool(path) }];
        });
        if (results.length === 0) return { replies, everything: messages };
        messages.push({ role: 'user', content: results });
      }
    };
  },
});
