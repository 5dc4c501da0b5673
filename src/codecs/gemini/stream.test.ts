import { describe, expect, it } from 'vitest';
import { relayed, tailOf, takeAll } from '../../../test/support/codec-suite/relay.ts';
import { sseText } from '../../../test/support/codec-suite/sse.ts';
import { shown } from '../../../test/support/codec-suite/views.ts';
import { gemini } from './index.ts';

const open = () => gemini.openStream({ privateTools: new Set(['read_memory']) });
const recall = '{"functionCall":{"name":"read_memory","args":{"id":"m1"}},"thoughtSignature":"s"}';

function chunk(parts: string, more = '', usage = '', id = 'r0'): string {
  return sseText(
    `{"candidates":[{"content":{"parts":[${parts}],"role":"model"},"index":0${more}}]${usage === '' ? '' : `,"usageMetadata":{${usage}}`},"responseId":"${id}"}`,
  );
}
const stop = ',"finishReason":"STOP"';

describe('a stream with a recall in the middle', () => {
  it('is one reply to the client: the same id, one end, the usage of all', () => {
    const relay = open();
    const before = chunk('{"text":"Let me look."}', '', '"promptTokenCount":100,"candidatesTokenCount":2');
    const asks = chunk(recall, stop, '"promptTokenCount":100,"candidatesTokenCount":9');
    const first = relayed(relay, before + asks);
    expect(first.out).toBe(before);
    expect(first.end).toMatchObject({ status: 'recall', reply: { text: 'Let me look.', finish: 'STOP' } });
    if (first.end.status === 'recall')
      expect(shown(first.end.reply.turn)).toBe(
        `{"role":"model","parts":[{"text":"Let me look."},${recall}]}`,
      );

    const usage = (count: number) => `"promptTokenCount":200,"candidatesTokenCount":${count}`;
    const second = relayed(
      relay,
      chunk('{"text":"It "}', '', usage(1), 'r1') + chunk('{"text":"rains."}', stop, usage(4), 'r1'),
    );
    const total = (count: number) => `"promptTokenCount":300,"candidatesTokenCount":${count}`;
    expect(second.out).toBe(
      chunk('{"text":"It "}', '', total(10)) + chunk('{"text":"rains."}', '', total(13)),
    );
    expect(tailOf(second.end)).toBe(chunk('{"text":""}', stop, total(13)));
    expect(relay.usage()).toEqual({ input: 300, cacheRead: 0, cacheWrite: 0, output: 13 });
  });

  it('loses only the private part of a chunk', () => {
    const relay = open();
    const mixed = chunk(`{"text":"a","x":1.0},${recall},{"functionCall":{"name":"f","args":{"n":1.50}}}`);
    expect(takeAll(relay, mixed)).toBe(
      chunk('{"text":"a","x":1.0},{"functionCall":{"name":"f","args":{"n":1.50}},"thoughtSignature":"s"}'),
    );
    const last = relayed(relay, chunk('{"text":""}', stop));
    expect(last.out + tailOf(last.end)).toBe(chunk('{"text":""}') + chunk('{"text":""}', stop));
  });

  it('is not continued when the reply was cut off or refused', () => {
    for (const reason of ['MAX_TOKENS', 'SAFETY', 'MALFORMED_FUNCTION_CALL']) {
      const { out, end } = relayed(open(), chunk(recall, `,"finishReason":"${reason}"`));
      expect(out + tailOf(end)).toBe(chunk('{"text":""}', `,"finishReason":"${reason}"`));
    }
    expect(relayed(open(), chunk(recall))).toEqual({ out: '', end: { status: 'done', tail: [] } });
  });
});

describe('a rebuilt turn', () => {
  it('has text in one piece, and every other part unchanged', () => {
    const relay = open();
    const { end } = relayed(
      relay,
      chunk('{"text":"I ","thought":true}') +
        chunk('{"text":"see.","thought":true}') +
        chunk('{"text":"A"}') +
        chunk('{"text":"","thoughtSignature":"t"}') +
        chunk('{"executableCode":{"code":"1","n":1.0}}') +
        chunk('{"text":"\\ud83d"}') +
        chunk('{"text":"\\ude00"},{"text":""}') +
        chunk(recall, stop),
    );
    expect(end.status === 'recall' && shown(end.reply.turn)).toBe(
      `{"role":"model","parts":[{"text":"I see.","thought":true},{"text":"A"},{"text":"","thoughtSignature":"t"},{"executableCode":{"code":"1","n":1.0}},{"text":"😀"},${recall}]}`,
    );
  });
});

describe('chunks without candidates', () => {
  const blocked = sseText(
    '{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5},"responseId":"r1"}',
  );

  it('pass through unchanged', () => {
    expect(relayed(open(), blocked)).toMatchObject({ out: blocked, end: { status: 'done', tail: [] } });
  });

  it('end a continuation under the id of the first response', () => {
    const relay = open();
    relayed(relay, chunk(recall, stop, '"promptTokenCount":7'));
    const { out, end } = relayed(relay, blocked);
    expect(out + tailOf(end)).toBe(blocked.replace(':5', ':12').replace('r1', 'r0'));
  });
});

describe('a failed continuation', () => {
  it('ends in the error of the provider', () => {
    const relay = open();
    relayed(relay, chunk(recall, stop));
    expect(relay.fail({ status: 502, message: 'Gone.' }).map(shown)).toEqual([
      'data: {"error":{"code":502,"message":"Gone.","status":"UNAVAILABLE"}}\n\n',
    ]);
  });
});
