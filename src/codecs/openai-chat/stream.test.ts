import { describe, expect, it } from 'vitest';
import { relayed, tailOf, takeAll } from '../../../test/support/codec-suite/relay.ts';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { openaiChat } from './index.ts';

const open = () => openaiChat.openStream({ privateTools: new Set(['read_memory']) });

/** Chunks in the provider's spelling, with choices only when a test needs others. */
function sse(...chunks: readonly string[]): string {
  return chunks.map((data) => `data: ${data}\n\n`).join('');
}
const chunk = (choice: string, id = 'c1', more = '') =>
  `{"id":"${id}","object":"chat.completion.chunk","created":1,"model":"m","choices":[${choice}]${more}}`;
const say = (delta: string, id?: string) => chunk(`{"index":0,"delta":${delta},"finish_reason":null}`, id);
const finish = (reason: string, id?: string, delta = '{}', more = '') =>
  chunk(`{"index":0,"delta":${delta},"finish_reason":"${reason}"}`, id, more);
const usage = (input: number, output: number, id?: string) =>
  chunk(
    '',
    id,
    `,"usage":{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":${input + output},"prompt_tokens_details":{"cached_tokens":4}}`,
  );
const begin = '{"role":"assistant","content":null}';
const call = (index: number, id: string, name: string, args = '') =>
  `{"tool_calls":[{"index":${index},"id":"${id}","type":"function","function":{"name":"${name}","arguments":${JSON.stringify(args)}}}]}`;
const more = (index: number, args: string) =>
  `{"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(args)}}}]}`;
const done = '[DONE]';

describe('a recall in a stream', () => {
  const first = sse(
    say(begin),
    say('{"content":"One "}'),
    say('{"content":"moment."}'),
    say(call(0, 'r', 'read_memory')),
    say(more(0, '{"id":"m1"}')),
    finish('tool_calls'),
    usage(100, 10),
    done,
  );
  const second = sse(
    say(begin, 'c2'),
    say('{"content":" Done."}', 'c2'),
    say(call(0, 'k', 'run'), 'c2'),
    say(more(0, '{}'), 'c2'),
    finish('tool_calls', 'c2'),
    usage(150, 20, 'c2'),
    done,
  );

  it('is cut out, and the rest follows under the first id, up to one finish with the usage of both', () => {
    const relay = open();
    const one = relayed(relay, first);
    expect(one.out).toBe(sse(say(begin), say('{"content":"One "}'), say('{"content":"moment."}')));
    const two = relayed(relay, second);
    expect(two.out + tailOf(two.end)).toBe(
      sse(
        say('{"content":" Done."}'),
        say(call(0, 'k', 'run')),
        say(more(0, '{}')),
        finish('tool_calls'),
        chunk(
          '',
          'c1',
          ',"usage":{"prompt_tokens":250,"completion_tokens":30,"total_tokens":280,"prompt_tokens_details":{"cached_tokens":8}}',
        ),
        done,
      ),
    );
    expect(relay.usage()).toEqual({ input: 250, cacheRead: 8, cacheWrite: 0, output: 30 });
  });

  it('goes back as one message', () => {
    const { end } = relayed(open(), first);
    const reply = end.status === 'recall' ? end.reply : undefined;
    expect(shown(reply!.turn)).toBe(
      '{"role":"assistant","content":"One moment.","tool_calls":[{"id":"r","type":"function","function":{"name":"read_memory","arguments":"{\\"id\\":\\"m1\\"}"}}]}',
    );
    expect([reply!.text, reply!.recalls, reply!.calls, reply!.finish]).toEqual([
      'One moment.',
      [{ id: 'r', name: 'read_memory', argumentsJson: '{"id":"m1"}' }],
      [],
      'tool_calls',
    ]);
  });

  it('is answered whatever finish reason the server sends', () => {
    const stop = sse(say(call(0, 'r', 'read_memory', '{}')), finish('stop'), done);
    expect(relayed(open(), stop).end.status).toBe('recall');
    for (const word of ['length', 'content_filter']) {
      const cut = sse(say(call(0, 'r', 'read_memory', '{}')), finish(word), done);
      const { out, end } = relayed(open(), cut);
      expect(out + tailOf(end)).toBe(sse(finish(word), done));
    }
  });

  it('renumbers the calls after it', () => {
    const mixed = sse(
      say(call(0, 'a', 'run', '{"a"')),
      say(call(1, 'r', 'read_memory', '{}')),
      say(more(0, ':1}')),
      say(call(2, 'b', 'read', '')),
      say(more(2, '{}')),
      finish('tool_calls'),
      done,
    );
    const { out, end } = relayed(open(), mixed);
    expect(out + tailOf(end)).toBe(
      sse(
        say(call(0, 'a', 'run', '{"a"')),
        say(more(0, ':1}')),
        say(call(1, 'b', 'read', '')),
        say(more(1, '{}')),
        finish('tool_calls'),
        done,
      ),
    );
  });
});

describe('servers that send much in one chunk', () => {
  it('keep the role that comes with a recall', () => {
    const both =
      '{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"r","type":"function","function":{"name":"read_memory","arguments":"{}"}}],"refusal":null}';
    const relay = open();
    const one = relayed(relay, sse(say(both), finish('tool_calls'), done));
    expect(one.out).toBe(sse(say('{"role":"assistant","content":null,"refusal":null}')));
    const two = relayed(
      relay,
      sse(say('{"role":"assistant","content":"Yes."}', 'c2'), finish('stop', 'c2'), done),
    );
    expect(two.out + tailOf(two.end)).toBe(sse(say('{"content":"Yes."}'), finish('stop'), done));
  });

  it('lose nothing of a last chunk that also holds text and calls', () => {
    const delta =
      '{"role":"assistant","content":"So.","tool_calls":[{"index":0,"id":"r","type":"function","function":{"name":"read_memory","arguments":"{}"}}]}';
    const relay = open();
    const one = relayed(
      relay,
      sse(finish('tool_calls', 'c1', delta, ',"usage":{"prompt_tokens":1,"completion_tokens":2}'), done),
    );
    expect(one.end.status).toBe('recall');
    expect(one.out).toBe(
      sse(chunk('{"index":0,"delta":{"role":"assistant","content":"So."},"finish_reason":null}')),
    );
    const two = relayed(
      relay,
      sse(
        finish(
          'stop',
          'c2',
          '{"role":"assistant","content":"Yes."}',
          ',"usage":{"prompt_tokens":3,"completion_tokens":4}',
        ),
        done,
      ),
    );
    expect(two.out + tailOf(two.end)).toBe(
      sse(
        say('{"content":"Yes."}'),
        finish('stop', 'c1', '{}', ',"usage":{"prompt_tokens":4,"completion_tokens":6}'),
        done,
      ),
    );
  });

  it('keep the calls of the client in a chunk that also holds a recall', () => {
    const both =
      '{"tool_calls":[{"index":0,"id":"r","type":"function","function":{"name":"read_memory","arguments":"{}"}},{"index":1,"id":"a","type":"function","function":{"name":"run","arguments":"{}"}}]}';
    const { out, end } = relayed(open(), sse(finish('tool_calls', 'c1', both), done));
    expect(out + tailOf(end)).toBe(sse(say(call(0, 'a', 'run', '{}')), finish('tool_calls'), done));
  });
});

describe('odd streams', () => {
  it('may give every call the same index: ids and names tell them apart', () => {
    const stream = sse(
      say(call(0, 'a', 'run', '{"a":1}')),
      say(call(0, 'r', 'read_memory', '{"id":"m"}')),
      say(call(0, 'b', 'read', '{"b":2}')),
      finish('tool_calls'),
      done,
    );
    const { out, end } = relayed(open(), stream);
    expect(out + tailOf(end)).toBe(
      sse(
        say(call(0, 'a', 'run', '{"a":1}')),
        say(call(1, 'b', 'read', '{"b":2}')),
        finish('tool_calls'),
        done,
      ),
    );
    const plain = sse(
      say(call(0, 'a', 'run', '{}')),
      say(call(0, 'b', 'read', '{}')),
      finish('tool_calls'),
      done,
    );
    expect(relayed(open(), plain).out).toBe(plain);
  });

  it('may repeat id, type and name with every fragment, or leave the index out', () => {
    const again = sse(
      say(call(0, 'r', 'read_memory', '{"id"')),
      say(call(0, 'r', 'read_memory', ':"m"}')),
      finish('tool_calls'),
      done,
    );
    const { end } = relayed(open(), again);
    expect(end.status === 'recall' && end.reply.recalls).toEqual([
      { id: 'r', name: 'read_memory', argumentsJson: '{"id":"m"}' },
    ]);
    const bare = sse(
      say('{"tool_calls":[{"id":"r","function":{"name":"read_memory","arguments":"{}"}}]}'),
      finish('tool_calls'),
      done,
    );
    const { out, end: asked } = relayed(open(), bare);
    expect([out, asked.status]).toEqual(['', 'recall']);
  });

  it('may send the name after the id: the call goes on as soon as it is known', () => {
    const late = sse(
      say('{"tool_calls":[{"index":0,"id":"a","type":"function"}]}'),
      say('{"tool_calls":[{"index":0,"function":{"name":"run","arguments":""}}]}'),
      say(more(0, '{}')),
      finish('tool_calls'),
      done,
    );
    const { out, end } = relayed(open(), late);
    expect(out + tailOf(end)).toBe(
      sse(
        say(
          '{"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":""},"index":0}]}',
        ),
        say(more(0, '{}')),
        finish('tool_calls'),
        done,
      ),
    );
    const never = sse(
      say('{"tool_calls":[{"index":0,"id":"a","type":"function"}]}'),
      finish('tool_calls'),
      done,
    );
    expect(relayed(open(), never).out).toContain('"id":"a"');
  });

  it('may call custom tools', () => {
    const custom = sse(
      say('{"tool_calls":[{"index":0,"id":"x","type":"custom","custom":{"name":"code","input":""}}]}'),
      say('{"tool_calls":[{"index":0,"custom":{"input":"1+1"}}]}'),
      finish('tool_calls'),
      done,
    );
    expect(relayed(open(), custom)).toMatchObject({ out: custom, end: { status: 'done', tail: [] } });
  });

  it('may hold several replies: those after the first stay unchanged', () => {
    const second = chunk(
      '{"index":1,"delta":{"tool_calls":[{"index":0,"id":"r","function":{"name":"read_memory","arguments":"{}"}}]},"finish_reason":null}',
    );
    const stream = sse(
      say('{"content":"a"}'),
      second,
      finish('stop'),
      chunk('{"index":1,"delta":{},"finish_reason":"tool_calls"}'),
      done,
    );
    expect(relayed(open(), stream)).toMatchObject({ out: stream, end: { status: 'done', tail: [] } });
  });

  it('may begin with a chunk without choices', () => {
    const filter = chunk('', '', ',"prompt_filter_results":[{"prompt_index":0}]');
    const stream = sse(filter, say(begin), say('{"content":"a"}'), finish('stop'), done);
    expect(relayed(open(), stream).out).toBe(stream);
  });

  it('may have comments, and no [DONE]', () => {
    const stream = `: waiting\n\n${sse(say(begin), say(call(0, 'r', 'read_memory', '{}')), finish('tool_calls'))}`;
    const relay = open();
    const { out, end } = relayed(relay, stream);
    expect([out, end.status]).toEqual([`: waiting\n\n${sse(say(begin))}`, 'recall']);
    expect(relay.finish().map(shown).join('')).toBe(sse(finish('stop')));
  });

  it('may break off or fail, and nothing is added after that', () => {
    const relay = open();
    takeAll(relay, sse(say(call(0, 'r', 'read_memory', '{"id"'))));
    expect(relay.end()).toMatchObject({ status: 'done', tail: [] });
    const failing = open();
    const error = '{"error":{"message":"overloaded","code":529}}';
    relayed(failing, sse(say(call(0, 'r', 'read_memory', '{}')), finish('tool_calls'), done));
    expect(relayed(failing, sse(error))).toMatchObject({
      out: sse(error),
      end: { status: 'done', tail: [] },
    });
    const late = sse(say(call(0, 'r', 'read_memory', '{}')), finish('tool_calls'), error);
    expect(relayed(open(), late)).toMatchObject({ out: sse(error), end: { status: 'done', tail: [] } });
  });
});

describe('a turn to be sent back', () => {
  const turnOf = (...deltas: readonly string[]) => {
    const last = say(call(9, 'r', 'read_memory', '{}'));
    const { end } = relayed(
      open(),
      sse(...deltas.map((delta) => say(delta)), last, finish('tool_calls'), done),
    );
    return end.status === 'recall'
      ? (JSON.parse(shown(end.reply.turn)) as Record<string, unknown>)
      : undefined;
  };

  it('keeps reasoning in one piece, and all of its signed details', () => {
    expect(
      turnOf(
        '{"role":"assistant","content":"","reasoning_content":"I "}',
        '{"reasoning_content":"see.","reasoning_details":[{"type":"reasoning.text","text":"I see."}]}',
        '{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}',
      ),
    ).toMatchObject({
      content: '',
      reasoning_content: 'I see.',
      reasoning_details: [
        { type: 'reasoning.text', text: 'I see.' },
        { type: 'reasoning.encrypted', data: 'x' },
      ],
    });
  });

  it('keeps what servers add to calls', () => {
    const signed =
      '{"tool_calls":[{"index":0,"id":"r0","type":"function","function":{"name":"read_memory","arguments":"{}"},"extra_content":{"google":{"thought_signature":"abc"}}}]}';
    expect(turnOf(signed)?.['tool_calls']).toEqual([
      {
        id: 'r0',
        type: 'function',
        function: { name: 'read_memory', arguments: '{}' },
        extra_content: { google: { thought_signature: 'abc' } },
      },
      { id: 'r', type: 'function', function: { name: 'read_memory', arguments: '{}' } },
    ]);
  });

  it('keeps content in parts', () => {
    const thought = '{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}';
    expect(turnOf(thought, '{"content":[{"type":"text","text":"b"}]}')?.['content']).toEqual([
      { type: 'thinking', thinking: [{ type: 'text', text: 'a' }] },
      { type: 'text', text: 'b' },
    ]);
  });

  it('keeps text split inside a character', () => {
    expect(turnOf('{"content":"\\ud83d"}', '{"content":"\\ude00"}')?.['content']).toBe('😀');
  });
});
