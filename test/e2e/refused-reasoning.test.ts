import { describe, expect, it } from 'vitest';
import type { Reply } from '../support/fake-provider/script.ts';
import { offering, startStack } from './stack.ts';

/** A model that binds its thinking to everything before it; its replies were made with a fold that is no longer known. */
const model = 'claude-opus-5-5';
const refused: Reply = {
  type: 'error',
  status: 400,
  body: {
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message:
        'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
    },
  },
};
const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };

const turns = (count: number) =>
  Array.from({ length: count }, (_, at) => [
    { role: 'user', content: `Question ${at}` },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: `bound-elsewhere-${at}` },
        { type: 'text', text: `Answer ${at}` },
      ],
    },
  ]).flat();

const bodyWith = (messages: readonly object[]) =>
  JSON.stringify({
    model,
    max_tokens: 100,
    tools: [{ name: 'read', input_schema: { type: 'object' } }],
    messages,
  });

describe('thinking that a provider refuses because of its position', () => {
  it('is removed, also from later requests, before and after a restart', async () => {
    await using stack = await startStack(({ body }) =>
      JSON.stringify(body).includes('bound-elsewhere') ? refused : hello,
    );
    const post = async (body: string) => {
      const response = await fetch(`${stack.url}/v1/messages`, { method: 'POST', body });
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Hello.')]);
    };
    const question = { role: 'user', content: 'And now?' };
    await post(bodyWith([...turns(2), question]));
    expect(stack.provider.requests.length).toBe(2);
    const sent = JSON.parse(new TextDecoder().decode(stack.provider.requests[1]!.body)) as {
      messages: unknown;
    };
    expect(sent.messages).toEqual([
      { role: 'user', content: 'Question 0' },
      { role: 'assistant', content: [{ type: 'text', text: 'Answer 0' }] },
      { role: 'user', content: 'Question 1' },
      { role: 'assistant', content: [{ type: 'text', text: 'Answer 1' }] },
      question,
    ]);
    const later = [
      ...turns(2),
      question,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Ah.', signature: 'bound-here' },
          { type: 'text', text: 'Hello.' },
        ],
      },
    ];
    await post(bodyWith([...later, question]));
    await stack.restart();
    await post(bodyWith([...later, question]));
    expect(stack.provider.requests.length).toBe(4);
    for (const { body } of stack.provider.requests.slice(2)) {
      const text = new TextDecoder().decode(body);
      expect(text).not.toContain('bound-elsewhere');
      expect(text).toContain('bound-here');
    }
  });

  it('is an error if there is no thinking to remove', async () => {
    await using stack = await startStack(() => refused, offering);
    const body = bodyWith([{ role: 'user', content: 'Hello?' }]);
    const response = await fetch(`${stack.url}/v1/messages`, { method: 'POST', body });
    expect(response.status).toBe(400);
    expect(stack.provider.requests.length).toBe(2);
  });
});
