import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../support/fake-provider/fake-provider.ts';
import { rewrites } from './rewrites.ts';
import { sawRecall } from './saw-recall.ts';

const tools = [{ name: 'Read' }, { name: 'read_memory' }];

const request = (...texts: readonly string[]): RecordedRequest => ({
  format: 'messages',
  method: 'POST',
  target: '/v1/messages',
  headers: [],
  body: new TextEncoder().encode(
    JSON.stringify({
      tools,
      messages: texts.map((content, at) => ({
        role: 'user',
        content,
        ...(at === texts.length - 1 && { cache_control: { type: 'ephemeral' } }),
      })),
    }),
  ),
  receivedAt: 0,
  ended: Promise.resolve('complete'),
});

describe('rewrites', () => {
  it('are none while a conversation only grows, wherever its cache breakpoints are', () => {
    expect(rewrites([request('a'), request('a', 'b'), request('a', 'b', 'c')])).toBe(0);
  });

  it('are none if a text is a block and later a string', () => {
    const body = (content: unknown) =>
      new TextEncoder().encode(JSON.stringify({ tools, messages: [{ role: 'user', content }] }));
    const marked = [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }];
    expect(rewrites([marked, 'a'].map((content) => ({ ...request(), body: body(content) })))).toBe(0);
  });

  it('are counted if an already sent message changed or is missing', () => {
    expect(rewrites([request('a', 'b'), request('A', 'b', 'c'), request('A', 'c')])).toBe(2);
  });

  it("ignore requests without an agent's tools", () => {
    const title = { ...request('t'), body: new TextEncoder().encode('{"messages":[{"content":"t"}]}') };
    expect(rewrites([request('a'), title, request('a', 'b')])).toBe(0);
  });
});

describe('sawRecall', () => {
  const exchange = (response: string) => ({
    method: 'POST',
    target: '/v1/responses',
    headers: [],
    request: '{}',
    status: 200,
    response,
  });

  it('is false for a response that only repeats the tools of the request', () => {
    const event = { type: 'response.created', response: { id: 'r', tools, output: [] } };
    expect(sawRecall(exchange(`event: response.created\ndata: ${JSON.stringify(event)}\n\n`))).toBe(false);
  });

  it('is true for a call of the recall tool', () => {
    const item = { type: 'function_call', name: 'read_memory' };
    const event = { type: 'response.completed', response: { id: 'r', tools, output: [item] } };
    expect(sawRecall(exchange(`data: ${JSON.stringify(event)}\n\n`))).toBe(true);
    expect(sawRecall(exchange(`data: ${JSON.stringify({ item })}\n\n`))).toBe(true);
  });
});
