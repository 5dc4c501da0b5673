import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../codec.ts';
import { readResponse, writeResponse } from './response.ts';
import { openStream } from './stream.ts';

const recall = { type: 'tool_use', id: 'toolu_1', name: 'read_memory', input: { id: 'mem_1' } };
const first = [
  { type: 'thinking', thinking: 'one', signature: 'SIG1' },
  { type: 'text', text: 'Let me see. ' },
  recall,
];
const second = [
  { type: 'thinking', thinking: 'two', signature: 'SIG2' },
  { type: 'text', text: 'Done.' },
];

const message = (model: string, content: readonly object[], stop: string) =>
  new TextEncoder().encode(
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason: stop,
      usage: { input_tokens: 5, output_tokens: 1 },
    }),
  );

/** The events of one message whose blocks come whole. */
function events(model: string, content: readonly object[], stop: string): readonly StreamEvent[] {
  const blocks = content.flatMap((content_block, index) => [
    { type: 'content_block_start', index, content_block },
    { type: 'content_block_stop', index },
  ]);
  const all = [
    { type: 'message_start', message: { model, usage: { input_tokens: 5 } } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ];
  return all.map((data) => {
    const text = JSON.stringify(data);
    return {
      raw: new TextEncoder().encode(`event: ${data.type}\ndata: ${text}\n\n`),
      event: data.type,
      data: text,
    };
  });
}

function clientSees(model: string): string {
  const relay = openStream({ recallTool: 'read_memory' });
  const seen = events(model, first, 'tool_use').flatMap((event) => relay.take(event));
  relay.end();
  seen.push(...events(model, second, 'end_turn').flatMap((event) => relay.take(event)));
  const end = relay.end();
  if (end.status === 'done') seen.push(...end.tail);
  return seen.map((bytes) => new TextDecoder().decode(bytes)).join('');
}

describe('thinking made after a recall that the client does not know of', () => {
  it('is kept from the client where the model would refuse it in the next request', () => {
    const model = 'claude-opus-5-5';
    const earlier = readResponse(message(model, first, 'tool_use'), 'read_memory');
    const body = message(model, second, 'end_turn');
    const shown = new TextDecoder().decode(writeResponse(body, [earlier], readResponse(body, 'read_memory')));
    expect(JSON.parse(shown).content).toEqual([...first.slice(0, 2), second[1]]);
    const streamed = clientSees(model);
    expect(streamed).toContain('SIG1');
    expect(streamed).not.toContain('SIG2');
    expect(streamed.match(/"index":\d/g)).toEqual(
      ['0', '0', '1', '1', '2', '2'].map((index) => `"index":${index}`),
    );
  });

  it('is shown where the model takes it anywhere', () => {
    const model = 'claude-sonnet-4-6';
    const earlier = readResponse(message(model, first, 'tool_use'), 'read_memory');
    const body = message(model, second, 'end_turn');
    const shown = new TextDecoder().decode(writeResponse(body, [earlier], readResponse(body, 'read_memory')));
    expect(JSON.parse(shown).content).toEqual([...first.slice(0, 2), ...second]);
    expect(clientSees(model)).toContain('SIG2');
  });
});
