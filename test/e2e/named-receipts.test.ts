/** Tests that a receipt names the model and the session even if the request was not folded. */
import { describe, expect, it } from 'vitest';
import { inMemoryStore } from '../../src/store/in-memory.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply, Script } from '../support/fake-provider/script.ts';
import { formats, longBody, post } from './bodies.ts';
import { type Stack, startStack } from './stack.ts';
import { hasStub } from '../support/stub-texts.ts';

const hello: Reply = { type: 'turn', parts: [{ type: 'text', text: 'Hello.' }] };
const folding = { triggers: { tokenBudget: { triggerTokens: 20_000, targetTokens: 10_000 } } };

/** Returns the receipts, newest first. */
async function receiptsOf({ url }: Stack): Promise<readonly Receipt[]> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts;
}

describe.each(formats)('the receipt of a %s request', (format) => {
  const model = { chat: 'gpt-4o', messages: 'claude-sonnet-5', responses: 'gpt-4o', gemini: 'gemini-3-pro' }[
    format
  ];
  const body = longBody(format, 30);

  it('that bypasses the gateway names the model and the session of the request that was folded', async () => {
    await using stack = await startStack(() => hello, folding);
    await post(stack.url, format, body);
    await post(stack.url, format, body, { 'x-leporello-bypass': '1' });
    const [bypassed, folded] = await receiptsOf(stack);
    expect(folded).toMatchObject({ outcome: { status: 'compacted' }, model });
    expect(bypassed).toMatchObject({ outcome: { status: 'untouched', reason: 'bypass' }, model });
    expect([bypassed!.session, /^begins:[\w-]{16}$/.test(folded!.session!)]).toEqual([folded!.session, true]);
  });

  it('that was not folded in time names the model and the session', async () => {
    const store = { ...inMemoryStore(), getMany: () => new Promise<never>(() => {}) };
    await using stack = await startStack(
      () => hello,
      { ...folding, shrinks: false, prepareDeadlineMs: 20 },
      { store },
    );
    await post(stack.url, format, body);
    const [late] = await receiptsOf(stack);
    expect(late).toMatchObject({ outcome: { status: 'failed' }, model });
    expect(late!.session).toMatch(/^begins:[\w-]{16}$/);
  });

  it('that the provider accepted only unfolded names the model and the session', async () => {
    const script: Script = ({ body: sent }) =>
      hasStub(JSON.stringify(sent))
        ? {
            type: 'error',
            status: 400,
            body: { error: { type: 'invalid_request_error', message: 'messages: something is odd' } },
          }
        : hello;
    await using stack = await startStack(script, folding);
    await post(stack.url, format, body);
    const [refused] = await receiptsOf(stack);
    expect(refused).toMatchObject({ outcome: { status: 'failed' }, model });
    expect(refused!.session).toMatch(/^begins:[\w-]{16}$/);
  });
});
