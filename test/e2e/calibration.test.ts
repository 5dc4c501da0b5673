/** Tests that the gateway calibrates token counts with the usage that providers report, in every format, streamed and not. */
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Turn } from '../support/fake-provider/script.ts';
import { type Format, formats, longBody, post, postStream } from './bodies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const recall = { type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } } as const;

const says = (input: number, recalls = false): Turn => ({
  type: 'turn',
  parts: recalls ? [recall] : [{ type: 'text', text: 'Done.' }],
  usage: { input, cacheRead: Math.min(input, 2_000), output: 10 },
});

/** Sends results unchanged, because their tokens were counted by hand. */
const unchangedResults = { ...offering, shrinks: false } as const;

async function receiptOf(stack: Stack, response: Response): Promise<Receipt> {
  expect(response.status).toBe(200);
  await response.text();
  const id = response.headers.get('x-leporello-receipt');
  const receipt = await fetch(`${stack.url}/_leporello/receipts/${id}`, {
    headers: { authorization: 'Bearer dummy' },
  });
  return (await receipt.json()) as Receipt;
}

describe.each(formats)('a gateway for %s requests', (format) => {
  describe.each(['plain', 'streamed'])('%s', (way) => {
    const ask = (stack: Stack, jobs: number) =>
      way === 'plain'
        ? post(stack.url, format, longBody(format, jobs))
        : postStream(stack.url, format, JSON.parse(longBody(format, jobs)) as Record<string, unknown>);

    it('reports the error of a count, and corrects the next count by the reported usage', async () => {
      await using stack = await startStack([says(9_000), says(10_700), says(12_400)], unchangedResults);
      const prompts: Receipt['prompt'][] = [];
      for (const jobs of [5, 6, 7]) {
        const receipt = await receiptOf(stack, await ask(stack, jobs));
        expect(receipt.prompt?.expected).toBe(receipt.tokensAfter);
        prompts.push(receipt.prompt);
      }
      const [first, second, third] = prompts.map((prompt) => prompt!);
      expect(first!.expected).toBe(first!.counted);
      expect(prompts.map((prompt) => prompt!.reported)).toEqual([9_000, 10_700, 12_400]);
      for (const { expected, reported, errorPercent } of [first!, second!, third!]) {
        expect(errorPercent).toBe(Math.round((1_000 * (expected - reported)) / reported) / 10);
      }
      expect(Math.abs(first!.errorPercent)).toBeGreaterThan(8);
      expect(Math.abs(second!.errorPercent)).toBeLessThan(5);
      expect(Math.abs(third!.errorPercent)).toBeLessThan(3);
    });

    it('learns only from the first round of a request, because recalled text was not counted', async () => {
      await using stack = await startStack([says(9_000, true), says(9_600), says(9_000)], unchangedResults);
      const [recalled, next] = [
        await receiptOf(stack, await ask(stack, 5)),
        await receiptOf(stack, await ask(stack, 5)),
      ];
      expect(stack.provider.requests.length).toBe(3);
      expect([recalled.prompt?.reported, recalled.usage?.input]).toEqual([9_000, 18_600]);
      // The recall would be in the next request if the client had kept the reply; here it did not.
      expect([next.prompt?.expected, next.prompt?.counted]).toEqual([9_000, recalled.prompt?.counted]);
    });
  });

  it('learns from bypassed requests, too', async () => {
    const reported = 9_000;
    await using stack = await startStack(() => says(reported), unchangedResults);
    const bypassed = await post(stack.url, format, longBody(format, 5), { 'x-leporello-bypass': '1' });
    expect((await receiptOf(stack, bypassed)).prompt).toBeUndefined();
    const { prompt } = await receiptOf(stack, await post(stack.url, format, longBody(format, 5)));
    // The difference is the recall tool of the second request.
    expect(prompt!.expected).toBeGreaterThan(reported);
    expect(prompt!.expected).toBeLessThan(reported + 400);
  });

  it('has no reported count if a server reports nothing', async () => {
    await using stack = await startStack(() => says(0), unchangedResults);
    const prompts = [
      await receiptOf(stack, await post(stack.url, format, longBody(format, 5))),
      await receiptOf(stack, await post(stack.url, format, longBody(format, 5))),
    ].map(({ prompt }) => prompt);
    expect(prompts).toEqual([undefined, undefined]);
  });

  it('forgets the correction at a restart', async () => {
    await using stack = await startStack(() => says(9_000), unchangedResults);
    const countedAndExpected = async (of: Format) => {
      const { prompt } = await receiptOf(stack, await post(stack.url, of, longBody(of, 5)));
      return prompt!.expected - prompt!.counted;
    };
    expect(await countedAndExpected(format)).toBe(0);
    expect(await countedAndExpected(format)).not.toBe(0);
    await stack.restart();
    expect(await countedAndExpected(format)).toBe(0);
  });
});

/** A provider that answers every request with the same JSON. */
async function answering(reply: object) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

/** Replies of a provider that ran its own tool and read 12,200 tokens, 5,000 of them the prompt. */
const withOwnTool: readonly (readonly [Format, object, number | undefined])[] = [
  [
    'gemini',
    {
      candidates: [{ content: { role: 'model', parts: [{ text: 'Done.' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 5_000, toolUsePromptTokenCount: 7_200, candidatesTokenCount: 4 },
    },
    5_000,
  ],
  [
    'messages',
    {
      content: [{ type: 'text', text: 'Done.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 12_200, output_tokens: 4, server_tool_use: { web_search_requests: 1 } },
    },
    undefined,
  ],
  [
    'responses',
    {
      id: 'resp_1',
      status: 'completed',
      output: [
        { type: 'web_search_call', id: 'ws_1', status: 'completed' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] },
      ],
      usage: { input_tokens: 12_200, output_tokens: 4 },
    },
    undefined,
  ],
];

describe.each(withOwnTool)('a %s reply for which the provider ran a tool', (format, reply, learned) => {
  it('costs what is reported, and corrects counts by the prompt alone or not at all', async () => {
    await using provider = await answering(reply);
    await using stack = await startStack([], unchangedResults, { upstreamUrl: provider.url });
    const first = await receiptOf(stack, await post(stack.url, format, longBody(format, 5)));
    const next = await receiptOf(stack, await post(stack.url, format, longBody(format, 5)));
    expect(first.usage?.input).toBe(12_200);
    expect(first.prompt?.reported).toBe(learned);
    expect(next.tokensAfter).toBe(learned ?? first.tokensAfter);
  });
});
