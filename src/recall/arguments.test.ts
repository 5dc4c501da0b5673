import { describe, expect, it } from 'vitest';
import { parseArguments } from './resolve.ts';

const bare = { of: 'one', query: undefined, lines: undefined, path: undefined };

describe('arguments of the recall tool', () => {
  it('are read as they should be sent', () => {
    const sent = { id: 'm1', query: 'two words', lines: '10-40', path: '$.a' };
    expect(parseArguments(JSON.stringify(sent))).toEqual({ status: 'ok', value: { of: 'one', ...sent } });
  });

  it.each([
    '{"id":" m1 "}',
    '{"id":"`m1`"}',
    '{"id":"\\"m1\\""}',
    '{"id":"[m1]."}',
    '{"id":"id=m1"}',
    '{"id":"<id: m1>"}',
    '{"id":["m1"],"query":null,"lines":"  ","path":[],"reason":"curious"}',
    '"{\\"id\\":\\"m1\\"}"',
    '["m1"]',
    '"m1"',
    'm1',
  ])('name the id of %s', (argumentsJson) => {
    expect(parseArguments(argumentsJson)).toEqual({ status: 'ok', value: { id: 'm1', ...bare } });
  });

  it('may be numbers and lists', () => {
    expect(parseArguments('{"id":17,"query":404,"lines":[10,"40"]}')).toEqual({
      status: 'ok',
      value: { of: 'one', id: '17', query: '404', lines: '10,40', path: undefined },
    });
  });

  it.each([
    '{"id":"mem_a, mem_b"}',
    '{"ids":["mem_a","mem_b"]}',
    '{"context_id":"mem_a or mem_b"}',
    'mem_a mem_b',
  ])('may name several ids: %s', (argumentsJson) => {
    expect(parseArguments(argumentsJson)).toEqual({
      status: 'ok',
      value: { of: 'several', ids: ['mem_a', 'mem_b'], query: undefined, lines: undefined, path: undefined },
    });
  });

  it('take the path of a file beside a query for more words', () => {
    expect(parseArguments('{"context_id":"m1","query":"a","path":"src/b.ts"}')).toEqual({
      status: 'ok',
      value: { of: 'one', id: 'm1', query: 'a src/b.ts', lines: undefined, path: undefined },
    });
  });

  it.each([
    '{"query":"a b"}',
    '{"id":"","query":"a b"}',
    '{"id":null,"query":["a b"],"lines":""}',
    '{"query":"a b","lines":"1"}',
    '{"query":"a b","path":"$.a"}',
    '{"query":"a","path":"b"}',
    '{"path":"a b"}',
  ])('search everything when they name no id: %s', (argumentsJson) => {
    expect(parseArguments(argumentsJson)).toEqual({ status: 'ok', value: { of: 'all', query: 'a b' } });
  });

  it.each([
    '',
    '{}',
    '{"path":"$.a"}',
    '{"id":""}',
    '{"id":"``"}',
    '{"id":"m1","lines":"1',
    'null',
    '[]',
    '{"ID":"m1"}',
  ])('that name no id are answered with the correct form: %s', (argumentsJson) => {
    expect(parseArguments(argumentsJson)).toEqual({
      status: 'bad',
      why:
        'No id was given. Send a JSON object with the id of a stub, such as {"id":"ID"}, and if only a part is wanted ' +
        '"query":"words", "lines":"10-40" or "path":"$.items[0]".',
    });
  });
});
