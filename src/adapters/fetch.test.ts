import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { createLeporelloFetch, type AnyReceipt, wrap } from './fetch.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { tokenBudget } from '../triggers/limits.ts';
import { startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import { eventually } from '../../test/support/eventually.ts';
import { hasStub } from '../../test/support/stub-texts.ts';

type Sent = { readonly url: string; readonly method: string | undefined; readonly body: string };

/** A fetch that notes what it is asked to send, and answers with a Chat Completion. */
function noted() {
  const sent: Sent[] = [];
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    sent.push({ url: request.url, method: request.method, body: await request.text() });
    return Response.json({ id: 'x', choices: [{ message: { role: 'assistant', content: 'Hi.' } }] });
  };
  return { sent, send };
}

/** A Chat Completions body with old tool results of 8,000 characters. */
function chatOf(results: number): string {
  const steps = Array.from({ length: results }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: `c${at}`, type: 'function', function: { name: 'read', arguments: `{"path":"${at}"}` } },
      ],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: `line ${at} of a file\n`.repeat(400) },
  ]).flat();
  const tools = [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }];
  return JSON.stringify({ model: 'gpt-4o', tools, messages: [{ role: 'user', content: 'Go.' }, ...steps] });
}

const folding = {
  triggers: { tokenBudget: { triggerTokens: 8_000, targetTokens: 4_000 } },
  storeDeadlineMs: 600_000,
  prepareDeadlineMs: 600_000,
};

/** Returns whether each URL is folded when a long conversation is posted to it. */
async function foldedAt(urls: readonly string[], headers: Record<string, string> = {}) {
  const { sent, send } = noted();
  const leporelloFetch = createLeporelloFetch({ ...folding, fetch: send });
  for (const url of urls) await leporelloFetch(url, { method: 'POST', body: chatOf(20), headers });
  return sent.map(({ url, body }) => [url, hasStub(body) ? 'folded' : 'as it was']);
}

describe('createLeporelloFetch', () => {
  it('folds model calls of any host, at the URL that was called', async () => {
    const urls = [
      'https://api.openai.com/v1/chat/completions',
      'https://openrouter.ai/api/v1/chat/completions',
      'https://api.groq.com/openai/v1/chat/completions',
      'http://127.0.0.1:11434/v1/chat/completions',
      'https://x.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2025-01-01',
      'https://api.z.ai/api/paas/v4/chat/completions',
    ];
    expect(await foldedAt(urls)).toEqual(urls.map((url) => [url, 'folded']));
  });

  it('gives every other request to fetch as it is', async () => {
    const calls: unknown[] = [];
    const send: typeof fetch = async (...given) => {
      calls.push(given);
      return new Response('other');
    };
    const leporelloFetch = createLeporelloFetch({ fetch: send });
    const stream = new ReadableStream();
    const given: Parameters<typeof fetch>[] = [
      ['https://api.openai.com/v1/models', undefined],
      ['https://api.openai.com/v1/threads/t/messages', { method: 'POST', body: '{}' }],
      [
        'https://api.openai.com/v1/embeddings',
        { method: 'POST', body: stream, duplex: 'half' } as RequestInit,
      ],
      [new URL('https://example.org/messages'), { method: 'POST', body: '{}' }],
      [new Request('https://example.org/chat/completions'), undefined],
      ['data:text/plain,hello', undefined],
      [
        'https://x-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict',
        { method: 'POST' },
      ],
    ];
    for (const [input, init] of given) expect(await (await leporelloFetch(input, init)).text()).toBe('other');
    expect(calls).toEqual(given);
    for (const [at, call] of calls.entries()) expect((call as unknown[])[0]).toBe(given[at]![0]);
  });

  it('folds only under the given base URLs', async () => {
    const { sent, send } = noted();
    const leporelloFetch = createLeporelloFetch({
      ...folding,
      fetch: send,
      baseUrls: ['https://a.example/v1'],
    });
    for (const url of ['https://a.example/v1/chat/completions', 'https://a.example/v10/chat/completions'])
      await leporelloFetch(url, { method: 'POST', body: chatOf(20) });
    expect(sent.map(({ body }) => hasStub(body))).toEqual([true, false]);
  });

  it('takes a Request, keeps the options of fetch, and names the URL of the response', async () => {
    const options: RequestInit[] = [];
    const send: typeof fetch = async (_, init) => {
      options.push(init!);
      return Response.json({}, { status: 401 });
    };
    const leporelloFetch = createLeporelloFetch({ fetch: send });
    const url = 'https://api.openai.com/v1/chat/completions';
    const dispatcher = { any: 'agent' };
    const first = await leporelloFetch(
      new Request(url, { method: 'POST', body: chatOf(1), redirect: 'error' }),
    );
    const second = await leporelloFetch(url, { method: 'POST', body: chatOf(1), dispatcher } as RequestInit);
    expect([first.url, second.status]).toEqual([url, 401]);
    expect(options.map((init) => [init.redirect, (init as { dispatcher?: unknown }).dispatcher])).toEqual([
      ['error', undefined],
      ['follow', dispatcher],
    ]);
  });

  it('rejects as fetch does when the connection fails or the caller aborts', async () => {
    const broken = new TypeError('fetch failed');
    const failing = createLeporelloFetch({ fetch: () => Promise.reject(broken) });
    const url = 'https://api.openai.com/v1/chat/completions';
    await expect(failing(url, { method: 'POST', body: chatOf(1) })).rejects.toBe(broken);
    const gone = new AbortController();
    const waiting = createLeporelloFetch({
      fetch: (_, init) =>
        new Promise((_resolve, reject) => {
          init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason as Error));
          gone.abort();
        }),
    });
    await expect(waiting(url, { method: 'POST', body: chatOf(1), signal: gone.signal })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
  });

  it('reads the provider only as fast as the program reads, and no further when it stops', async () => {
    let pulled = 0;
    let cancelled = false;
    const delta = { id: 'x', choices: [{ index: 0, delta: { content: 'word '.repeat(400) } }] };
    const source = () =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            pulled++;
            controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(delta)}\n\n`));
          },
          cancel: () => void (cancelled = true),
        },
        { highWaterMark: 0 },
      );
    const leporelloFetch = createLeporelloFetch({
      fetch: async () => new Response(source(), { headers: { 'content-type': 'text/event-stream' } }),
    });
    const body = JSON.stringify({ ...(JSON.parse(chatOf(1)) as object), stream: true });
    const url = 'https://api.openai.com/v1/chat/completions';
    const response = await leporelloFetch(url, { method: 'POST', body });
    const reader = response.body!.getReader();
    for (let reads = 0; reads < 5; reads++) expect((await reader.read()).done).toBe(false);
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    // The source has no end: without backpressure it would be read for as long as the program waits.
    expect(pulled).toBeLessThan(20);
    await reader.cancel();
    await eventually(async () => expect(cancelled).toBe(true));
  });

  it('gives a receipt for each model call', async () => {
    const receipts: AnyReceipt[] = [];
    const { send } = noted();
    const leporelloFetch = createLeporelloFetch({
      triggers: [tokenBudget({ triggerTokens: 8_000, targetTokens: 4_000 })],
      fetch: send,
      onReceipt: (receipt) => void receipts.push(receipt),
    });
    const response = await leporelloFetch('https://api.openai.com/v1/chat/completions', {
      method: 'POST',
      body: chatOf(20),
    });
    await response.text();
    expect(receipts.map(({ id, model, outcome, path }) => ({ id, model, outcome, path }))).toEqual([
      {
        id: response.headers.get('x-leporello-receipt'),
        model: 'gpt-4o',
        outcome: { status: 'compacted' },
        path: '/v1/chat/completions',
      },
    ]);
  });

  it('sends a body that is larger than the limit as it is', async () => {
    const { sent, send } = noted();
    const leporelloFetch = createLeporelloFetch({ ...folding, fetch: send, maxBodyBytes: 1_000 });
    const body = chatOf(20);
    await leporelloFetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body });
    expect(sent.map((one) => one.body)).toEqual([body]);
  });

  it('says which options are not allowed', () => {
    const wrong = { tenat: 'x', baseUrls: ['nowhere'], fetch: 1, triggers: 3 } as object;
    expect(() => createLeporelloFetch(wrong)).toThrow(/tenat is not an option\. Did you mean tenant\?/);
    expect(() => createLeporelloFetch(wrong)).toThrow(/baseUrls is .*but must be a list of URLs/);
    expect(() => createLeporelloFetch(wrong)).toThrow(/fetch is 1, but must be a function\./);
    expect(() => createLeporelloFetch({ store: inMemoryStore() })).toThrow(/secret is missing/);
  });
});

describe('wrap', () => {
  it('returns a copy of a client whose requests are folded; the client stays as it is', async () => {
    const provider = await startFakeProvider({
      script: () => ({ type: 'turn', parts: [{ type: 'text', text: 'Hi.' }] }),
    });
    const openai = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'dummy', maxRetries: 0 });
    const anthropic = new Anthropic({ baseURL: provider.url, apiKey: 'dummy', maxRetries: 0 });
    const chat = JSON.parse(chatOf(20)) as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const first = await wrap(openai, folding).chat.completions.create(chat);
    await openai.chat.completions.create(chat);
    const second = await wrap(anthropic).messages.create({
      model: 'claude-sonnet-4-5',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hello' }],
    });
    expect([first.choices[0]!.message.content, second.content]).toEqual([
      'Hi.',
      [{ type: 'text', text: 'Hi.' }],
    ]);
    await provider.close();
    const bodies = provider.requests.map(({ body }) => new TextDecoder().decode(body));
    expect(bodies.map((body) => hasStub(body))).toEqual([true, false, false]);
  });

  it('refuses a client that cannot be copied', () => {
    expect(() => wrap({} as never)).toThrow(
      'The client has no function withOptions, so it cannot be wrapped. Pass createLeporelloFetch() as its option fetch instead.',
    );
  });
});
