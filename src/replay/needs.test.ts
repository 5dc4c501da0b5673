import { describe, expect, it } from 'vitest';
import { argumentLeaves, candidatesOf, holds, placeOf, type Value } from './needs.ts';

/** Writes candidates as `whole`, or `whole > values inside`. */
function told(input: unknown): readonly string[] {
  return candidatesOf(JSON.stringify(input)).map(({ value, within }) =>
    within.length === 0 ? value.text : `${value.text} > ${within.map(({ text }) => text).join(' | ')}`,
  );
}

const word = (text: string): Value => ({ kind: 'word', text });
const line = (text: string): Value => ({ kind: 'line', text });

describe('candidatesOf', () => {
  it.each<[string, unknown, readonly string[]]>([
    [
      'identifiers',
      { user: 'mia_li_3668', item: 'HAT001', tool: 'readFile' },
      ['mia_li_3668', 'HAT001', 'readFile'],
    ],
    ['numbers and dates', { zip: 94110, day: '2024-05-20', sum: 12.75 }, ['94110', '2024-05-20', '12.75']],
    ['paths, without what leads to them', { path: '/src/a.ts', other: './cmd/x' }, ['/src/a.ts', 'cmd/x']],
    [
      'no plain words, small numbers and flags',
      { mode: 'content', limit: 20, flag: '-n', on: true, no: null },
      [],
    ],
    ['no patterns, nor pieces of them', { pattern: '**/clean*.go', regex: 'open|close' }, []],
    [
      'a value of several words as a whole, and the words in it',
      { command: 'cd /src/cmd && go test ./cli -run TestOpen_2' },
      ['cd /src/cmd && go test ./cli -run TestOpen_2 > /src/cmd | TestOpen_2'],
    ],
    ['what people are called', { entity: 'Alice David' }, ['Alice David']],
    [
      'of a URL all of it, of a place in a file its path',
      { url: 'https://a.example/b', at: 'src/run.ts:12' },
      ['https://a.example/b', 'src/run.ts'],
    ],
    [
      'of written text its long lines alone, without white space around them',
      { new_string: 'if err != nil {\n    return openRepository(path)\n}\n' },
      ['return openRepository(path)'],
    ],
    [
      'values within lists and objects, each once',
      { items: [{ id: 'order_1' }, { id: 'order_1' }] },
      ['order_1'],
    ],
  ])('knows %s', (_, input, expected) => {
    expect(told(input)).toEqual(expected);
  });

  it('finds nothing in arguments that are not JSON', () => {
    expect(candidatesOf('{"a":')).toEqual([]);
  });
});

describe('holds', () => {
  it('finds words as whole words, and lines anywhere', () => {
    expect(holds('open order_1, order_12', word('order_12'))).toBe(true);
    expect(holds('open order_12', word('order_1'))).toBe(false);
    expect(holds('  12\treturn open(path) // x', line('return open(path)'))).toBe(true);
  });

  it('finds values that JSON escapes, once or twice', () => {
    const text = 'say "hello" to /usr/lib';
    const call = JSON.stringify({ a: `first\n${text}` });
    expect(holds(call, line('say "hello"'))).toBe(true);
    expect(holds(JSON.stringify({ call }), line('say "hello"'))).toBe(true);
    expect(holds(JSON.stringify('a\n/usr/lib'), word('/usr/lib'))).toBe(true);
    expect(holds(text, line('say "hullo"'))).toBe(false);
  });
});

describe('placeOf', () => {
  it('searches from an offset on', () => {
    expect(placeOf('id_1 id_12 id_1', word('id_1'), 1)).toBe(11);
    expect(placeOf('id_1 id_12', word('id_1'), 1)).toBe(-1);
  });
});

describe('argumentLeaves', () => {
  it('returns values without keys, and text that is not JSON unchanged', () => {
    expect(argumentLeaves('{"path":"/a","n":[1,{"deep":"b"}],"on":true}')).toEqual(['/a', '1', 'b']);
    expect(argumentLeaves('ls -l')).toEqual(['ls -l']);
  });
});
