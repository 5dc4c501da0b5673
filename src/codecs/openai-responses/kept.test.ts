import { describe, expect, it } from 'vitest';
import { onlyRecall, recallName } from '../../../test/support/codec-suite/arbitrary.ts';
import { relayed } from '../../../test/support/codec-suite/relay.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import type { ModelReply } from '../codec.ts';
import { continueReply } from './request.ts';
import { openaiResponses } from './index.ts';

const answer = (id: string, text: string) => ({ call: { id, name: recallName, argumentsJson: '{}' }, text });
const output = (id: string, text: string) =>
  `{"type":"function_call_output","call_id":"${id}","output":"${text}"}`;
const goneOn = (body: string, ...pendingAnswers: readonly ReturnType<typeof answer>[]) =>
  shown(continueReply(view(openaiResponses, body), { name: 'resp_2', pendingAnswers }));

describe('a request that continues a kept response', () => {
  it('names it', () => {
    const read = (field: string) => view(openaiResponses, `{${field}"input":"Hi"}`).previousReplyId;
    expect(read('"previous_response_id":"resp_1",')).toBe('resp_1');
    expect(read('"previous_response_id":null,')).toBeUndefined();
    expect(read('"conversation":"conv_1",')).toBe('conv_1');
    expect(read('"conversation":{"id":"conv_2"},')).toBe('conv_2');
    expect(read('')).toBeUndefined();
  });

  it('names another, and every other byte stays', () => {
    const body = '{"n":1.0, "input" : "H\\u0069" , "previous_response_id" : "resp_1" ,"x":{"input":[]}}';
    expect(goneOn(body)).toBe(body.replace('resp_1', 'resp_2'));
  });

  it.each([
    [
      '[ {"role":"user","content":"Hi"} , {"type":"x","n":1.0} ]',
      '[ A,B,{"role":"user","content":"Hi"} , {"type":"x","n":1.0} ]',
    ],
    ['[ ]', '[ A,B]'],
    ['"H\\u0069"', '[A,B,{"role":"user","content":"H\\u0069"}]'],
  ])('has pending outputs ahead of the input %s', (input, expected) => {
    const body = (name: string, said: string) => `{"previous_response_id":"${name}","input":${said},"n":1.0}`;
    const said = expected.replace('A', output('a', 'one')).replace('B', output('b', '\\"two\\"'));
    expect(goneOn(body('resp_1', input), answer('a', 'one'), answer('b', '"two"'))).toBe(
      body('resp_2', said),
    );
  });
});

describe('a response', () => {
  const items = '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}';
  const response = (more: string) =>
    `{"id":"resp_1","object":"response","status":"completed","output":[${items}]${more}}`;
  const streamed = (more: string): ModelReply | undefined => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const data = `{"type":"response.completed","response":${response(more)}}`;
    const { end } = relayed(relay, `event: response.completed\ndata: ${data}\n\n`);
    return end.reply;
  };
  const complete = (more: string) =>
    openaiResponses.readResponse(new TextEncoder().encode(response(more)), onlyRecall);

  it.each([
    ['a stream', streamed],
    ['a body', complete],
  ])('is kept under its id, as %s, unless the provider says that it is not', (_, read) => {
    expect(read('')?.replyId).toBe('resp_1');
    expect(read(',"store":true')?.replyId).toBe('resp_1');
    expect(read(',"store":false')?.replyId).toBeUndefined();
  });

  it.each([
    ['completed', 'resp_1'],
    ['incomplete', 'resp_1'],
    ['failed', undefined],
    ['cancelled', undefined],
  ])('can be continued when a stream of it is %s: %s', (type, expected) => {
    const relay = openaiResponses.openStream({ privateTools: onlyRecall });
    const data = `{"type":"response.${type}","response":${response('').replace('completed', type)}}`;
    expect(relayed(relay, `event: response.${type}\ndata: ${data}\n\n`).end.reply?.replyId).toBe(expected);
  });
});
