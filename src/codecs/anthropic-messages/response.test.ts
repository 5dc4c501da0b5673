import { describe, expect, it } from 'vitest';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './index.ts';

const encoder = new TextEncoder();
const read = (body: string) => anthropicMessages.readResponse(encoder.encode(body), new Set(['read_memory']));

describe('a complete response of Anthropic Messages', () => {
  it('counts tokens read from and written to the cache as input', () => {
    const usage =
      '{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":40,"server_tool_use":{"web_search_requests":0}}';
    expect(read(`{"content":[],"stop_reason":"end_turn","usage":${usage}}`).usage).toEqual({
      input: 2103,
      cacheRead: 2000,
      cacheWrite: 100,
      output: 40,
    });
    expect(read('{"content":[]}').usage).toBeUndefined();
  });

  it('counts separately the tokens written for an hour', () => {
    const written = (hour: number) =>
      `{"input_tokens":3,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":${100 - hour},"ephemeral_1h_input_tokens":${hour}},"output_tokens":40}`;
    const usages = [0, 60].map((hour) => read(`{"content":[],"usage":${written(hour)}}`).usage);
    expect(usages).toEqual([
      { input: 103, cacheRead: 0, cacheWrite: 100, output: 40 },
      { input: 103, cacheRead: 0, cacheWrite: 100, cacheWriteLong: 60, output: 40 },
    ]);
  });

  it.each<[string, string, number | 'unknown' | undefined]>([
    ['one round', '', undefined],
    ['one round, said so', ',"iterations":[{"type":"message","input_tokens":900}]', undefined],
    [
      'a search of the provider with its rounds',
      ',"server_tool_use":{"web_search_requests":1},"iterations":[{"type":"message","input_tokens":3,"cache_read_input_tokens":97},{"type":"message","input_tokens":800}]',
      100,
    ],
    ['a search of the provider alone', ',"server_tool_use":{"web_search_requests":1}', 'unknown'],
    [
      'a compaction ahead of the reply',
      ',"iterations":[{"type":"compaction","input_tokens":40},{"type":"message","input_tokens":900}]',
      'unknown',
    ],
  ])('says which prompt was sent where the usage is of %s', (_, more, sentPrompt) => {
    const body = `{"content":[],"usage":{"input_tokens":900,"output_tokens":4${more}}}`;
    expect(read(body).usage).toEqual({
      input: 900,
      cacheRead: 0,
      cacheWrite: 0,
      output: 4,
      ...(sentPrompt === undefined ? {} : { sentPrompt }),
    });
  });

  it('keeps numbers of calls as the model spelled them', () => {
    const call = '{"type":"tool_use","id":"a","name":"run","input": {"n": 12345678901234567890}}';
    expect(read(`{"content":[${call}]}`).calls).toEqual([
      { id: 'a', name: 'run', argumentsJson: '{"n": 12345678901234567890}' },
    ]);
  });

  it('reads calls without input, id or name, and blocks that are no objects', () => {
    expect(read('{"content":[{"type":"tool_use"},5,null,{"type":"text"}]}')).toMatchObject({
      text: '',
      calls: [{ id: '', name: '', argumentsJson: '{}' }],
    });
  });

  it('is written for the client byte for byte, without the private parts', () => {
    const first = read(
      '{"content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"Let me see. "},{"type":"tool_use","id":"x","name":"read_memory","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":2,"service_tier":"standard"}}',
    );
    const last =
      '{"id":"msg_2", "type":"message","role":"assistant","content":[ {"type":"text","text":"Done.","n":1.0}, {"type":"tool_use","id":"x","name":"run","input":{"a":1}} ],"stop_reason":"tool_use","usage":{"input_tokens":20,"output_tokens":3,"service_tier":"priority"},"x":12345678901234567890}';
    const seen = anthropicMessages.writeResponse(encoder.encode(last), [first], read(last));
    expect(shown(seen)).toBe(
      '{"id":"msg_2", "type":"message","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"Let me see. "},{"type":"text","text":"Done.","n":1.0},{"type":"tool_use","id":"x","name":"run","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":30,"output_tokens":5,"service_tier":"priority"},"x":12345678901234567890}',
    );
  });
});
