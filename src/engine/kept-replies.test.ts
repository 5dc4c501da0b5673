import { describe, expect, it } from 'vitest';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import { inMemoryStore } from '../store/in-memory.ts';
import { testEngine } from '../../test/support/test-engine.ts';
import type { Engine } from './types.ts';

const encoder = new TextEncoder();
const tools = '"tools":[{"type":"function","name":"run"}]';
const first = encoder.encode(`{"model":"gpt-5","input":"Hi",${tools}}`);
const next = encoder.encode(`{"model":"gpt-5","previous_response_id":"resp_1","input":"And now?",${tools}}`);
const goneOn = `{"model":"gpt-5","previous_response_id":"resp_2","input":"And now?",${tools}}`;

const prepare = (engine: Engine, body: Uint8Array, codec = openaiResponses) =>
  engine.prepare({ codec, body, tenant: 't' });

async function recalled(engine: Engine): Promise<void> {
  await (await prepare(engine, first)).keepReply('resp_1', { name: 'resp_2', pendingAnswers: [] });
}

describe('a request that continues a reply that the provider keeps', () => {
  it('continues from the end of the recalls of that reply, and nothing else changes', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    const { body, outcome, recallTool } = await prepare(engine, next);
    expect(new TextDecoder().decode(body)).toBe(goneOn);
    expect([outcome, recallTool]).toEqual([{ status: 'untouched', reason: 'no trigger fired' }, undefined]);
  });

  it('is the very same array when that reply had no recalls', async () => {
    expect((await prepare(testEngine().engine, next)).body).toBe(next);
  });

  it('is sent unchanged when the reply cannot be looked up', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ store });
    await store.close();
    const { body, outcome } = await prepare(engine, next);
    expect(body).toBe(next);
    expect(outcome).toMatchObject({ status: 'failed', reason: expect.stringContaining('store-failed') });
  });

  it.each([
    [
      'cannot be rewritten',
      () => {
        throw new Error('bug');
      },
    ],
    ['would not be a request', () => encoder.encode('{"input":')],
  ])('is sent unchanged when it %s', async (_, continueReply) => {
    const { engine } = testEngine();
    await recalled(engine);
    expect((await prepare(engine, next, { ...openaiResponses, continueReply })).body).toBe(next);
  });

  it('continues that reply even if a later step fails', async () => {
    const store = inMemoryStore();
    const { engine } = testEngine({ store });
    await recalled(engine);
    await store.close();
    const { body, outcome } = await prepare(engine, next);
    expect(new TextDecoder().decode(body)).toBe(goneOn);
    expect(outcome.status).toBe('failed');
  });

  it('never disables folding for conversations that begin with the same words', async () => {
    const { engine } = testEngine();
    await recalled(engine);
    await engine.disableFolding({ codec: openaiResponses, body: next, tenant: 't' });
    const fresh = encoder.encode(`{"model":"gpt-5","input":"And now?",${tools}}`);
    expect((await prepare(engine, fresh)).outcome).toEqual({
      status: 'untouched',
      reason: 'no trigger fired',
    });
  });
});
