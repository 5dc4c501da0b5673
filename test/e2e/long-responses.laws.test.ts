/** Tests that responses too long to parse reach the client byte for byte. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Reply } from '../support/fake-provider/script.ts';
import { formats, post, postStream, requestBody } from './bodies.ts';
import { offering, type Stack, startStack } from './stack.ts';

const mebibyte = 'x'.repeat(1024 * 1024);
const pieces = (count: number): readonly string[] => Array.from({ length: count }, () => mebibyte);

function raw(type: string, chunks: readonly string[]): Reply {
  return { type: 'raw', status: 200, headers: { 'content-type': type }, chunks };
}

/** Returns a digest to compare, because a test's report cannot show strings of this size. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function newestReceipt({ url }: Stack): Promise<Receipt> {
  const response = await fetch(`${url}/_leporello/receipts`, { headers: { authorization: 'Bearer dummy' } });
  return ((await response.json()) as { receipts: Receipt[] }).receipts[0]!;
}

describe.each(formats)('a %s response', (format) => {
  it('passes through with an event of 17 MiB', async () => {
    const chunks = [': hello\n\ndata: {"padding":"', ...pieces(17), '"}\n\nevent: after\ndata: {"so":1}\n\n'];
    await using stack = await startStack(() => raw('text/event-stream', chunks), offering);
    const text = await (await postStream(stack.url, format)).text();
    expect(digest(text)).toBe(digest(chunks.join('')));
    expect((await newestReceipt(stack)).problem).toBe('an event of the response was too long to be read');
  });

  it('passes through complete with 65 MiB of JSON', async () => {
    const chunks = ['{"padding":"', ...pieces(65), '"}'];
    await using stack = await startStack(() => raw('application/json', chunks), offering);
    const text = await (await post(stack.url, format, requestBody(format))).text();
    expect(digest(text)).toBe(digest(chunks.join('')));
    expect((await newestReceipt(stack)).problem).toBe('the response was too long to be read');
  });
});

it('a recall in a reply with an event of 17 MiB is not answered, and the message ends as if it had none', async () => {
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const start = event('message_start', {
    message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 5 } },
  });
  const block = (index: number, content_block: object): string =>
    event('content_block_start', { index, content_block });
  const long = [
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"',
    ...pieces(17),
    '"}}\n\n',
  ];
  const said = [
    start,
    block(0, { type: 'text', text: '' }),
    ...long,
    event('content_block_stop', { index: 0 }),
  ];
  const held = [
    block(1, { type: 'tool_use', id: 'private', name: 'read_memory', input: {} }),
    event('content_block_delta', {
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '{"id":"m"}' },
    }),
    event('content_block_stop', { index: 1 }),
  ];
  const stop = (stop_reason: string, usage: object): readonly string[] => [
    event('message_delta', { delta: { stop_reason }, usage }),
    event('message_stop', {}),
  ];
  const chunks = [...said, ...held, ...stop('tool_use', { output_tokens: 7 })];
  await using stack = await startStack(() => raw('text/event-stream', chunks), offering);
  const text = await (await postStream(stack.url, 'messages')).text();
  const ending = stop('end_turn', { input_tokens: 5, output_tokens: 7 });
  expect(text.slice(-300)).toContain(ending.join(''));
  expect(digest(text)).toBe(digest([...said, ...ending].join('')));
  expect(stack.provider.requests.length).toBe(1);
});
