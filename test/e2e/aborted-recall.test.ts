import { expect, it } from 'vitest';
import type { Turn } from '../support/fake-provider/script.ts';
import { offering, startStack } from './stack.ts';

const recall = { type: 'tool-call', name: 'read_memory', arguments: { id: 'mem_0000000000000000' } } as const;

it('a client that disconnects while the model continues after a recall has the recall in its next request', async () => {
  const never = new Promise<never>(() => {});
  const replies: readonly Turn[] = [
    { type: 'turn', parts: [{ type: 'text', text: 'Let me look. ' }, recall] },
    {
      type: 'turn',
      parts: [
        { type: 'text', text: 'There are ' },
        { type: 'text', text: 'two.' },
      ],
      pauseBeforePart: { 1: never },
    },
    { type: 'turn', parts: [{ type: 'text', text: 'Yes.' }] },
  ];
  await using stack = await startStack(replies, offering);
  const ask = (messages: readonly object[], signal?: AbortSignal) =>
    fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'gpt-4o',
        stream: true,
        tools: [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }],
        messages,
      }),
      ...(signal ? { signal } : {}),
    });
  const question = { role: 'user', content: 'How many errors?' };
  const disconnect = new AbortController();
  const response = await ask([question], disconnect.signal);
  let received = '';
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    received += piece;
    if (received.includes('are ')) break;
  }
  disconnect.abort();
  await stack.provider.requests[1]!.ended;
  const partial = { role: 'assistant', content: 'Let me look. There are ' };
  await expect
    .poll(async () => {
      await (await ask([question, partial, { role: 'user', content: 'Go on.' }])).text();
      const sent = JSON.parse(new TextDecoder().decode(stack.provider.requests.at(-1)!.body)) as {
        messages: { role: string }[];
      };
      return sent.messages.map(({ role }) => role);
    })
    .toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
});
