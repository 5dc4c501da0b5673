import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentSpan } from './read-original.ts';
import { compactJson } from './json-path.ts';
import { selectPath } from './json-path.ts';

const json = `{
  "id": 2512292042121000001,
  "ratio": 1.0,
  "a": { "b": [ {"c": "x"}, {"c": 0.1000000000000000055, "c": 1e400} ] },
  "x y": [ [1, 2], [], {"k\\u0065y": null} ],
  "log": "one\\ntwo",
  "say": "\\"hi\\" \\u00e9"
}`;

describe('a path', () => {
  it.each([
    ['$.id', '2512292042121000001'],
    ['ratio', '1.0'],
    ['$.a.b[0].c', '"x"'],
    ['a.b[1].c', '1e400'],
    ['$["a"][\'b\'][-1]', '{"c":0.1000000000000000055,"c":1e400}'],
    ['$.a.b.0', '{"c":"x"}'],
    ['[a][b][*].c', '"x"\n1e400'],
    ["$['x y'][*]", '[1,2]\n[]\n{"k\\u0065y":null}'],
    ['$["x y"][0:1]', '[1,2]'],
    ['$["x y"][-2:]', '[]\n{"k\\u0065y":null}'],
    [' $.x y[2].key ', 'null'],
    ['$.a.*', '[{"c":"x"},{"c":0.1000000000000000055,"c":1e400}]'],
    ['$.log', 'one\ntwo'],
    ['$.say', '"\\"hi\\" \\u00e9"'],
  ])('%s gives the value in the spelling of the original', (path, text) => {
    expect(selectPath(json, path)).toEqual({ status: 'found', text });
  });

  it('lays a long value out with a line for each child', () => {
    const items = [{ id: 1, text: 'x'.repeat(600) }, { id: 2, text: 'y, [z]'.repeat(100) }, [3]];
    const [first, second, third] = items.map((item) => JSON.stringify(item));
    expect(selectPath(JSON.stringify(items, null, 2), '$')).toEqual({
      status: 'found',
      text: `[\n${first},\n${second},\n${third}\n]`,
    });
  });

  it.each([
    ['$.a.z', 'Nothing at $.a.z: $.a is an object with the names "b".'],
    ['$.nope.z', 'Nothing at $.nope: $ is an object with the names "id", "ratio", "a", "x y", "log", "say".'],
    ['$.a.b[2]', 'Nothing at $.a.b[2]: $.a.b is an array with indices 0 to 1.'],
    ['$["x y"][1][0]', 'Nothing at $["x y"][1][0]: $["x y"][1] is an empty array.'],
    [
      '$.a.b[*].z',
      'Nothing at $.a.b[*].z: the first of 2 values at $.a.b[*] is an object with the names "c".',
    ],
    ['$.log.x', 'Nothing at $.log.x: $.log is a string.'],
    ['$.id.x', 'Nothing at $.id.x: $.id is 2512292042121000001.'],
    [
      '$..c',
      'Path not understood (".." is not supported): use names, indices, slices and wildcards, such as $.items[0].name, $.items[*].id or $["a key"].',
    ],
    [
      '$.a.b[?(@.c==1)]',
      'Path not understood ("[?(@.c==1)]" is not supported): use names, indices, slices and wildcards, such as $.items[0].name, $.items[*].id or $["a key"].',
    ],
    [
      'a'.repeat(1001),
      'Path not understood (the path is too long): use names, indices, slices and wildcards, such as $.items[0].name, $.items[*].id or $["a key"].',
    ],
  ])('%s says what is there instead', (path, why) => {
    expect(selectPath(json, path)).toEqual({ status: 'missed', why });
  });

  it('into a text that is no JSON says so', () => {
    expect(selectPath('INFO {"a":1}', '$.a')).toEqual({
      status: 'missed',
      why: 'This memory is not JSON: use lines or query, not path.',
    });
  });

  it('may be deep, and long lists are read in slices', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(selectPath(deep, `$${'[0]'.repeat(50)}[7]`).status).toBe('missed');
    expect(selectPath(`[${'0,'.repeat(200_000)}1]`, '$[*]')).toEqual({
      status: 'missed',
      why: 'More than 100000 matches at $[*]: use a slice such as [0:1000].',
    });
    expect(selectPath(`[${'0,'.repeat(200_000)}1]`, '$[199999:]')).toEqual({ status: 'found', text: '0\n1' });
  });
});

describe('walking JSON as text', () => {
  it('compacts like JSON.stringify', () => {
    const property = fc.property(fc.jsonValue(), fc.nat(4), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(compactJson(text, documentSpan(text))).toBe(JSON.stringify(value));
      const laidOut = compactJson(text, documentSpan(text), 'line-per-child');
      expect(JSON.stringify(JSON.parse(laidOut))).toBe(JSON.stringify(value));
    });
    fc.assert(property);
  });

  it('gives each member and element that JSON.parse gives', () => {
    const child = fc.jsonValue({ maxDepth: 2 });
    const property = fc.property(fc.dictionary(fc.string(), child), fc.array(child), (object, list) => {
      for (const [key, value] of Object.entries(object)) {
        const found = selectPath(JSON.stringify({ object }, null, 1), `$.object[${JSON.stringify(key)}]`);
        expect(found.status === 'found' && asValue(found.text)).toEqual(asValue(JSON.stringify(value)));
      }
      for (const [index, value] of list.entries()) {
        const found = selectPath(JSON.stringify(list, null, 1), `[${index}]`);
        expect(found.status === 'found' && asValue(found.text)).toEqual(asValue(JSON.stringify(value)));
      }
    });
    fc.assert(property);
  });

  it('never throws, whatever the path', () => {
    const sign = fc.constantFrom(
      '$',
      '.',
      '[',
      ']',
      '"',
      "'",
      '*',
      ':',
      '-',
      '0',
      'a',
      ' ',
      '\\',
      '?',
      '(',
      '/',
      '😀',
    );
    fc.assert(fc.property(fc.string({ unit: sign }), (path) => void selectPath(json, path)));
  });
});

/** Strings of several lines come as plain text. */
function asValue(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' && value.includes('\n') ? { text: value } : value;
  } catch {
    return { text };
  }
}
