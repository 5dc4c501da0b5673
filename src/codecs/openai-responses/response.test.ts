import { describe, expect, it } from 'vitest';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { openaiResponses } from './index.ts';

const encoder = new TextEncoder();
const responseOf = (output: string, more = '') =>
  `{"id":"resp","object":"response","output":[${output}]${more}}`;
const read = (body: string) => openaiResponses.readResponse(encoder.encode(body), new Set(['read_memory']));
const seen = (earlier: readonly string[], body: string) =>
  shown(openaiResponses.writeResponse(encoder.encode(body), earlier.map(read), read(body)));

const recall = '{"type":"function_call","call_id":"r","name":"read_memory","arguments":"{}"}';
const run =
  '{"type":"function_call","call_id":"k","name":"run","arguments":"{\\"n\\":12345678901234567890}"}';
const thought = (id: string) => `{"type":"reasoning","id":"${id}","summary":[],"encrypted_content":"x"}`;
const said = (text: string) =>
  `{"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":"${text}","annotations":[]}]}`;
const usage = (input: number, output: number, more = '') =>
  `,"usage":{"input_tokens":${input},"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":${output},"total_tokens":${input + output}${more}}`;

describe('a complete response', () => {
  it('is written byte for byte, without the private parts', () => {
    const first = responseOf(`${said('Let me see.')},${recall}`, usage(10, 2));
    const last = `{"id":"resp_2", "output":[ ${thought('rs')} , ${run} , ${recall} ],"n":1.0,"usage":null}`;
    expect(seen([first], last)).toBe(
      `{"id":"resp_2", "output":[${said('Let me see.')},${thought('rs')},${run}],"n":1.0,"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":2,"total_tokens":12}}`,
    );
  });

  it('has the usage of all rounds', () => {
    expect(
      JSON.parse(seen([responseOf(recall, usage(10, 2))], responseOf(said('Done.'), usage(20, 3)))),
    ).toMatchObject({
      usage: {
        input_tokens: 30,
        input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
        output_tokens: 5,
        total_tokens: 35,
      },
    });
    expect(read(responseOf('', usage(10, 2))).usage).toEqual({
      input: 10,
      cacheRead: 4,
      cacheWrite: 1,
      output: 2,
    });
    expect(read(responseOf('', ',"usage":null')).usage).toBeUndefined();
  });

  it.each([
    ['a search', '{"type":"web_search_call","id":"ws","status":"completed"}'],
    ['tools of an MCP server', '{"type":"mcp_list_tools","id":"l","server_label":"s","tools":[]}'],
    ['a compaction', '{"type":"compaction","id":"c","encrypted_content":"x"}'],
    [
      'a command that the provider ran',
      '{"type":"shell_call","call_id":"s"},{"type":"shell_call_output","call_id":"s"}',
    ],
  ])('does not count the input tokens as the prompt that was sent when the output holds %s', (_, item) => {
    const usageOf = (output: string) => read(responseOf(output, usage(10, 2))).usage;
    expect(usageOf(`${thought('1')},${item},${said('a')}`)?.sentPrompt).toBe('unknown');
    expect(usageOf(`${thought('1')},${said('a')},${run},${recall}`)?.sentPrompt).toBeUndefined();
  });

  it.each([
    ['only a recall', `${thought('1')},${recall}`, ''],
    ['two recalls', `${thought('1')},${recall},${recall}`, ''],
    [
      'a recall before other reasoning',
      `${thought('1')},${recall},${thought('2')},${run}`,
      `${thought('2')},${run}`,
    ],
    ['a recall, and then to nothing', `${said('a')},${thought('1')},${recall},${thought('2')}`, said('a')],
  ])('loses the reasoning that led to %s', (_, output, left) => {
    expect(seen([], responseOf(output))).toBe(responseOf(left));
  });

  it.each([
    ['a call beside the recall', `${thought('1')},${recall},${run}`, `${thought('1')},${run}`],
    ['words before the recall', `${thought('1')},${said('a')},${recall}`, `${thought('1')},${said('a')}`],
    [
      'more reasoning before a call',
      `${thought('1')},${thought('2')},${run},${recall}`,
      `${thought('1')},${thought('2')},${run}`,
    ],
  ])('keeps the reasoning that led to %s', (_, output, left) => {
    expect(seen([], responseOf(output))).toBe(responseOf(left));
  });

  it('waits for the client whenever a call is not answered in it', () => {
    const calls = [
      '{"type":"custom_tool_call","call_id":"1","name":"exec","input":"1+1"}',
      '{"type":"shell_call","call_id":"2","action":{"commands":["ls"]}}',
      '{"type":"shell_call","call_id":"3","action":{}}',
      '{"type":"shell_call_output","call_id":"3","output":[]}',
      '{"type":"apply_patch_call","call_id":"4","operation":{"type":"x"}}',
      '{"type":"computer_call","call_id":"5","actions":[]}',
      '{"type":"local_shell_call","call_id":"6"}',
      '{"type":"mcp_approval_request","id":"7","name":"ask","arguments":"{}"}',
      '{"type":"tool_search_call","call_id":"8","execution":"client","arguments":{"q":1}}',
      '{"type":"tool_search_call","call_id":"9","execution":"server","arguments":{}}',
      '{"type":"web_search_call","id":"10","action":{}}',
      '5',
    ];
    expect(read(responseOf(calls.join(','))).calls).toEqual([
      { id: '1', name: 'exec', argumentsJson: '1+1' },
      { id: '2', name: 'shell', argumentsJson: '{"commands":["ls"]}' },
      { id: '4', name: 'apply_patch', argumentsJson: '{"type":"x"}' },
      { id: '5', name: 'computer', argumentsJson: '[]' },
      { id: '6', name: 'local_shell', argumentsJson: '{}' },
      { id: '7', name: 'ask', argumentsJson: '{}' },
      { id: '8', name: 'tool_search', argumentsJson: '{"q":1}' },
    ]);
  });

  it('says why it stopped', () => {
    const finish = (more: string) => read(responseOf(said('a'), more)).finish;
    expect([
      finish(',"status":"completed","incomplete_details":null'),
      finish(',"status":"incomplete","incomplete_details":{"reason":"content_filter"}'),
      finish(''),
    ]).toEqual(['completed', 'content_filter', undefined]);
  });
});
