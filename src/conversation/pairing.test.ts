import { describe, expect, it } from 'vitest';
import type { Conversation, Message, Part, Role } from './conversation.ts';
import { pairCalls, placeKey } from './turns.ts';

describe('pairing calls with results', () => {
  it('answers each call by the result of its id, over several messages and in any order', () => {
    const { pairs, orphans } = pairCalls(
      conversation(
        ['user', text()],
        ['assistant', text(), call('a'), call('b')],
        ['tool', result('b')],
        ['tool', result('a')],
      ),
    );
    expect(pairs).toEqual([
      { name: 'run', call: { message: 1, part: 1 }, result: { message: 3, part: 0 } },
      { name: 'run', call: { message: 1, part: 2 }, result: { message: 2, part: 0 } },
    ]);
    expect(orphans).toEqual([]);
  });

  it('pairs an id that repeats later with the nearest earlier call', () => {
    const { pairs } = pairCalls(
      conversation(
        ['assistant', call('a')],
        ['tool', result('a')],
        ['assistant', call('a')],
        ['tool', result('a')],
      ),
    );
    expect(pairs.map((pair) => [pair.call.message, pair.result?.message])).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  it('pairs calls that share an id within a message one by one, in their order', () => {
    const { pairs, orphans } = pairCalls(
      conversation(['assistant', call('a'), call('a'), call('a')], ['user', result('a'), result('a')]),
    );
    expect(pairs.map((pair) => pair.result)).toEqual([
      { message: 1, part: 0 },
      { message: 1, part: 1 },
      undefined,
    ]);
    expect(orphans).toEqual([]);
  });

  it('finds results that answer nothing: no call, answered before, or before another assistant turn', () => {
    const { pairs, orphans } = pairCalls(
      conversation(
        ['tool', result('a')],
        ['assistant', call('a')],
        ['user', result('a'), result('a'), result('b')],
        ['assistant', call('b')],
        ['user', text()],
        ['assistant', text()],
        ['tool', result('b')],
      ),
    );
    expect(orphans).toEqual([
      { message: 0, part: 0 },
      { message: 2, part: 1 },
      { message: 2, part: 2 },
      { message: 6, part: 0 },
    ]);
    expect(pairs.map((pair) => pair.result)).toEqual([{ message: 2, part: 0 }, undefined]);
  });

  it('counts assistant messages in a row as one turn', () => {
    const { pairs } = pairCalls(
      conversation(
        ['assistant', call('a')],
        ['system', text()],
        ['assistant', call('b')],
        ['user', result('a'), result('b')],
      ),
    );
    expect(pairs.map((pair) => pair.result)).toEqual([
      { message: 3, part: 0 },
      { message: 3, part: 1 },
    ]);
  });

  it('handles ids that are special in JavaScript', () => {
    const { pairs } = pairCalls(
      conversation(
        ['assistant', call('__proto__'), call('')],
        ['tool', result('')],
        ['tool', result('__proto__')],
      ),
    );
    expect(pairs.map((pair) => pair.result?.message)).toEqual([2, 1]);
  });

  it('spells places as keys', () => {
    expect(placeKey({ message: 12, part: 3 })).toBe('12.3');
  });
});

const span = { start: 0, end: 0 };

function text(): Part {
  return { type: 'text', span, texts: [span] };
}

function call(id: string): Part {
  return { type: 'tool-call', span, id, name: 'run', input: span };
}

function result(callId: string): Part {
  return { type: 'tool-result', span, callId, texts: [], media: [], isError: undefined };
}

function conversation(...said: readonly (readonly [Role, ...Part[]])[]): Conversation {
  const messages = said.map(
    ([role, ...parts], index): Message => ({ index, role, parts, span, digest: '', canonical: '' }),
  );
  const body = new Uint8Array();
  return {
    body,
    model: undefined,
    streaming: false,
    replies: 1,
    maxOutputTokens: undefined,
    toolNames: [],
    preamble: [],
    messages,
  };
}
