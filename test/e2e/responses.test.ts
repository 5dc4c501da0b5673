/** Tests features that only Responses has: histories stored by the provider, its own kinds of tools and calls, and its other paths. */
import { request } from 'node:http';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { JsonObject, Reply, Script } from '../support/fake-provider/script.ts';
import { longBody, post, requestBody } from './bodies.ts';
import { withoutEcho } from './replies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };
const small = { models: { '*': { windowTokens: 12_000 } }, shrinks: false } as const;
const clientOf = ({ url }: Stack) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'dummy', maxRetries: 0 });
const sentTo = ({ provider }: Stack, at: number) => new TextDecoder().decode(provider.requests[at]!.body);
const tools = [
  { type: 'function' as const, name: 'run', description: 'Runs.', parameters: {}, strict: false },
];

describe('a client whose history the provider stores', () => {
  const script: Script = ({ history }) => {
    const run = history.filter(({ type }) => type === 'function_call').length;
    if (run === 3) return { type: 'turn', parts: [{ type: 'text', text: 'All done.' }] };
    return {
      type: 'turn',
      parts: [
        { type: 'thinking', text: `Step ${run}.`, signature: 'c2VhbGVk' },
        { type: 'tool-call', name: 'run', arguments: { step: run } },
      ],
    };
  };

  it.each([false, true])(
    'gets no recall tool from its second request on (streamed: %s)',
    async (streamed) => {
      await using stack = await startStack(script, offering);
      const client = clientOf(stack);
      let next: Pick<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'input' | 'previous_response_id'> = {
        input: 'Run three steps.',
      };
      for (;;) {
        const body = { model: 'gpt-5', tools, ...next };
        const reply = streamed
          ? await client.responses.stream(body).finalResponse()
          : await client.responses.create(body);
        const outputs = reply.output.flatMap((item) =>
          item.type === 'function_call'
            ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'ok' }]
            : [],
        );
        if (outputs.length === 0) {
          expect(reply.output_text).toBe('All done.');
          break;
        }
        next = { input: outputs, previous_response_id: reply.id };
      }
      expect(stack.provider.requests.map((_, at) => sentTo(stack, at).includes('read_memory'))).toEqual([
        true,
        false,
        false,
        false,
      ]);
    },
  );

  it("gets the provider's error for an unknown response id", async () => {
    await using stack = await startStack([]);
    const body = { model: 'gpt-5', input: 'Go on.', previous_response_id: 'resp_9' };
    await expect(clientOf(stack).responses.create(body)).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    });
    expect(stack.provider.requests.length).toBe(1);
  });
});

describe('a conversation of Codex', () => {
  const declared = {
    type: 'additional_tools',
    role: 'developer',
    tools: [{ type: 'custom', name: 'exec', description: 'Runs JavaScript.' }],
  };
  const settings = { type: 'configuration_update', reasoning: { effort: 'high' } };
  const step = (at: number): readonly JsonObject[] => [
    { type: 'reasoning', summary: [], encrypted_content: `sealed${at}` },
    { type: 'custom_tool_call', call_id: `c${at}`, name: 'exec', input: `step(${at})` },
    {
      type: 'custom_tool_call_output',
      call_id: `c${at}`,
      output: [{ type: 'input_text', text: `step ${at}: all is well\n`.repeat(200) }],
    },
  ];
  const steps = Array.from({ length: 30 }, (_, at) => step(at)).flat();
  const input = [declared, { role: 'user', content: 'Take thirty steps.' }, ...steps.slice(0, 45), settings];
  const body = JSON.stringify({
    model: 'gpt-5',
    input: [...input, ...steps.slice(45)],
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'k',
  });

  it('is folded, and the provider accepts it', async () => {
    await using stack = await startStack(() => hello, small);
    const response = await post(stack.url, 'responses', body);
    expect([response.status, response.headers.get('x-leporello-outcome')]).toEqual([200, 'compacted']);
    const sent = sentTo(stack, 0);
    expect(sent.length).toBeLessThan(body.length / 3);
    for (const item of [declared, settings, ...step(29)]) expect(sent).toContain(JSON.stringify(item));
    const { input: items } = JSON.parse(sent) as { input: readonly JsonObject[] };
    const sealed = items.filter(({ type }) => type === 'reasoning');
    const called = items.filter(({ type }) => type === 'custom_tool_call');
    expect(sealed.length).toBe(called.length);
  });

  it('has a recall answered in the middle of its stream', async () => {
    await using stack = await startStack((asked) => {
      const text = JSON.stringify(asked.body);
      const memory = /mem_[0-9a-z]{16}/.exec(text)?.[0];
      if (text.includes('"type":"function_call_output"')) return hello;
      return {
        type: 'turn',
        parts: [
          { type: 'thinking', text: 'Which was it?', signature: 'b3du' },
          { type: 'tool-call', name: 'read_memory', arguments: { id: memory } },
        ],
      };
    }, small);
    const streamed = JSON.stringify({ ...(JSON.parse(body) as JsonObject), stream: true });
    const text = await (await post(stack.url, 'responses', streamed)).text();
    expect(text).toContain('"delta":"Hello."');
    expect(withoutEcho(text)).not.toContain('read_memory');
    const original = JSON.stringify('step 0: all is well\n'.repeat(50)).slice(1, -1);
    expect(stack.provider.requests.map((_, at) => sentTo(stack, at).includes(original))).toEqual([
      false,
      true,
    ]);
  });
});

describe('other paths of Responses', () => {
  it('pass through unchanged: compaction, and stored responses', async () => {
    await using stack = await startStack(() => hello);
    const client = clientOf(stack);
    const { id } = await client.responses.create({ model: 'gpt-5', input: 'Hi' });
    expect((await client.responses.retrieve(id)).output_text).toBe('Hello.');
    await client.responses.delete(id);
    await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    const long = longBody('responses', 30);
    const compacted = await fetch(`${stack.url}/v1/responses/compact`, { method: 'POST', body: long });
    expect([compacted.status, compacted.headers.get('x-leporello-outcome')]).toEqual([200, null]);
    expect(sentTo(stack, 4)).toBe(long);
  });

  it('count a request as it would be sent', async () => {
    await using stack = await startStack(() => hello, small);
    const body = longBody('responses', 30);
    const headers = { authorization: 'Bearer dummy' };
    const count = await fetch(`${stack.url}/v1/responses/input_tokens`, { method: 'POST', body, headers });
    await post(stack.url, 'responses', body);
    expect(await count.json()).toEqual({
      object: 'response.input_tokens',
      input_tokens: Math.ceil(sentTo(stack, 1).length / 4),
    });
    expect(sentTo(stack, 0)).toBe(sentTo(stack, 1));
    expect(sentTo(stack, 0).length).toBeLessThan(body.length / 3);
  });

  it('use plain HTTP: a WebSocket upgrade gets 426, and the same path answers a request', async () => {
    await using stack = await startStack(() => hello);
    expect(
      await statusOf(`${stack.url}/v1/responses`, 'GET', { connection: 'upgrade', upgrade: 'websocket' }),
    ).toBe(426);
    expect((await post(stack.url, 'responses', requestBody('responses'))).status).toBe(200);
    expect(stack.provider.requests.length).toBe(1);
  });
});

/** Resolves to the response's status after reading its body. */
function statusOf(url: string, method: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    })
      .once('error', reject)
      .end();
  });
}
