/** Tests how the official SDK reads relayed responses: over HTTP, accumulating streams by itself. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onlyRecall, recallName } from '../../../test/support/codec-suite/arbitrary.ts';
import type { ScriptedPart, ScriptedTurn } from '../../../test/support/codec-suite/fixture.ts';
import { responsesFixture } from '../../../test/support/codec-suite/openai-responses/fixture.ts';
import { relayed, tailOf } from '../../../test/support/codec-suite/relay.ts';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { openaiResponses } from './index.ts';

const usage = { input: 100, cacheRead: 40, cacheWrite: 10, output: 20 };
const text = (...pieces: readonly string[]): ScriptedPart => ({ type: 'text', pieces });
const reasoning: ScriptedPart = { type: 'reasoning', pieces: ['I should ', 'look.'] };
const call = (id: string, name: string, ...pieces: readonly string[]): ScriptedPart => ({
  type: 'call',
  id,
  name,
  pieces,
});
const recalls: ScriptedTurn = {
  parts: [reasoning, text('One ', 'moment. '), call('r', recallName, '{"id"', ':"m1"}')],
  finish: 'calls',
  usage,
};
const answers: ScriptedTurn = {
  parts: [reasoning, text('Here ', 'it is.'), call('k', 'run', '{"a"', ':1}'), call('l', 'run', '{}')],
  finish: 'calls',
  usage,
};

describe('the official SDK', () => {
  let server: Server;
  let client: OpenAI;
  let served: { readonly type: string; readonly body: string };

  beforeAll(async () => {
    server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': served.type });
      response.end(served.body);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    client = new OpenAI({ apiKey: 'none', baseURL: `http://127.0.0.1:${port}/v1`, maxRetries: 0 });
  });
  afterAll(() => server.close());

  const asked = { model: 'm', input: 'a' } as const;

  it('accumulates a stream with a recall in the middle to one response', async () => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const first = relayed(relay, responsesFixture.stream(recalls, 1));
    const second = relayed(relay, responsesFixture.stream(answers, 2));
    served = { type: 'text/event-stream', body: first.out + second.out + tailOf(second.end) };
    const stream = client.responses.stream(asked);
    const numbers: number[] = [];
    const pieces: string[] = [];
    for await (const event of stream) {
      numbers.push(event.sequence_number);
      if (event.type === 'response.output_text.delta') pieces.push(event.delta);
    }
    const response = await stream.finalResponse();
    expect(numbers).toEqual(numbers.map((_, at) => at));
    expect(pieces).toEqual(['One ', 'moment. ', 'Here ', 'it is.']);
    expect(response).toMatchObject({
      id: 'resp_1',
      status: 'completed',
      output_text: 'One moment. Here it is.',
      output: [
        { type: 'reasoning', id: 'rs_1_0' },
        { type: 'message', id: 'msg_1_1', content: [{ text: 'One moment. ' }] },
        { type: 'reasoning', id: 'rs_2_0' },
        { type: 'message', id: 'msg_2_1', content: [{ text: 'Here it is.' }] },
        { type: 'function_call', id: 'fc_2_2', call_id: 'k', name: 'run', arguments: '{"a":1}' },
        { type: 'function_call', id: 'fc_2_3', call_id: 'l', name: 'run', arguments: '{}' },
      ],
      usage: {
        input_tokens: 200,
        input_tokens_details: { cached_tokens: 80, cache_write_tokens: 20 },
        output_tokens: 40,
        total_tokens: 240,
      },
    });
    expect(response.output).toHaveLength(6);
    expect(JSON.stringify(response)).not.toContain(recallName);
  });

  it('accumulates reasoning that led only to a recall, and does not send it back', async () => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const alone = { ...recalls, parts: [reasoning, call('r', recallName, '{}')] };
    const first = relayed(relay, responsesFixture.stream(alone, 1));
    const second = relayed(relay, responsesFixture.stream(answers, 2));
    served = { type: 'text/event-stream', body: first.out + second.out + tailOf(second.end) };
    const stream = client.responses.stream(asked);
    const thoughts: string[] = [];
    stream.on(
      'response.reasoning_summary_text.delta' as never,
      ((event: { delta: string }) => {
        thoughts.push(event.delta);
      }) as never,
    );
    const { output } = await stream.finalResponse();
    expect(output.map((item) => item.id)).toEqual(['rs_2_0', 'msg_2_1', 'fc_2_2', 'fc_2_3']);
    expect(thoughts).toEqual(['I should ', 'look.', 'I should ', 'look.']);
  });

  it('reports a stream that could not be continued as an error', async () => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const { out } = relayed(relay, responsesFixture.stream(recalls, 1));
    const tail = relay.fail({ status: 502, message: 'The upstream cannot be reached.' });
    served = { type: 'text/event-stream', body: out + tail.map(shown).join('') };
    await expect(client.responses.stream(asked).finalResponse()).rejects.toMatchObject({
      code: 'server_error',
      message: expect.stringContaining('The upstream cannot be reached.') as unknown,
    });
  });

  it('accepts a stream whose recall was not continued as a complete response', async () => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const { out } = relayed(relay, responsesFixture.stream(recalls, 1));
    served = { type: 'text/event-stream', body: out + relay.finish().map(shown).join('') };
    const response = await client.responses.stream(asked).finalResponse();
    expect([response.status, response.output_text, response.output.length]).toEqual([
      'completed',
      'One moment. ',
      2,
    ]);
  });

  it('reads a complete response of several rounds', async () => {
    const earlier = openaiResponses.readResponse(responsesFixture.response(recalls), onlyRecall);
    const last = responsesFixture.response(answers);
    const reply = openaiResponses.readResponse(last, onlyRecall);
    served = {
      type: 'application/json',
      body: shown(openaiResponses.writeResponse(last, [earlier], reply)),
    };
    const response = await client.responses.create(asked);
    expect([response.output_text, response.usage?.total_tokens]).toEqual(['One moment. Here it is.', 240]);
    expect(response.output.map((item) => item.type)).toEqual([
      'reasoning',
      'message',
      'reasoning',
      'message',
      'function_call',
      'function_call',
    ]);
  });
});
