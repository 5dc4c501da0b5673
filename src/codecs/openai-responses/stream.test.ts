import { describe, expect, it } from 'vitest';
import { relayed, tailOf, takeAll } from '../../../test/support/codec-suite/relay.ts';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { openaiResponses } from './index.ts';

const open = () => openaiResponses.openStream({ privateTools: new Set(['read_memory']) });

/** Events in the provider's spelling, numbered in order. */
function sse(...events: readonly string[]): string {
  return numbered(0, ...events);
}
function numbered(first: number, ...events: readonly string[]): string {
  return events
    .map((data, at) => {
      const { type } = JSON.parse(data) as { type: string };
      return `event: ${type}\ndata: ${data.slice(0, -1)},"sequence_number":${first + at}}\n\n`;
    })
    .join('');
}
const begin = (id: string) => `{"type":"response.created","response":{"id":"${id}","output":[]}}`;
const progress = (id: string) => `{"type":"response.in_progress","response":{"id":"${id}","output":[]}}`;
const end = (id: string, output: readonly string[], more = '', type = 'completed') =>
  `{"type":"response.${type}","response":{"id":"${id}","status":"${type}","output":[${output.join(',')}]${more}}}`;
const usage = (input: number, output: number) =>
  `,"usage":{"input_tokens":${input},"output_tokens":${output},"total_tokens":${input + output}}`;
const added = (index: number, item: string) =>
  `{"type":"response.output_item.added","output_index":${index},"item":${item}}`;
const done = (index: number, item: string) =>
  `{"type":"response.output_item.done","output_index":${index},"item":${item}}`;
const delta = (kind: string, index: number, id: string, text: string) =>
  `{"type":"response.${kind}.delta","item_id":"${id}","output_index":${index},"delta":${JSON.stringify(text)}}`;

const thought = (id: string) =>
  `{"id":"${id}","type":"reasoning","summary":[],"encrypted_content":"${id}=="}`;
const message = (id: string, text: string) =>
  `{"id":"${id}","type":"message","role":"assistant","content":[{"type":"output_text","text":${JSON.stringify(text)},"annotations":[]}]}`;
const call = (id: string, name: string, args = '{}') =>
  `{"id":"fc_${id}","type":"function_call","call_id":"${id}","name":"${name}","arguments":${JSON.stringify(args)}}`;
const recall = call('r', 'read_memory', '{"id":"m1"}');
const whole = (index: number, item: string) => [added(index, item), done(index, item)];

describe('a recall in a stream', () => {
  const first = sse(
    begin('resp_1'),
    progress('resp_1'),
    ...whole(0, message('msg_1', 'One moment.')),
    added(1, call('r', 'read_memory', '')),
    delta('function_call_arguments', 1, 'fc_r', '{"id"'),
    delta('function_call_arguments', 1, 'fc_r', ':"m1"}'),
    done(1, recall),
    end('resp_1', [message('msg_1', 'One moment.'), recall], usage(100, 10)),
  );
  const second = sse(
    begin('resp_2'),
    progress('resp_2'),
    ...whole(0, thought('rs_2')),
    added(1, call('k', 'run', '')),
    delta('function_call_arguments', 1, 'fc_k', '{}'),
    done(1, call('k', 'run')),
    end('resp_2', [thought('rs_2'), call('k', 'run')], `,"n":1.0${usage(150, 20)}`),
  );

  it('is cut out, and the rest follows under the first id, with numbers without gaps, to one end with all items', () => {
    const relay = open();
    const one = relayed(relay, first);
    expect(one.out).toBe(
      sse(begin('resp_1'), progress('resp_1'), ...whole(0, message('msg_1', 'One moment.'))),
    );
    const two = relayed(relay, second);
    expect(two.out + tailOf(two.end)).toBe(
      numbered(
        4,
        ...whole(1, thought('rs_2')),
        added(2, call('k', 'run', '')),
        delta('function_call_arguments', 2, 'fc_k', '{}'),
        done(2, call('k', 'run')),
        end(
          'resp_1',
          [message('msg_1', 'One moment.'), thought('rs_2'), call('k', 'run')],
          `,"n":1.0${usage(250, 30)}`,
        ),
      ),
    );
    expect(relay.usage()).toEqual({ input: 250, cacheRead: 0, cacheWrite: 0, output: 30 });
  });

  it('goes back as the same items', () => {
    const { end: ended } = relayed(open(), first);
    const reply = ended.status === 'recall' ? ended.reply : undefined;
    expect(shown(reply!.turn)).toBe(`[${message('msg_1', 'One moment.')},${recall}]`);
    expect([reply!.text, reply!.recalls, reply!.calls, reply!.finish]).toEqual([
      'One moment.',
      [{ id: 'r', name: 'read_memory', argumentsJson: '{"id":"m1"}' }],
      [],
      'completed',
    ]);
  });

  it('renumbers the items after it', () => {
    const mixed = sse(
      begin('resp_1'),
      ...whole(0, recall),
      ...whole(1, call('a', 'run')),
      ...whole(2, call('s', 'read_memory')),
      ...whole(3, call('b', 'read')),
      end('resp_1', [recall, call('a', 'run'), call('s', 'read_memory'), call('b', 'read')]),
    );
    const { out, end: ended } = relayed(open(), mixed);
    expect(out + tailOf(ended)).toBe(
      sse(
        begin('resp_1'),
        ...whole(0, call('a', 'run')),
        ...whole(1, call('b', 'read')),
        end('resp_1', [call('a', 'run'), call('b', 'read')]),
      ),
    );
  });
});

describe('reasoning that leads to a recall', () => {
  const first = sse(
    begin('resp_1'),
    ...whole(0, thought('rs_1')),
    ...whole(1, recall),
    end('resp_1', [thought('rs_1'), recall], usage(1, 1)),
  );

  it('is sent on live, back to the model unchanged, and not in the last event', () => {
    const relay = open();
    const one = relayed(relay, first);
    expect(one.out).toBe(sse(begin('resp_1'), ...whole(0, thought('rs_1'))));
    expect(one.end.status === 'recall' && shown(one.end.reply.turn)).toBe(`[${thought('rs_1')},${recall}]`);
    const second = [begin('resp_2'), ...whole(0, thought('rs_2')), ...whole(1, message('msg_2', 'So.'))];
    const two = relayed(
      relay,
      sse(...second, end('resp_2', [thought('rs_2'), message('msg_2', 'So.')], usage(1, 1))),
    );
    expect(two.out + tailOf(two.end)).toBe(
      numbered(
        3,
        ...whole(1, thought('rs_2')),
        ...whole(2, message('msg_2', 'So.')),
        end('resp_1', [thought('rs_2'), message('msg_2', 'So.')], usage(2, 2)),
      ),
    );
  });

  it('is left out of an end that nothing follows', () => {
    const relay = open();
    relayed(relay, first);
    expect(relay.finish().map(shown).join('')).toBe(numbered(3, end('resp_1', [], usage(1, 1))));
  });
});

describe('a continuation that does not end well', () => {
  const asked = sse(begin('resp_1'), ...whole(0, recall), end('resp_1', [recall], usage(1, 1)));

  it('may be cut off by its limit: the first response is incomplete then', () => {
    const relay = open();
    relayed(relay, asked);
    const limit = `,"incomplete_details":{"reason":"max_output_tokens"}${usage(2, 2)}`;
    const half = message('msg_2', 'So');
    const { out, end: ended } = relayed(
      relay,
      sse(begin('resp_2'), ...whole(0, half), end('resp_2', [half], limit, 'incomplete')),
    );
    expect(out + tailOf(ended)).toBe(
      numbered(
        1,
        ...whole(0, half),
        end('resp_1', [half], limit.replace(usage(2, 2), usage(3, 3)), 'incomplete'),
      ),
    );
  });

  it('may fail: the first response has failed then', () => {
    const relay = open();
    relayed(relay, asked);
    const error = ',"error":{"code":"server_error","message":"Sorry."}';
    const { out, end: ended } = relayed(relay, sse(begin('resp_2'), end('resp_2', [], error, 'failed')));
    expect(out + tailOf(ended)).toBe(numbered(1, end('resp_1', [], `${error}${usage(1, 1)}`, 'failed')));
  });

  it('may break off: nothing is added', () => {
    const relay = open();
    relayed(relay, asked);
    const { out, end: ended } = relayed(relay, sse(begin('resp_2'), added(0, message('msg_2', ''))));
    expect([out, ended]).toEqual([numbered(1, added(0, message('msg_2', ''))), { status: 'done', tail: [] }]);
  });

  it("may not come at all: the client gets an error event in the provider's format", () => {
    const relay = open();
    relayed(relay, asked);
    expect(relay.fail({ status: 502, message: 'No "answer".' }).map(shown).join('')).toBe(
      'event: error\ndata: {"type":"error","code":"server_error","message":"No \\"answer\\".","param":null,"sequence_number":1}\n\n',
    );
  });
});

describe('a recall that is not answered', () => {
  it.each(['incomplete', 'failed', 'cancelled'])('when the response is %s', (type) => {
    const stream = sse(begin('resp_1'), ...whole(0, recall), end('resp_1', [recall], '', type));
    const { out, end: ended } = relayed(open(), stream);
    expect(out + tailOf(ended)).toBe(sse(begin('resp_1'), end('resp_1', [], '', type)));
  });

  it('when the client is to approve something first', () => {
    const approval = '{"id":"mcpr_1","type":"mcp_approval_request","name":"ask","arguments":"{}"}';
    const stream = sse(
      begin('resp_1'),
      ...whole(0, recall),
      ...whole(1, approval),
      end('resp_1', [recall, approval]),
    );
    const { out, end: ended } = relayed(open(), stream);
    expect(out + tailOf(ended)).toBe(sse(begin('resp_1'), ...whole(0, approval), end('resp_1', [approval])));
  });
});

describe('odd streams', () => {
  it('may send every item only in the last event', () => {
    const relay = open();
    const one = relayed(relay, sse(begin('resp_1'), end('resp_1', [message('m', 'a'), recall], usage(1, 1))));
    expect([one.out, one.end.status]).toEqual([sse(begin('resp_1')), 'recall']);
    const two = relayed(relay, sse(begin('resp_2'), end('resp_2', [message('n', 'b')], usage(2, 2))));
    expect(two.out + tailOf(two.end)).toBe(
      numbered(1, end('resp_1', [message('m', 'a'), message('n', 'b')], usage(3, 3))),
    );
    const plain = sse(begin('resp_1'), end('resp_1', [message('m', 'a')]));
    expect(relayed(open(), plain)).toMatchObject({ out: plain, end: { status: 'done', tail: [] } });
  });

  it('may end in the middle of an item, which only the last event closes', () => {
    const half = message('m', 'So').replace('"assistant"', '"assistant","status":"incomplete"');
    const stream = sse(
      begin('resp_1'),
      ...whole(0, recall),
      added(1, message('m', '')),
      end('resp_1', [recall, half], '', 'incomplete'),
    );
    const { out, end: ended } = relayed(open(), stream);
    expect(out + tailOf(ended)).toBe(
      sse(begin('resp_1'), added(0, message('m', '')), end('resp_1', [half], '', 'incomplete')),
    );
  });

  it('may send an item only when it is complete', () => {
    const stream = sse(
      begin('resp_1'),
      done(0, message('m', 'a')),
      done(1, recall),
      end('resp_1', [message('m', 'a'), recall]),
    );
    const { out, end: ended } = relayed(open(), stream);
    expect([out, ended.status]).toEqual([sse(begin('resp_1'), done(0, message('m', 'a'))), 'recall']);
  });

  it('may omit numbers and names, and end with a mark', () => {
    const bare = (data: string) => `data: ${data}\n\n`;
    const stream =
      [begin('resp_1'), ...whole(0, recall), end('resp_1', [recall])].map(bare).join('') + bare('[DONE]');
    const relay = open();
    const one = relayed(relay, stream);
    expect([one.out, one.end.status]).toEqual([bare(begin('resp_1')), 'recall']);
    const next = [begin('resp_2'), ...whole(0, message('m', 'a')), end('resp_2', [message('m', 'a')])];
    const two = relayed(relay, next.map(bare).join('') + bare('[DONE]'));
    expect(two.out + tailOf(two.end)).toBe(
      [...whole(0, message('m', 'a')), end('resp_1', [message('m', 'a')])].map(bare).join('') +
        bare('[DONE]'),
    );
  });

  it('may have unknown events, which are numbered with the others', () => {
    const relay = open();
    relayed(relay, sse(begin('resp_1'), ...whole(0, recall), end('resp_1', [recall])));
    const search = '{"type":"response.web_search_call.searching","item_id":"ws","output_index":4}';
    const other = '{"type":"response.mood","mood":"calm"}';
    expect(takeAll(relay, numbered(7, search, other))).toBe(
      numbered(1, search.replace('"output_index":4', '"output_index":0'), other),
    );
  });

  it('may begin again with a recall, any number of times', () => {
    const relay = open();
    const texts = ['a', 'b', 'c'].map((name, number) => {
      const said = message(`msg_${name}`, name);
      const items = number < 2 ? [said, recall] : [said];
      const events = items.flatMap((item, at) => whole(at, item));
      return relayed(
        relay,
        sse(begin(`resp_${number}`), ...events, end(`resp_${number}`, items, usage(1, 2))),
      );
    });
    expect(texts.map(({ out }) => out).join('') + tailOf(texts[2]!.end)).toBe(
      sse(
        begin('resp_0'),
        ...['a', 'b', 'c'].flatMap((name, at) => whole(at, message(`msg_${name}`, name))),
        end(
          'resp_0',
          ['a', 'b', 'c'].map((name) => message(`msg_${name}`, name)),
          usage(3, 6),
        ),
      ),
    );
  });
});
