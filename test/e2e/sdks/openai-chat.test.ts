import OpenAI from 'openai';
import { parameters, tool } from './scenario.ts';
import { sdkSuite } from './suite.ts';

sdkSuite('openai, Chat Completions', {
  finish: { calls: 'tool_calls', stop: 'stop' },
  start({ url, fetch, streaming, runTool }) {
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: 'dummy',
      maxRetries: 0,
      ...(fetch && { fetch }),
    });
    const messages: OpenAI.ChatCompletionMessageParam[] = [];

    async function complete(): Promise<OpenAI.ChatCompletion> {
      const request = {
        model: 'gpt-4o',
        messages,
        tools: [{ type: 'function' as const, function: { ...tool, parameters } }],
      };
      if (!streaming) return client.chat.completions.create(request);
      return client.chat.completions
        .stream({ ...request, stream_options: { include_usage: true } })
        .finalChatCompletion();
    }

    return async (userText) => {
      messages.push({ role: 'user', content: userText });
      const replies = [];
      for (;;) {
        const { choices, usage } = await complete();
        const { message, finish_reason: finish } = choices[0]!;
        replies.push({
          text: message.content ?? '',
          finish,
          input: usage?.prompt_tokens,
          output: usage?.completion_tokens,
        });
        messages.push(message);
        if (!message.tool_calls) return { replies, everything: messages };
        for (const call of message.tool_calls) {
          if (call.type !== 'function') continue;
          const { path } = JSON.parse(call.function.arguments) as { path: string };
          messages.push({ role: 'tool', tool_call_id: call.id, content: runTool(path) });
        }
      }
    };
  },
});
