/** Tests `/v1/compress` and `/v1/retrieve` with the real client of Headroom's service, and with the requests that LiteLLM's guardrail makes. */
import { HeadroomClient } from 'headroom-ai';
import { describe, expect, it } from 'vitest';
import { hashOf, idOfHash } from '../../src/gateway/retrieve.ts';
import type { Script } from '../support/fake-provider/script.ts';
import { type ChatRow, reactorLog, readsLogs } from '../support/reactor-logs.ts';
import { type Stack, startStack } from './stack.ts';

const silent: Script = () => ({ type: 'turn', parts: [{ type: 'text', text: 'Not asked.' }] });

const settings = { triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } } };

function clientOf({ url }: Stack): HeadroomClient {
  return new HeadroomClient({ baseUrl: url, apiKey: 'dummy', fallback: false, retries: 0 });
}

/** Sends a request as LiteLLM does. */
async function post(stack: Stack, path: string, body: unknown, credential = 'dummy'): Promise<Response> {
  return fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

type Compressed = {
  readonly messages: readonly ChatRow[];
  readonly tokens_before: number;
  readonly tokens_after: number;
  readonly tokens_saved: number;
  readonly ccr_hashes: readonly string[];
};

async function compressed(stack: Stack, body: object): Promise<Compressed> {
  const response = await post(stack, '/v1/compress', body);
  expect(response.status).toBe(200);
  return (await response.json()) as Compressed;
}

describe('the npm client headroom-ai', () => {
  it('gets the same messages with old results folded, and every original by its hash', async () => {
    await using stack = await startStack(silent, settings);
    const client = clientOf(stack);
    const messages = readsLogs(12);
    const result = await client.compress([...messages] as never, { model: 'gpt-4o' });
    const sent = result.messages as unknown as readonly ChatRow[];
    expect(sent.map(({ role }) => role)).toEqual(messages.map(({ role }) => role));
    expect([result.tokensAfter < 12_000, result.tokensBefore - result.tokensAfter]).toEqual([
      true,
      result.tokensSaved,
    ]);
    expect(result.ccrHashes.length).toBeGreaterThan(3);
    for (const [at, row] of sent.entries()) {
      if (row.content === messages[at]!.content) continue;
      const hash = /headroom_retrieve \{"hash":"([0-9a-f]{20})"\}/.exec(row.content!)![1]!;
      expect(result.ccrHashes).toContain(hash);
      expect(await client.retrieve(hash)).toMatchObject({ hash, originalContent: messages[at]!.content });
    }
    expect(sent.filter((row, at) => row.content !== messages[at]!.content).map(({ role }) => role)).toEqual(
      result.ccrHashes.map(() => 'tool'),
    );
    expect(sent.at(-1)).toEqual(messages.at(-1));
  });

  it('finds the passage that answers a query, and gets the answer to a call of the tool', async () => {
    await using stack = await startStack(silent, settings);
    const client = clientOf(stack);
    const { ccrHashes } = await client.compress([...readsLogs(12)] as never, { model: 'gpt-4o' });
    const found = await client.retrieve(ccrHashes[0]!, { query: 'blocked pump' });
    expect(JSON.stringify(found)).toContain('the pump of reactor 0 is blocked');
    const answer: unknown = await client.handleToolCall({
      toolCall: {
        id: 'call-9',
        function: { name: 'headroom_retrieve', arguments: `{"hash":"${ccrHashes[0]}"}` },
      },
      provider: 'openai',
    });
    expect(answer).toEqual({
      success: true,
      toolResult: { role: 'tool', toolCallId: 'call-9', content: reactorLog(0) },
    });
  });

  it('gets a conversation within its budget of tokens', async () => {
    await using stack = await startStack(silent);
    const result = await clientOf(stack).compress([...readsLogs(12)] as never, {
      model: 'gpt-4o',
      tokenBudget: 9_000,
    });
    expect([result.tokensBefore > 20_000, result.tokensAfter <= 9_000]).toEqual([true, true]);
  });

  it('gets a short conversation unchanged', async () => {
    await using stack = await startStack(silent, settings);
    const messages = readsLogs(1);
    const result = await clientOf(stack).compress([...messages] as never, { model: 'gpt-4o' });
    expect([result.messages, result.tokensSaved, result.compressionRatio, result.ccrHashes]).toEqual([
      messages,
      0,
      1,
      [],
    ]);
  });

  it('finds the gateway healthy', async () => {
    await using stack = await startStack(silent);
    expect(await clientOf(stack).validateSetup()).toMatchObject({ valid: true, errors: [] });
  });
});

describe("LiteLLM's guardrail", () => {
  /** The messages that LiteLLM 1.109 sends: it keeps the model's replies and the newest exchange back. */
  const sentBy = (steps: number) => readsLogs(steps).filter(({ role }) => role === 'tool' || role === 'user');

  it('gets as many messages as it sent, in its order, also where the replies with the calls are missing', async () => {
    await using stack = await startStack(silent, settings);
    const messages = sentBy(12);
    const result = await compressed(stack, { messages, model: 'gpt-4o' });
    expect(result.messages.map(({ role, tool_call_id: id }) => [role, id])).toEqual(
      messages.map(({ role, tool_call_id: id }) => [role, id]),
    );
    const [hash = ''] = result.ccr_hashes;
    expect(hash).toMatch(/^[0-9a-f]{20}$/);
    const response = await fetch(`${stack.url}/v1/retrieve/${hash}`, {
      headers: { authorization: 'Bearer dummy' },
    });
    expect(await response.json()).toMatchObject({ original_content: reactorLog(0) });
  });

  it('gets the same bytes for the same beginning when the conversation goes on', async () => {
    await using stack = await startStack(silent, settings);
    const first = await compressed(stack, { messages: sentBy(12), model: 'gpt-4o' });
    const second = await compressed(stack, { messages: sentBy(13), model: 'gpt-4o' });
    expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages);
  });

  it('gets the same bytes from another gateway on the same store', async () => {
    await using stack = await startStack(silent, settings);
    const first = await compressed(stack, { messages: sentBy(12), model: 'gpt-4o' });
    await stack.restart();
    const again = await compressed(stack, { messages: sentBy(12), model: 'gpt-4o' });
    expect(again.messages).toEqual(first.messages);
  });
});

describe('a request that cannot be served', () => {
  it.each([
    ['/v1/compress', '{', 400],
    ['/v1/compress', { messages: 'none' }, 400],
    ['/v1/compress', { messages: [1] }, 400],
    ['/v1/retrieve', { hash: 'ffffffffffffffffffff' }, 404],
    ['/v1/retrieve', { hash: 'mem_0000000000000000' }, 404],
    ['/v1/retrieve/ffffffffffffffffffff', {}, 405],
  ])('is refused: %s %j', async (path, body, status) => {
    await using stack = await startStack(silent);
    const response = await post(stack, path, body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringMatching(/\w+.*\.$/) as string },
    });
  });

  it('opens no original of another tenant', async () => {
    await using stack = await startStack(silent, settings);
    const { ccr_hashes: hashes } = await compressed(stack, { messages: readsLogs(12), model: 'gpt-4o' });
    const response = await post(stack, '/v1/retrieve', { hash: hashes[0] }, 'another');
    expect(response.status).toBe(404);
  });

  it('reaches no provider', async () => {
    await using stack = await startStack(silent);
    await post(stack, '/v1/compress', { messages: readsLogs(2), model: 'gpt-4o' });
    expect(stack.provider.requests).toEqual([]);
  });
});

describe("the body of Portkey's webhook guardrail", () => {
  const hooked = (json: object, eventType = 'beforeRequestHook') => ({
    request: { json, text: 'What did the first log say?', isStreamingRequest: false },
    response: { json: null, text: '', statusCode: null },
    provider: 'openai',
    requestType: 'chatComplete',
    eventType,
  });

  it('is answered with the whole request, with old results folded', async () => {
    await using stack = await startStack(silent, settings);
    const request = { model: 'gpt-4o', temperature: 0.5, messages: readsLogs(12) };
    // Both answers below repeat this fold.
    await compressed(stack, request);
    const response = await post(stack, '/v1/compress', hooked(request));
    const { messages, ...figures } = await compressed(stack, request);
    expect(await response.json()).toEqual({
      verdict: true,
      data: figures,
      transformedData: { request: { json: { ...request, messages } } },
    });
    expect(messages).not.toEqual(request.messages);
  });

  it('is left alone where there is nothing to fold', async () => {
    await using stack = await startStack(silent, settings);
    const reply = hooked({ model: 'gpt-4o', messages: readsLogs(12) }, 'afterRequestHook');
    for (const body of [reply, hooked({ model: 'embed', input: 'Hm.' })]) {
      const response = await post(stack, '/v1/compress', body);
      expect(await response.json()).toEqual({ verdict: true });
    }
  });
});

describe('a hash', () => {
  it('has all bits of its id', () => {
    for (const id of [
      'mem_0000000000000000',
      'mem_zzzzzzzzzzzzzzzz',
      'mem_0123456789abcdef',
      'mem_ghjkmnpqrstvwxyz',
    ])
      expect(idOfHash(hashOf(id))).toBe(id);
  });
});
