import { describe, expect, it } from 'vitest';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { openaiChat } from './index.ts';

const encoder = new TextEncoder();
const read = (body: string) => openaiChat.readResponse(encoder.encode(body), new Set(['read_memory']));

describe('a complete response of Chat Completions', () => {
  it('is written for the client byte for byte, without the private parts', () => {
    const first = read(
      '{"choices":[{"index":0,"message":{"role":"assistant","content":"Let me see. ","tool_calls":[{"id":"x","type":"function","function":{"name":"read_memory","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}',
    );
    const last =
      '{"id":"c2", "choices":[ {"index":0,"message":{"role":"assistant","content":"Done.","n":1.0,"tool_calls":[ {"id":"x","type":"function","function":{"name":"read_memory","arguments":"{}"}} , {"id":"x","type":"function","function":{"name":"run","arguments":"{}"}} ]},"logprobs":null,"finish_reason":"tool_calls"} ],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23},"x":12345678901234567890}';
    const seen = openaiChat.writeResponse(encoder.encode(last), [first], read(last));
    expect(shown(seen)).toBe(
      '{"id":"c2", "choices":[ {"index":0,"message":{"role":"assistant","content":"Let me see. Done.","n":1.0,"tool_calls":[ {"id":"x","type":"function","function":{"name":"run","arguments":"{}"}} ]},"logprobs":null,"finish_reason":"tool_calls"} ],"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35},"x":12345678901234567890}',
    );
  });

  it('has no list of calls when all were private, and a matching finish reason', () => {
    const body =
      '{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"r","type":"function","function":{"name":"read_memory","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}';
    expect(shown(openaiChat.writeResponse(encoder.encode(body), [], read(body)))).toBe(
      '{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}',
    );
  });

  it('keeps text before a recall when the last message has no content member', () => {
    const recall = '{"id":"x","type":"function","function":{"name":"read_memory","arguments":"{}"}}';
    const first = read(
      `{"choices":[{"message":{"role":"assistant","content":"Let me see. ","tool_calls":[${recall}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`,
    );
    const call = '{"id":"y","type":"function","function":{"name":"run","arguments":"{}"}}';
    const last = `{"choices":[{"message":{"role":"assistant","tool_calls":[${call}]},"finish_reason":"tool_calls"}]}`;
    expect(shown(openaiChat.writeResponse(encoder.encode(last), [first], read(last)))).toBe(
      `{"choices":[{"message":{"role":"assistant","tool_calls":[${call}],"content":"Let me see. "},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`,
    );
  });

  it('keeps a text that comes as a list of parts, behind the text before a recall', () => {
    const recall = '{"id":"x","type":"function","function":{"name":"read_memory","arguments":"{}"}}';
    const first = read(
      `{"choices":[{"message":{"role":"assistant","content":"Let me see. ","tool_calls":[${recall}]},"finish_reason":"tool_calls"}]}`,
    );
    const parts =
      '{"type":"thinking","thinking":[{"type":"text","text":"So 6 x 7."}]},{"type":"text","text":"It is 42."}';
    const last = `{"choices":[{"message":{"role":"assistant","content":[${parts}]},"finish_reason":"stop"}]}`;
    expect(shown(openaiChat.writeResponse(encoder.encode(last), [first], read(last)))).toBe(
      `{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"Let me see. "},${parts}]},"finish_reason":"stop"}]}`,
    );
  });

  it('reads cached tokens where other servers tell them', () => {
    const usageOf = (usage: object) =>
      read(JSON.stringify({ choices: [{ message: { content: 'a' } }], usage })).usage;
    const reports = [
      { prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 400, cache_write_tokens: 500 } },
      { prompt_tokens: 1_000, prompt_cache_hit_tokens: 900, prompt_cache_miss_tokens: 100 },
      { prompt_tokens: 1_000, cached_tokens: 900 },
    ];
    expect(reports.map(usageOf)).toEqual([
      { input: 1_000, cacheRead: 400, cacheWrite: 500, output: 0 },
      { input: 1_000, cacheRead: 900, cacheWrite: 0, output: 0 },
      { input: 1_000, cacheRead: 900, cacheWrite: 0, output: 0 },
    ]);
  });

  it('keeps replies other than the first', () => {
    const other = '{"index":1,"message":{"role":"assistant","content":"b"},"finish_reason":"stop"}';
    const body = `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"r","type":"function","function":{"name":"read_memory","arguments":"{}"}}]},"finish_reason":"tool_calls"},${other}]}`;
    expect(shown(openaiChat.writeResponse(encoder.encode(body), [], read(body)))).toContain(other);
  });

  it('reads calls of custom tools, and calls without id or name', () => {
    const body =
      '{"choices":[{"message":{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"code","input":"1+1"}},{},5]}}]}';
    expect(read(body)).toMatchObject({
      text: '',
      finish: undefined,
      usage: undefined,
      calls: [
        { id: 'c', name: 'code', argumentsJson: '1+1' },
        { id: '', name: '', argumentsJson: '' },
        { id: '', name: '', argumentsJson: '' },
      ],
    });
  });
});
