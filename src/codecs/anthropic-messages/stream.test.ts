import { describe, expect, it } from 'vitest';
import { relayed, tailOf, takeAll } from '../../../test/support/codec-suite/relay.ts';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { anthropicMessages } from './index.ts';

const open = () => anthropicMessages.openStream({ privateTools: new Set(['read_memory']) });

/** Events in the provider's spelling: one object a line. */
function sse(...events: readonly string[]): string {
  return events
    .map((data) => `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n`)
    .join('');
}

const start = (id: string, input: number) =>
  `{"type":"message_start","message":{"id":"${id}","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":${input},"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}`;
const block = (index: number, content: string) =>
  `{"type":"content_block_start","index":${index},"content_block":${content}}`;
const delta = (index: number, content: string) =>
  `{"type":"content_block_delta","index":${index},"delta":${content}}`;
const stop = (index: number) => `{"type":"content_block_stop","index":${index}}`;
const end = (reason: string, output: number) =>
  `{"type":"message_delta","delta":{"stop_reason":"${reason}","stop_sequence":null},"usage":{"output_tokens":${output}},"context_management":{"applied_edits":[]}}`;
const over = '{"type":"message_stop"}';

const thinking = (index: number) => [
  block(index, '{"type":"thinking","thinking":"","signature":""}'),
  delta(index, '{"type":"thinking_delta","thinking":"Let me "}'),
  delta(index, '{"type":"thinking_delta","thinking":"see."}'),
  delta(index, '{"type":"signature_delta","signature":"EqQB=="}'),
  stop(index),
];
const text = (index: number, said: string) => [
  block(index, '{"type":"text","text":""}'),
  '{"type": "ping"}',
  delta(index, `{"type":"text_delta","text":${JSON.stringify(said)}}`),
  stop(index),
];
const recall = (index: number, id: string) => [
  block(index, `{"type":"tool_use","id":"${id}","name":"read_memory","input":{},"caller":{"type":"direct"}}`),
  delta(index, '{"type":"input_json_delta","partial_json":""}'),
  delta(index, '{"type":"input_json_delta","partial_json":"{\\"id\\": \\"m1\\", \\"n\\": 123456789"}'),
  delta(index, '{"type":"input_json_delta","partial_json":"01234567890}"}'),
  stop(index),
];

describe('a recall in a stream', () => {
  const first = sse(
    start('msg_1', 100),
    ...thinking(0),
    ...recall(1, 'toolu_r'),
    ...text(2, 'One moment.'),
    end('tool_use', 30),
    over,
  );
  const second = sse(start('msg_2', 150), ...thinking(0), ...text(1, 'Done.'), end('end_turn', 20), over);

  it('is cut out, and the rest follows under the first start, up to one end with the usage of both', () => {
    const relay = open();
    const one = relayed(relay, first);
    expect(one.out).toBe(sse(start('msg_1', 100), ...thinking(0), ...text(1, 'One moment.')));
    const two = relayed(relay, second);
    expect(two.out + tailOf(two.end)).toBe(
      sse(
        ...thinking(2),
        ...text(3, 'Done.'),
        '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":250,"cache_creation_input_tokens":10,"cache_read_input_tokens":14,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":0},"output_tokens":50,"service_tier":"standard"},"context_management":{"applied_edits":[]}}',
        over,
      ),
    );
    expect(relay.usage()).toEqual({ input: 274, cacheRead: 14, cacheWrite: 10, output: 50 });
  });

  it('goes back with the whole turn: signature, order, spelling of numbers', () => {
    const { end: asked } = relayed(open(), first);
    expect(asked.status).toBe('recall');
    const reply = asked.status === 'recall' ? asked.reply : undefined;
    expect(shown(reply!.turn)).toBe(
      '[{"type":"thinking","thinking":"Let me see.","signature":"EqQB=="},' +
        '{"type":"tool_use","id":"toolu_r","name":"read_memory","input":{"id": "m1", "n": 12345678901234567890},"caller":{"type":"direct"}},' +
        '{"type":"text","text":"One moment."}]',
    );
    expect(reply!.recalls).toEqual([
      { id: 'toolu_r', name: 'read_memory', argumentsJson: '{"id": "m1", "n": 12345678901234567890}' },
    ]);
    expect([reply!.text, reply!.calls, reply!.finish]).toEqual(['One moment.', [], 'tool_use']);
    expect(reply!.usage).toEqual({ input: 112, cacheRead: 7, cacheWrite: 5, output: 30 });
  });

  it('can be closed instead', () => {
    const relay = open();
    relayed(relay, first);
    expect(relay.finish().map(shown).join('')).toContain('"stop_reason":"end_turn"');
    expect(relay.usage()).toEqual({ input: 112, cacheRead: 7, cacheWrite: 5, output: 30 });
  });

  it('is recognized without event names', () => {
    const unnamed = (stream: string) => stream.replaceAll(/event: .*\n/g, '');
    const relay = open();
    const one = relayed(relay, unnamed(first));
    const two = relayed(relay, unnamed(second));
    expect(one.out).toBe(unnamed(sse(start('msg_1', 100), ...thinking(0), ...text(1, 'One moment.'))));
    expect(tailOf(two.end)).toContain('"output_tokens":50');
    expect(tailOf(two.end)).not.toContain('event:');
  });
});

describe('a turn to be sent back', () => {
  const turnOf = (...events: readonly string[]) => {
    const count = events.filter((event) => event.includes('content_block_start')).length;
    const { end: asked } = relayed(
      open(),
      sse(start('m', 1), ...events, ...recall(count, 'r'), end('tool_use', 1), over),
    );
    return asked.status === 'recall'
      ? shown(asked.reply.turn).replace(/,\{"type":"tool_use","id":"r".*$/, ']')
      : '';
  };

  it('keeps blocks that came whole, byte for byte', () => {
    const whole =
      '{"type":"web_search_tool_result", "tool_use_id":"s1","content":[{"n":12345678901234567890,"10":1,"2":1.0,"u":"\\u00e9"}]}';
    expect(turnOf(block(0, whole), stop(0))).toBe(`[${whole}]`);
    expect(turnOf(block(0, '{"type":"redacted_thinking","data":"abc"}'), stop(0))).toBe(
      '[{"type":"redacted_thinking","data":"abc"}]',
    );
  });

  it('keeps every citation', () => {
    const events = [
      block(0, '{"type":"text","text":"","citations":[]}'),
      delta(0, '{"type":"citations_delta","citation":{"cited_text":"a"}}'),
      delta(0, '{"type":"text_delta","text":"said"}'),
      delta(0, '{"type":"citations_delta","citation":{"cited_text":"b"}}'),
      stop(0),
    ];
    expect(turnOf(...events)).toBe(
      '[{"type":"text","text":"said","citations":[{"cited_text":"a"},{"cited_text":"b"}]}]',
    );
  });

  it('keeps the final value of a compaction, null included', () => {
    const begin = block(0, '{"type":"compaction","content":null}');
    const event = delta(0, '{"type":"compaction_delta","content":"Summary.","encrypted_content":"e"}');
    expect(turnOf(begin, event, stop(0))).toBe(
      '[{"type":"compaction","content":"Summary.","encrypted_content":"e"}]',
    );
    const failed = delta(0, '{"type":"compaction_delta","content":null,"encrypted_content":null}');
    expect(turnOf(begin, failed, stop(0))).toBe(
      '[{"type":"compaction","content":null,"encrypted_content":null}]',
    );
  });

  it('keeps the input of server tools, and a text split inside a character', () => {
    const events = [
      block(0, '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'),
      delta(0, '{"type":"input_json_delta","partial_json":"{\\"q\\":1}"}'),
      stop(0),
      block(1, '{"type":"text","text":"a"}'),
      delta(1, '{"type":"text_delta","text":"\\ud83d"}'),
      delta(1, '{"type":"text_delta","text":"\\ude00"}'),
      stop(1),
    ];
    expect(turnOf(...events)).toBe(
      '[{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}},{"type":"text","text":"a😀"}]',
    );
  });

  it('leaves out deltas of an unknown kind', () => {
    const events = [
      block(0, '{"type":"text","text":"a"}'),
      delta(0, '{"type":"mood_delta","mood":"calm"}'),
      stop(0),
    ];
    expect(turnOf(...events)).toBe('[{"type":"text","text":"a"}]');
  });
});

describe('odd streams', () => {
  it('with unusual indices stay unchanged as long as nothing is private', () => {
    const odd = sse(
      start('m', 1),
      block(1, '{"type":"text","text":"a"}'),
      stop(1),
      block(1, '{"type":"text","text":"b"}'),
      stop(1),
      delta(7, '{}'),
      stop(8),
      end('end_turn', 1),
      over,
    );
    expect(relayed(open(), odd)).toMatchObject({ out: odd, end: { status: 'done', tail: [] } });
  });

  it('with a recall cut off by the token limit end as the provider ended them', () => {
    const cut = sse(
      start('m', 1),
      ...text(0, 'So'),
      block(1, '{"type":"tool_use","id":"r","name":"read_memory","input":{}}'),
      delta(1, '{"type":"input_json_delta","partial_json":"{\\"id\\":"}'),
      stop(1),
      end('max_tokens', 9),
      over,
    );
    const { out, end: done } = relayed(open(), cut);
    expect(out).toBe(sse(start('m', 1), ...text(0, 'So')));
    expect(tailOf(done)).toContain('"stop_reason":"max_tokens"');
  });

  it('that break off inside a recall end without further events', () => {
    const relay = open();
    takeAll(relay, sse(start('m', 1), ...recall(0, 'r')));
    expect(relay.end()).toMatchObject({ status: 'done', tail: [] });
  });

  it('that break off before their end are not continued', () => {
    const { end: done } = relayed(open(), sse(start('m', 1), ...recall(0, 'r'), end('tool_use', 1)));
    expect(tailOf(done)).toContain('"stop_reason":"end_turn"');
  });

  it('sum compaction costs and other lists of usage in the provider’s terms', () => {
    const with1 = (stream: string) =>
      stream.replace(
        '"usage":{"output_tokens"',
        '"usage":{"iterations":[{"type":"message","n":1}],"output_tokens"',
      );
    const relay = open();
    relayed(relay, with1(sse(start('m', 1), ...recall(0, 'r'), end('tool_use', 1), over)));
    const two = relayed(relay, with1(sse(start('m', 1), ...text(0, 'a'), end('end_turn', 1), over)));
    expect(tailOf(two.end)).toContain('"iterations":[{"type":"message","n":1},{"type":"message","n":1}]');
  });

  it('without the recall tool are not recorded, except for their usage', () => {
    const stream = sse(start('m', 1), ...recall(0, 'r'), end('tool_use', 4), over);
    const relay = anthropicMessages.openStream({ privateTools: new Set() });
    expect(takeAll(relay, stream)).toBe(stream);
    expect(relay.usage()).toEqual({ input: 13, cacheRead: 7, cacheWrite: 5, output: 4 });
    expect(relay.end()).toMatchObject({ status: 'done', tail: [] });
  });
});
