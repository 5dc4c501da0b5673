/** A small agent per official SDK: it sends requests and runs the called tools until the model answers. */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

/** The result of one agent run, as a client of the gateway sees it. */
export type Run = {
  readonly answer: string;
  /** Names of the tools the client was asked to run, in order. */
  readonly toolsRun: readonly string[];
  readonly outcomes: readonly (string | null)[];
  readonly usage: readonly unknown[];
};

export type AgentOptions = {
  readonly url: string;
  readonly model: string;
  readonly streaming: boolean;
  readonly task: string;
  readonly runTool: (name: string, input: unknown) => string;
  readonly apiKey?: string;
};

const description = 'Reads a file of the project.';
const parameters = { type: 'object' as const, properties: { path: { type: 'string' } }, required: ['path'] };

export async function runOpenai(options: AgentOptions): Promise<Run> {
  const client = new OpenAI({
    baseURL: `${options.url}/v1`,
    apiKey: options.apiKey ?? 'dummy',
    maxRetries: 0,
  });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: options.task }];
  const seen = { toolsRun: [] as string[], outcomes: [] as (string | null)[], usage: [] as unknown[] };
  for (;;) {
    const request = {
      model: options.model,
      messages,
      tools: [{ type: 'function' as const, function: { name: 'read_file', description, parameters } }],
    };
    const reply = options.streaming
      ? await client.chat.completions
          .stream({ ...request, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.create(request);
    const message = reply.choices[0]!.message;
    seen.usage.push(reply.usage);
    messages.push(message);
    if (!message.tool_calls?.length) return { answer: message.content ?? '', ...seen };
    for (const call of message.tool_calls) {
      if (call.type !== 'function') continue;
      seen.toolsRun.push(call.function.name);
      messages.push({
        role: 'tool',
        tool_call_id: call.id,
        content: options.runTool(call.function.name, JSON.parse(call.function.arguments)),
      });
    }
  }
}

export async function runResponses(options: AgentOptions): Promise<Run> {
  const client = new OpenAI({
    baseURL: `${options.url}/v1`,
    apiKey: options.apiKey ?? 'dummy',
    maxRetries: 0,
  });
  const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: options.task }];
  const seen = { toolsRun: [] as string[], outcomes: [] as (string | null)[], usage: [] as unknown[] };
  for (;;) {
    const request = {
      model: options.model,
      input,
      store: false,
      tools: [{ type: 'function' as const, name: 'read_file', description, parameters, strict: false }],
    };
    const reply = options.streaming
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    seen.usage.push(reply.usage);
    input.push(...(reply.output as readonly OpenAI.Responses.ResponseInputItem[]));
    const calls = reply.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    if (calls.length === 0) return { answer: reply.output_text, ...seen };
    for (const call of calls) {
      seen.toolsRun.push(call.name);
      const output = options.runTool(call.name, JSON.parse(call.arguments));
      input.push({ type: 'function_call_output', call_id: call.call_id, output });
    }
  }
}

export async function runAnthropic(options: AgentOptions): Promise<Run> {
  const client = new Anthropic({ baseURL: options.url, apiKey: options.apiKey ?? 'dummy', maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: options.task }];
  const seen = { toolsRun: [] as string[], outcomes: [] as (string | null)[], usage: [] as unknown[] };
  for (;;) {
    const request = {
      model: options.model,
      max_tokens: 1_000,
      messages,
      tools: [{ name: 'read_file', description, input_schema: parameters }],
    };
    const reply = options.streaming
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    seen.usage.push(reply.usage);
    messages.push({ role: 'assistant', content: reply.content });
    const results: Anthropic.ToolResultBlockParam[] = [];
    for (const block of reply.content) {
      if (block.type !== 'tool_use') continue;
      seen.toolsRun.push(block.name);
      results.push({
        type: 'tool_result',
        tool_use_id: block.id,
        content: options.runTool(block.name, block.input),
      });
    }
    if (results.length === 0) {
      return {
        answer: reply.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
        ...seen,
      };
    }
    messages.push({ role: 'user', content: results });
  }
}
