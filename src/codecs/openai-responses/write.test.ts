import { describe, expect, it } from 'vitest';
import type { ModelReply } from '../codec.ts';
import { responsesFixture } from '../../../test/support/codec-suite/openai-responses/fixture.ts';
import { shown, view } from '../../../test/support/codec-suite/views.ts';
import { openaiResponses } from './index.ts';

const encoder = new TextEncoder();
const read = (body: Uint8Array | string) => view(openaiResponses, body);
const written = (body: string, ...edits: Parameters<typeof openaiResponses.write>[1]) =>
  shown(openaiResponses.write(read(body), edits));
const recallTool = { name: 'read_memory', description: 'Reads.', parameters: { type: 'object' } };
const tool =
  '{"type":"function","name":"read_memory","description":"Reads.","parameters":{"type":"object"},"strict":false}';
const withTool = (body: string) => shown(openaiResponses.write(read(body), [], { recallTool }));

describe('edits of items', () => {
  const body =
    '{"input":[ {"role":"user","content":[{"type":"input_text","text":"a"}, {"type":"input_text","text":"b"}]}, {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"} ,{"type":"custom_tool_call","call_id":"1","name":"f","input":"i"},{"type":"custom_tool_call_output","call_id":"1","output":"long"} ],"n":1.0}';

  it('change the text and nothing else', () => {
    const at = { message: 3, part: 0, text: 0 };
    expect(written(body, { kind: 'replace-text', at, stub: 'short', memory: 'm' })).toBe(
      body.replace('"long"', '"short"'),
    );
  });

  it('remove parts from a list and whole items, and insert messages', () => {
    expect(
      written(
        body,
        { kind: 'drop-part', message: 0, part: 0, memory: 'm' },
        { kind: 'drop-part', message: 1, part: 0, memory: 'm' },
        { kind: 'drop-message', message: 2, memory: 'm' },
        { kind: 'drop-part', message: 3, part: 0, memory: 'm' },
        { kind: 'insert-message', before: 1, role: 'user', text: 'gone' },
      ),
    ).toBe(
      '{"input":[ {"role":"user","content":[{"type":"input_text","text":"b"}]},{"type":"message","role":"user","content":"gone"} ],"n":1.0}',
    );
  });

  it('turn an input that is one text into a list only when they must', () => {
    const text = '{"input" : "a\\n" ,"n":1.0}';
    const at = { message: 0, part: 0, text: 0 };
    const replace = { kind: 'replace-text', at, stub: 'b', memory: 'm' } as const;
    const insert = { kind: 'insert-message', before: 0, role: 'user', text: 'x' } as const;
    const drop = { kind: 'drop-message', message: 0, memory: 'm' } as const;
    expect(written(text, replace)).toBe('{"input" : "b" ,"n":1.0}');
    expect(written(text, insert)).toBe(
      '{"input" : [{"type":"message","role":"user","content":"x"},{"role":"user","content":"a\\n"}] ,"n":1.0}',
    );
    expect(written(text, insert, replace)).toContain('{"role":"user","content":"b"}');
    expect(written(text, drop)).toBe('{"input" : [] ,"n":1.0}');
  });
});

describe('the recall tool', () => {
  it('is added after the tools of the client', () => {
    const body = '{"tools":[ {"type":"function","name":"f"} ],"input":[]}';
    expect(withTool(body)).toBe(body.replace('"f"}', `"f"},${tool}`));
  });

  it('gets a list of its own when the client sends its tools in items', () => {
    const items = '"input":[{"type":"additional_tools","tools":[{"type":"custom","name":"exec"}]}]';
    expect(withTool(`{${items},"store":false }`)).toBe(`{${items},"store":false,"tools":[${tool}] }`);
    expect(withTool(`{"tools": [ ] ,${items}}`)).toBe(`{"tools": [${tool}] ,${items}}`);
    expect(withTool(`{"tools":null,${items}}`)).toBe(`{"tools":[${tool}],${items}}`);
    const after = read(withTool(shown(responsesFixture.recorded['tools-in-items']!)));
    expect(after.toolNames).toEqual(['exec', 'open_page', 'read_memory']);
  });

  it('is not added to a history that the provider keeps', () => {
    const failed = { name: 'LeporelloError', code: 'bad-edit' };
    expect(() => withTool('{"previous_response_id":"r","input":[]}')).toThrow(
      expect.objectContaining(failed),
    );
  });
});

describe('a continuation', () => {
  const call = { id: 'c', name: 'read_memory', argumentsJson: '{}' };
  const reply = (turn: string): ModelReply => ({
    text: '',
    recalls: [call],
    calls: [],
    usage: undefined,
    rawUsage: undefined,
    finish: 'completed',
    turn: encoder.encode(turn),
  });
  const continued = (body: string, turn: string) =>
    shown(openaiResponses.continueWith(encoder.encode(body), reply(turn), [{ call, text: 'answer "1"' }]));
  const asked = '{"type":"function_call","call_id":"c","name":"read_memory","arguments":"{}"}';
  const answer = '{"type":"function_call_output","call_id":"c","output":"answer \\"1\\""}';

  it('has the items of the reply unchanged, encrypted reasoning with its item', () => {
    const sealed = '{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x","n":1.0}';
    expect(
      continued('{"input":[ {"role":"user","content":"a"} ],"store":false}', `[ ${sealed} , ${asked} ]`),
    ).toBe(`{"input":[ {"role":"user","content":"a"},${sealed},${asked},${answer} ],"store":false}`);
  });

  it('turns an input that is one text into a list', () => {
    expect(continued('{"input": "a\\n" }', `[${asked}]`)).toBe(
      `{"input": [{"role":"user","content":"a\\n"},${asked},${answer}] }`,
    );
  });

  it('leaves out reasoning that led to nothing', () => {
    const loose = (id: string) => `{"type":"reasoning","id":"${id}","summary":[]}`;
    expect(continued('{"input":[]}', `[${loose('1')},${loose('2')},${asked},${loose('3')}]`)).toBe(
      `{"input":[${loose('2')},${asked},${answer}]}`,
    );
  });

  it('leaves out reasoning that the provider neither keeps nor encrypts', () => {
    const open = '{"type":"reasoning","id":"rs","summary":[],"encrypted_content":null}';
    expect(continued('{"store":false,"input":[]}', `[${open},${asked}]`)).toBe(
      `{"store":false,"input":[${asked},${answer}]}`,
    );
    expect(continued('{"store":true,"input":[]}', `[${open},${asked}]`)).toBe(
      `{"store":true,"input":[${open},${asked},${answer}]}`,
    );
  });
});
