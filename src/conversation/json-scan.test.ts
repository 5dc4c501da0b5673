import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonObjectText } from '../../test/support/codec-suite/json-text.ts';
import { parseSpan, ScanError, scanArray, scanObject, skipSpace } from './json-scan.ts';

const encoder = new TextEncoder();

describe('scanning an object', () => {
  it('gives keys decoded, and the spans of members and values, in order and with duplicates', () => {
    const text = '  {"a" : 1 ,\n"\\u0062":["x"] , "a":{"c":null}}';
    const { members, span } = scanObject(encoder.encode(text), 2);
    expect(text.slice(span.start, span.end)).toBe(text.slice(2));
    expect(members.map(({ key, span: at, value }) => [key, cut(text, at), cut(text, value)])).toEqual([
      ['a', '"a" : 1', '1'],
      ['b', '"\\u0062":["x"]', '["x"]'],
      ['a', '"a":{"c":null}', '{"c":null}'],
    ]);
  });

  it('finds the elements of the lists it is asked for in the same pass', () => {
    const text = '{"a":[1, {"b":[2]} ,"]"],"c":[3],"d":"[4]"}';
    const { members } = scanObject(encoder.encode(text), 0, new Set(['a', 'd']));
    expect(members.map(({ elements }) => elements?.map((element) => cut(text, element)))).toEqual([
      ['1', '{"b":[2]}', '"]"'],
      undefined,
      undefined,
    ]);
  });

  it('takes the quote after an even number of backslashes as the end of a string', () => {
    const text = '{"a":"\\\\","b":"\\\\\\"","c":"\\"\\\\\\\\"}';
    const { members } = scanObject(encoder.encode(text), 0);
    expect(members.map(({ value }) => cut(text, value))).toEqual(['"\\\\"', '"\\\\\\""', '"\\"\\\\\\\\"']);
  });

  it.each([
    ['[]', 0],
    ['{"a"}', 0],
    ['{"a":}', 0],
    ['{"a":1,}', 0],
    ['{"a":1 "b":2}', 0],
    ['{,}', 0],
    ['{"a":1', 0],
    ['{"a', 0],
    ['', 0],
    ['{}', 5],
  ])('throws a ScanError for %s from byte %i', (text, start) => {
    expect(() => scanObject(encoder.encode(text), start)).toThrow(ScanError);
  });
});

describe('scanning an array', () => {
  it('gives the spans of its elements', () => {
    const text = '[ 1,"a,b" ,[[],{}] , null ] ';
    const { elements, span } = scanArray(encoder.encode(text), 0);
    expect(elements.map((element) => cut(text, element))).toEqual(['1', '"a,b"', '[[],{}]', 'null']);
    expect(span.end).toBe(text.length - 1);
    expect(scanArray(encoder.encode('[ ]'), 0).elements).toEqual([]);
  });

  it.each(['[1,]', '[,1]', '[1 2]', '[1', '[1}', '{}', '["a]'])('throws a ScanError for %s', (text) => {
    expect(() => scanArray(encoder.encode(text), 0)).toThrow(ScanError);
  });
});

describe('the scan together with the parse of every value', () => {
  it('finds what JSON.parse finds, whatever the spelling', () => {
    fc.assert(
      fc.property(jsonObjectText(), (text) => {
        const found = readWhole(encoder.encode(text));
        expect(JSON.stringify(found)).toBe(JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 500 },
    );
  });

  it('fails exactly when JSON.parse throws, for documents cut off anywhere', () => {
    fc.assert(
      fc.property(jsonObjectText(), fc.nat(), (text, seed) => {
        const bytes = encoder.encode(text);
        sameAsParse(bytes.subarray(0, seed % (bytes.length + 1)));
      }),
      { numRuns: 500 },
    );
  });

  it('fails exactly when JSON.parse throws, for documents with any byte changed', () => {
    const interesting = fc.constantFrom(...encoder.encode('"\\{}[],: \n0a'), 0, 0xff, 0xc3, 0xef);
    const byte = fc.oneof(interesting, fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(jsonObjectText(), fc.nat(), byte, (text, seed, value) => {
        const bytes = encoder.encode(text);
        bytes[seed % bytes.length] = value;
        sameAsParse(bytes);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['a byte order mark', '\ufeff{}'],
    ['bytes after the document', '{} x'],
    ['two documents', '{}{}'],
    ['a comment', '{}//'],
    ['a scalar with a quote in it', '{"a":[x"]"]}'],
    ['a raw control character in a key', '{"a\nb":1}'],
    ['a wrong escape in a key', '{"\\x":1}'],
    ['brackets that do not match', '{"a":[}'],
  ])('refuses %s', (_, text) => {
    sameAsParse(encoder.encode(text));
    expect(() => readWhole(encoder.encode(text))).toThrow(ScanError);
  });

  it('refuses bytes that are not UTF-8, in values and in keys', () => {
    for (const text of ['{"a":"\u00ff"}', '{"\u00ff":"a"}']) {
      const bytes = Uint8Array.from(text, (character) => character.codePointAt(0)!);
      expect(() => readWhole(bytes)).toThrow(ScanError);
      expect(readWhole(encoder.encode(text))).toEqual(JSON.parse(text));
    }
  });
});

describe('hostile documents', () => {
  const million = 1_000_000;

  it.each([
    ['backslashes in an open string', `{"a":"${'\\'.repeat(million)}`],
    ['an odd number of backslashes before the quote', `{"a":"${'\\'.repeat(million + 1)}"}`],
    ['quotes', `{${'"'.repeat(million)}`],
    ['open braces', '{"a":'.repeat(million / 5)],
    ['open brackets', `{"a":${'['.repeat(million)}`],
    ['escaped quotes in an open string', `{"a":"${'\\"'.repeat(million / 2)}`],
    ['commas', `{"a":[${','.repeat(million)}]}`],
  ])('are refused quickly: a megabyte of %s', (_, text) => {
    expect(() => readWhole(encoder.encode(text))).toThrow(ScanError);
  });

  it.each([
    ['escaped backslashes', `{"a":"${'\\\\'.repeat(million / 2)}"}`],
    ['escaped quotes', `{"a":"${'\\"'.repeat(million / 2)}"}`],
    ['empty strings', `{"a":[${'"",'.repeat(million / 3)}""]}`],
    ['white space', `{"a":${' '.repeat(million)}1}`],
    ['digits', `{"a":${'1'.repeat(million)}}`],
    ['one key', `{"${'k'.repeat(million)}":1}`],
    ['keys', `{${'"k":1,'.repeat(million / 6)}"k":1}`],
  ])('are read quickly: a megabyte of %s', (_, text) => {
    expect(JSON.stringify(readWhole(encoder.encode(text)))).toBe(JSON.stringify(JSON.parse(text)));
  });

  it('are scanned without recursion: 10,000 levels', () => {
    const deep = `${'[{"a":'.repeat(10_000)}1${'}]'.repeat(10_000)}`;
    const bytes = encoder.encode(`{"deep":${deep},"after":2}`);
    const { members } = scanObject(bytes, 0);
    expect(members.map(({ key, value }) => [key, value.end - value.start])).toEqual([
      ['deep', deep.length],
      ['after', 1],
    ]);
    expect(Array.isArray(parseSpan(bytes, members[0]!.value))).toBe(true);
  });
});

/** Reads a document as a codec does: every value that the scan found is parsed. */
function readWhole(bytes: Uint8Array): unknown {
  const { members, span } = scanObject(bytes, skipSpace(bytes, 0), new Set(['list', 'a']));
  if (skipSpace(bytes, span.end) !== bytes.length) throw new ScanError('more bytes after the object');
  return Object.fromEntries(
    members.map(({ key, value, elements }) => [
      key,
      elements ? elements.map((element) => parseSpan(bytes, element)) : parseSpan(bytes, value),
    ]),
  );
}

function sameAsParse(bytes: Uint8Array): void {
  const parsed = attempt(() => {
    const value: unknown = JSON.parse(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
    );
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  });
  const read = attempt(() => readWhole(bytes));
  if (read.error !== undefined) expect(read.error).toBeInstanceOf(ScanError);
  expect(JSON.stringify(read.value)).toBe(JSON.stringify(parsed.value));
}

function attempt(run: () => unknown): { readonly value?: unknown; readonly error?: unknown } {
  try {
    return { value: run() };
  } catch (error) {
    return { error };
  }
}

function cut(text: string, span: { readonly start: number; readonly end: number }): string {
  return text.slice(span.start, span.end);
}
