/** Tests failures of `leporello/fetch`: an abort looks like that of the platform's fetch, and a summary in the background fails alone. */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { startFakeProvider } from '../../test/support/fake-provider/fake-provider.ts';
import type { Reply, Script } from '../../test/support/fake-provider/script.ts';
import { type AnyReceipt, createLeporelloFetch } from './fetch.ts';

const hanging: Reply = { type: 'hang', afterEvents: 3, parts: [{ type: 'text', text: 'Some words.' }] };
const ask = { model: 'm', max_tokens: 10, messages: [{ role: 'user' as const, content: 'Go.' }] };

describe('an abort in the middle of a reply', () => {
  const sdks: readonly [string, (url: string, send: typeof fetch) => Promise<AsyncStream>][] = [
    [
      'openai, chat',
      (url, send) =>
        new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch: send }).chat.completions.create({
          ...ask,
          stream: true,
        }),
    ],
    [
      'openai, responses',
      (url, send) =>
        new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', fetch: send }).responses.create({
          model: 'm',
          input: 'Go.',
          stream: true,
        }),
    ],
    [
      '@anthropic-ai/sdk',
      (url, send) =>
        new Anthropic({ baseURL: url, apiKey: 'k', fetch: send }).messages.create({ ...ask, stream: true }),
    ],
  ];

  it.each(sdks)('ends the loop over the stream of %s quietly', async (_sdk, create) => {
    const provider = await startFakeProvider({ script: () => hanging });
    const receipts: AnyReceipt[] = [];
    const stream = await create(
      provider.url,
      createLeporelloFetch({ onReceipt: (receipt) => void receipts.push(receipt) }),
    );
    let events = 0;
    for await (const _ of stream) {
      events++;
      stream.controller.abort();
    }
    expect(events).toBeGreaterThan(0);
    await eventually(() => expect(receipts.length).toBe(1));
    await provider.close();
  });

  it.each([true, false])('rejects with the reason of the abort; streamed: %s', async (stream) => {
    const provider = await startFakeProvider({ script: () => hanging });
    const aborted = new AbortController();
    const reason = new DOMException('Enough.', 'AbortError');
    const reply = createLeporelloFetch()(`${provider.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
      body: JSON.stringify({ ...ask, stream }),
      signal: aborted.signal,
    });
    await eventually(() => expect(provider.requests.length).toBe(1));
    if (stream) await reply;
    aborted.abort(reason);
    await expect(reply.then((response) => response.text())).rejects.toBe(reason);
    await provider.close();
  });
});

type AsyncStream = AsyncIterable<unknown> & { readonly controller: AbortController };

describe('a summary in the background', () => {
  it('that fails leaves the reply of the call as it is', async () => {
    const started = Promise.withResolvers<void>();
    const continued = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<void>();
    const script: Script = ({ index }) => ({
      type: 'turn',
      parts:
        index === 0
          ? [{ type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } }]
          : [{ type: 'text', text: 'Here it is.' }],
    });
    const provider = await startFakeProvider({ script });
    let calls = 0;
    const send: typeof fetch = async (input, init) => {
      if (new TextDecoder().decode(init?.body as Uint8Array).includes('You write down what an agent')) {
        started.resolve();
        await continued.promise;
        failed.resolve();
        throw new TypeError('fetch failed');
      }
      calls++;
      if (calls < 2) return fetch(input, init);
      await started.promise;
      continued.resolve();
      await failed.promise;
      // The summary's failure is noted before the continuation is answered.
      await new Promise(setImmediate);
      return fetch(input, init);
    };
    const leporelloFetch = createLeporelloFetch({
      fetch: send,
      offerRecall: 'always',
      summaries: { kind: 'model' },
      shrinks: false,
      models: { '*': { tokenizer: { encoding: 'o200k_base' } } },
      triggers: {
        tokenBudget: { triggerTokens: 20_000, targetTokens: 600, bufferTokens: 1 },
        cacheRent: false,
        coldCache: false,
      },
    });
    const reply = leporelloFetch(`${provider.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
      body: longChat(14),
    }).then((response) => response.text());
    await expect(reply).resolves.toContain('Here it is.');
    await provider.close();
  });
});

/** Returns a Chat Completions body with this many results of about 1,000 tokens. */
function longChat(results: number): string {
  const messages = Array.from({ length: results }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'run', arguments: '{}' } }],
    },
    {
      role: 'tool',
      tool_call_id: `c${at}`,
      content: Array.from({ length: 100 }, (_line, step) => `job ${at}: step ${step} took ${step} ms\n`).join(
        '',
      ),
    },
  ]).flat();
  const tools = [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }];
  return JSON.stringify({
    model: 'gpt-4o',
    tools,
    messages: [{ role: 'user', content: 'Go.' }, ...messages],
  });
}
