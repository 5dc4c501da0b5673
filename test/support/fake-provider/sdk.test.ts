import Anthropic, { BadRequestError as MessagesBadRequest } from '@anthropic-ai/sdk';
import OpenAI, { BadRequestError as ChatBadRequest, RateLimitError } from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { startFakeProvider } from './fake-provider.ts';
import type { FakeProvider } from './fake-provider.ts';
import type { Reply, Script } from './script.ts';

let provider: FakeProvider;

afterEach(() => provider.close());

const city = { city: 'Łódź 漢' };
/** A turn that calls two tools, then an answer. */
const loop: Script = ({ index }): Reply =>
  index % 2 === 0
    ? {
        type: 'turn',
        parts: [
          { type: 'text', text: 'Let me look, 😀 wait.' },
          { type: 'tool-call', name: 'weather', arguments: city },
          { type: 'tool-call', name: 'time', arguments: {} },
        ],
        usage: { input: 100, output: 20, cacheRead: 40, cacheWrite: 30 },
      }
    : { type: 'turn', parts: [{ type: 'text', text: 'Sunny.' }] };

describe('the official client of Chat Completions', () => {
  const tools = ['weather', 'time'].map((name) => ({ type: 'function' as const, function: { name } }));

  async function client(script: Script): Promise<OpenAI> {
    provider = await startFakeProvider({ script });
    return new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'k', maxRetries: 0 });
  }

  it.each([false, true])('finishes a tool loop (streamed: %s)', async (streamed) => {
    const openai = await client(loop);
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }];
    const ask = async (): Promise<OpenAI.ChatCompletion> => {
      const body = { model: 'm', messages, tools };
      if (!streamed) return openai.chat.completions.create(body);
      const stream = openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
      return stream.finalChatCompletion();
    };
    const { choices, usage } = await ask();
    const { message, finish_reason: finish } = choices[0]!;
    expect([
      message.content,
      finish,
      usage?.prompt_tokens,
      usage?.prompt_tokens_details?.cached_tokens,
    ]).toEqual(['Let me look, 😀 wait.', 'tool_calls', 100, 40]);
    expect(message.tool_calls).toMatchObject([
      { id: 'call_0_0', type: 'function', function: { name: 'weather', arguments: JSON.stringify(city) } },
      { id: 'call_0_1', type: 'function', function: { name: 'time', arguments: '{}' } },
    ]);
    messages.push(message);
    for (const { id } of message.tool_calls ?? [])
      messages.push({ role: 'tool', tool_call_id: id, content: 'r' });
    expect((await ask()).choices[0]?.message.content).toBe('Sunny.');
  });

  it('understands its errors and a broken stream', async () => {
    const openai = await client([
      { type: 'error', status: 429 },
      { type: 'cut', afterEvents: 3 },
    ]);
    const body = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] };
    await expect(openai.chat.completions.create(body)).rejects.toThrow(RateLimitError);
    const orphan = { role: 'tool' as const, tool_call_id: 'a', content: 'r' };
    await expect(openai.chat.completions.create({ ...body, messages: [orphan] })).rejects.toThrow(
      ChatBadRequest,
    );
    const stream = openai.chat.completions.stream(body);
    await expect(stream.finalChatCompletion()).rejects.toThrow();
  });
});

describe('the official client of Responses', () => {
  const tools = ['weather', 'time'].map((name) => ({
    type: 'function' as const,
    name,
    parameters: {},
    strict: false,
  }));
  const start: OpenAI.Responses.ResponseInputItem = { role: 'user', content: 'Weather?' };

  async function client(script: Script): Promise<OpenAI> {
    provider = await startFakeProvider({ script });
    return new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'k', maxRetries: 0 });
  }

  async function ask(
    openai: OpenAI,
    streamed: boolean,
    more: Pick<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'input' | 'store' | 'previous_response_id'>,
  ): Promise<OpenAI.Responses.Response> {
    const body = { model: 'm', tools, ...more };
    return streamed ? openai.responses.stream(body).finalResponse() : openai.responses.create(body);
  }

  it.each([false, true])(
    'finishes a tool loop that sends everything back (streamed: %s)',
    async (streamed) => {
      const openai = await client(thinkingLoop);
      const reply = await ask(openai, streamed, { input: [start], store: false });
      expect([reply.output_text, reply.status, reply.usage]).toMatchObject([
        'Let me look, 😀 wait.',
        'completed',
        {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 40, cache_write_tokens: 30 },
          output_tokens: 20,
          total_tokens: 120,
        },
      ]);
      expect(reply.output).toMatchObject([
        {
          type: 'reasoning',
          encrypted_content: 'c2ln',
          summary: [{ type: 'summary_text', text: 'Hm, so.' }],
        },
        { type: 'message', content: [{ type: 'output_text', text: 'Let me look, 😀 wait.' }] },
        { type: 'function_call', call_id: 'call_0_2', name: 'weather', arguments: JSON.stringify(city) },
        { type: 'function_call', call_id: 'call_0_3', name: 'time', arguments: '{}' },
      ]);
      const input = [start, ...itemsToSend(reply), ...outputsOf(reply)];
      expect((await ask(openai, streamed, { input, store: false })).output_text).toBe('Sunny.');
    },
  );

  it.each([false, true])('finishes one that sends only new input (streamed: %s)', async (streamed) => {
    const openai = await client(thinkingLoop);
    const reply = await ask(openai, streamed, { input: [start] });
    const next = { input: outputsOf(reply), previous_response_id: reply.id };
    expect((await ask(openai, streamed, next)).output_text).toBe('Sunny.');
    expect((await openai.responses.retrieve(reply.id)).output_text).toBe('Let me look, 😀 wait.');
    await openai.responses.delete(reply.id);
    await expect(openai.responses.retrieve(reply.id)).rejects.toThrow('not found');
  });

  it('counts, compacts, understands its errors and a broken stream', async () => {
    const openai = await client([
      { type: 'error', status: 429 },
      { type: 'cut', afterEvents: 3 },
    ]);
    const body = { model: 'm', input: [start] };
    expect((await openai.responses.inputTokens.count(body)).input_tokens).toBeGreaterThan(0);
    const compacted = await openai.responses.compact(body);
    expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
    await expect(openai.responses.create(body)).rejects.toThrow(RateLimitError);
    const orphan = { type: 'function_call_output' as const, call_id: 'a', output: 'r' };
    await expect(openai.responses.create({ ...body, input: [orphan] })).rejects.toThrow(ChatBadRequest);
    await expect(openai.responses.stream(body).finalResponse()).rejects.toThrow();
  });
});

/** The loop, and thinking before its calls. */
const thinkingLoop: Script = async (request) => {
  const turn = typeof loop === 'function' ? await loop(request) : undefined;
  if (turn?.type !== 'turn') throw new Error('The loop has turns only.');
  if (request.index % 2 === 1) return turn;
  return { ...turn, parts: [{ type: 'thinking', text: 'Hm, so.', signature: 'c2ln' }, ...turn.parts] };
};

/** An output is sent back unchanged; the official client's types need a cast for that. */
function itemsToSend({ output }: OpenAI.Responses.Response): readonly OpenAI.Responses.ResponseInputItem[] {
  return output as readonly OpenAI.Responses.ResponseInputItem[];
}

function outputsOf({ output }: OpenAI.Responses.Response): OpenAI.Responses.ResponseInputItem[] {
  return output.flatMap((item) =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'r' }]
      : [],
  );
}

describe('the official client of Messages', () => {
  const tools = ['weather', 'time'].map((name) => ({ name, input_schema: { type: 'object' as const } }));
  const start: Anthropic.MessageParam = { role: 'user', content: 'Weather?' };

  async function client(script: Script): Promise<Anthropic> {
    provider = await startFakeProvider({ script });
    return new Anthropic({ baseURL: provider.url, apiKey: 'k', maxRetries: 0 });
  }

  it.each([false, true])('finishes a tool loop (streamed: %s)', async (streamed) => {
    const anthropic = await client(loop);
    const messages: Anthropic.MessageParam[] = [start];
    const ask = (): Promise<Anthropic.Message> => {
      const body = { model: 'm', max_tokens: 100, messages, tools };
      return streamed ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body);
    };
    const reply = await ask();
    expect([reply.stop_reason, reply.usage]).toMatchObject([
      'tool_use',
      { input_tokens: 30, cache_read_input_tokens: 40, cache_creation_input_tokens: 30, output_tokens: 20 },
    ]);
    expect(reply.content).toMatchObject([
      { type: 'text', text: 'Let me look, 😀 wait.' },
      { type: 'tool_use', id: 'toolu_0_1', name: 'weather', input: city },
      { type: 'tool_use', id: 'toolu_0_2', name: 'time', input: {} },
    ]);
    const ids = reply.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
    messages.push({ role: 'assistant', content: reply.content });
    messages.push({ role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id })) });
    expect((await ask()).content).toMatchObject([{ type: 'text', text: 'Sunny.' }]);
  });

  it('reads signed thinking, plain and streamed', async () => {
    const thinking = { type: 'thinking', text: 'Hm, so.', signature: 'c2ln' } as const;
    const anthropic = await client(() => ({
      type: 'turn',
      parts: [thinking, { type: 'text', text: 'Yes.' }],
    }));
    const body = { model: 'm', max_tokens: 100, messages: [start] };
    const expected = [
      { type: 'thinking', thinking: 'Hm, so.', signature: 'c2ln' },
      { type: 'text', text: 'Yes.' },
    ];
    expect((await anthropic.messages.create(body)).content).toMatchObject(expected);
    expect((await anthropic.messages.stream(body).finalMessage()).content).toMatchObject(expected);
  });

  it('counts tokens, understands its errors and a broken stream', async () => {
    const anthropic = await client([
      { type: 'error', status: 529 },
      { type: 'cut', afterEvents: 3 },
    ]);
    const counted = await anthropic.messages.countTokens({ model: 'm', messages: [start] });
    expect(counted.input_tokens).toBeGreaterThan(0);
    const body = { model: 'm', max_tokens: 100, messages: [start] };
    await expect(anthropic.messages.create(body)).rejects.toMatchObject({
      status: 529,
      type: 'overloaded_error',
    });
    const orphan: Anthropic.MessageParam = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'a' }],
    };
    await expect(anthropic.messages.create({ ...body, messages: [orphan] })).rejects.toThrow(
      MessagesBadRequest,
    );
    await expect(anthropic.messages.stream(body).finalMessage()).rejects.toThrow();
  });
});
