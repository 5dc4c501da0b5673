import OpenAI from 'openai';
import { expect, it } from 'vitest';
import { offering, startStack } from '../stack.ts';
import { parameters, tool } from './scenario.ts';
import { sdkSuite } from './suite.ts';

sdkSuite('openai, Responses', {
  finish: { calls: 'completed', stop: 'completed' },
  start({ url, fetch, streaming, runTool }) {
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: 'dummy',
      maxRetries: 0,
      ...(fetch && { fetch }),
    });
    const input: OpenAI.Responses.ResponseInputItem[] = [];
    const seen: unknown[] = [];

    async function respond(): Promise<OpenAI.Responses.Response> {
      const request = {
        model: 'gpt-5',
        input,
        store: false,
        include: ['reasoning.encrypted_content' as const],
        tools: [{ type: 'function' as const, ...tool, parameters, strict: false }],
      };
      return streaming ? client.responses.stream(request).finalResponse() : client.responses.create(request);
    }

    return async (userText) => {
      input.push({ role: 'user', content: userText });
      const replies = [];
      for (;;) {
        const response = await respond();
        seen.push(response);
        const { output, output_text: text, status: finish, usage } = response;
        replies.push({ text, finish, input: usage?.input_tokens, output: usage?.output_tokens });
        // The types differ for a few kinds of items that this request cannot return.
        input.push(...(output as OpenAI.Responses.ResponseInputItem[]));
        const calls = output.filter((item) => item.type === 'function_call');
        if (calls.length === 0) return { replies, everything: seen };
        for (const call of calls) {
          const { path } = JSON.parse(call.arguments) as { path: string };
          input.push({ type: 'function_call_output', call_id: call.call_id, output: runTool(path) });
        }
      }
    };
  },
});

// Only here a client may see that a tool was added: docs/decisions/0006.
it('the tools that a response repeats are not changed', async () => {
  await using stack = await startStack(
    [{ type: 'turn', parts: [{ type: 'text', text: 'Hello' }] }],
    offering,
  );
  const client = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: 'dummy', maxRetries: 0 });
  const tools = [{ type: 'function' as const, ...tool, parameters, strict: false }];
  const response = await client.responses.create({ model: 'gpt-5', input: 'Hello', tools });
  expect(response.tools.map((one) => 'name' in one && one.name)).toEqual([tool.name, 'read_memory']);
});
