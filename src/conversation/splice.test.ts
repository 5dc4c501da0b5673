import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonValueText } from '../../test/support/codec-suite/json-text.ts';
import type { Span } from './conversation.ts';
import {
  applySplices,
  concatBytes,
  jsonBytes,
  listSplices,
  literalBytes,
  literalContent,
  scanArray,
  scanObject,
} from './json-scan.ts';
import { piecesOfText } from './messages.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

describe('applying splices', () => {
  it('gives the same array back when there are none', () => {
    const body = encoder.encode('abc');
    expect(applySplices(body, [])).toBe(body);
  });

  it('replaces spans by bytes, in any order; empty spans insert', () => {
    const splices = [
      { span: { start: 4, end: 6 }, bytes: encoder.encode('-EF-') },
      { span: { start: 0, end: 1 }, bytes: encoder.encode('') },
      { span: { start: 3, end: 3 }, bytes: encoder.encode('1') },
      { span: { start: 3, end: 3 }, bytes: encoder.encode('2') },
      { span: { start: 6, end: 6 }, bytes: encoder.encode('!') },
    ];
    expect(decoder.decode(applySplices(encoder.encode('abcdef'), splices))).toBe('bc12d-EF-!');
  });

  it('inserts ahead of a replacement at the same place', () => {
    const splices = [
      { span: { start: 1, end: 2 }, bytes: encoder.encode('B') },
      { span: { start: 1, end: 1 }, bytes: encoder.encode('+') },
    ];
    expect(decoder.decode(applySplices(encoder.encode('abc'), splices))).toBe('a+Bc');
  });

  it('throws for overlapping spans', () => {
    const splices = [
      { span: { start: 0, end: 2 }, bytes: encoder.encode('x') },
      { span: { start: 1, end: 3 }, bytes: encoder.encode('y') },
    ];
    expect(() => applySplices(encoder.encode('abc'), splices)).toThrow(RangeError);
  });

  it('leaves the input and the pieces unchanged', () => {
    const body = encoder.encode('abc');
    const bytes = encoder.encode('x');
    applySplices(body, [{ span: { start: 0, end: 1 }, bytes }]).fill(0);
    expect([decoder.decode(body), decoder.decode(bytes)]).toEqual(['abc', 'x']);
  });
});

/** A list as text with white space everywhere, what to drop, and what to insert where. */
const listCase = fc
  .array(fc.record({ text: jsonValueText(), lead: space(), trail: space(), dropped: fc.boolean() }), {
    maxLength: 8,
  })
  .chain((items) =>
    fc.record({
      items: fc.constant(items),
      inner: space(),
      insertions: fc.array(fc.record({ before: fc.nat(items.length), text: jsonValueText() }), {
        maxLength: 4,
      }),
    }),
  );

describe('dropping and inserting elements of a list', () => {
  it('gives the same list as a plain array of the elements', () => {
    fc.assert(
      fc.property(listCase, ({ items, inner, insertions }) => {
        const text = listText(items, inner);
        const bytes = encoder.encode(text);
        const { elements, span } = scanArray(bytes, 0);
        const inserted = insertions.map(({ before, text: item }) => ({
          before,
          bytes: encoder.encode(item),
        }));
        const splices = listSplices(elements, span.end - 1, (index) => items[index]!.dropped, inserted);
        const result = applySplices(bytes, splices);

        expect(texts(result)).toEqual(model(items, insertions));
        expect(() => JSON.parse(decoder.decode(result))).not.toThrow();
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps the bytes around and between elements that stay', () => {
    expect(drop('[ 1 , 2 ,\n3\t]', [1])).toBe('[ 1 ,\n3\t]');
    expect(drop('[ 1 , 2 ,\n3\t]', [0])).toBe('[ 2 ,\n3\t]');
    expect(drop('[ 1 , 2 ,\n3\t]', [2])).toBe('[ 1 , 2\t]');
    expect(drop('[ 1 , 2 ,\n3\t]', [0, 1])).toBe('[ 3\t]');
    expect(drop('[ 1 , 2 ,\n3\t]', [0, 1, 2])).toBe('[ \t]');
    expect(drop('[ 1 , 2 ,\n3\t]', [])).toBe('[ 1 , 2 ,\n3\t]');
  });

  it('inserts ahead of the first, between, after the last, and into an empty list', () => {
    expect(insert('[ 1 , 2 ]', [[0, 'a']])).toBe('[ a,1 , 2 ]');
    expect(insert('[ 1 , 2 ]', [[1, 'a']])).toBe('[ 1,a , 2 ]');
    expect(insert('[ 1 , 2 ]', [[2, 'a']])).toBe('[ 1 , 2,a ]');
    expect(
      insert('[ ]', [
        [0, 'a'],
        [0, 'b'],
      ]),
    ).toBe('[ a,b]');
  });

  it('drops and inserts members of an object as well', () => {
    const bytes = encoder.encode('{ "a" : 1 , "b":2, "c":3}');
    const { members, span } = scanObject(bytes, 0);
    const spans = members.map((member) => member.span);
    const added = [{ before: 3, bytes: encoder.encode('"d":4') }];
    const splices = listSplices(spans, span.end - 1, (index) => index < 2, added);
    expect(decoder.decode(applySplices(bytes, splices))).toBe('{ "c":3,"d":4}');
  });
});

describe('writing literals', () => {
  it('gives bytes that decode to the same text, lone surrogates as escapes', () => {
    expect(decoder.decode(literalBytes('a"\\\n\u{1f600}\ud800'))).toBe('"a\\"\\\\\\n\u{1f600}\\ud800"');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(JSON.parse(decoder.decode(literalBytes(text)))).toBe(text);
      }),
    );
  });

  it('gives the same bytes for a text piece by piece, and never cuts a character', () => {
    expect(piecesOfText('ab\u{1f600}c', 3)).toEqual(['ab\u{1f600}', 'c']);
    const text = fc.string({ unit: fc.constantFrom('a', '"', '\ud83d', '\ude00', '\u{1f600}') });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 5 }), (whole, units) => {
        const pieces = piecesOfText(whole, units).map((piece) => decoder.decode(literalContent(piece)));
        expect(`"${pieces.join('')}"`).toBe(decoder.decode(literalBytes(whole)));
      }),
    );
  });

  it('writes values compactly', () => {
    expect(decoder.decode(jsonBytes({ a: [1, null], b: 'é' }))).toBe('{"a":[1,null],"b":"é"}');
  });

  it('joins pieces in order', () => {
    expect(decoder.decode(concatBytes([encoder.encode('a'), encoder.encode(''), encoder.encode('bc')]))).toBe(
      'abc',
    );
  });
});

type Item = {
  readonly text: string;
  readonly lead: string;
  readonly trail: string;
  readonly dropped: boolean;
};

function space(): fc.Arbitrary<string> {
  return fc.constantFrom('', ' ', '\n\t', '\r\n  ');
}

function listText(items: readonly Item[], inner: string): string {
  return `[${items.length === 0 ? inner : items.map(({ lead, text, trail }) => lead + text + trail).join(',')}]`;
}

/** Insertions at one place keep their order; those in front of dropped elements come in the order of their places. */
function model(
  items: readonly Item[],
  insertions: readonly { readonly before: number; readonly text: string }[],
): readonly string[] {
  const at = (place: number) => insertions.filter(({ before }) => before === place).map(({ text }) => text);
  return [
    ...items.flatMap((item, index) => [...at(index), ...(item.dropped ? [] : [item.text])]),
    ...at(items.length),
  ];
}

function texts(list: Uint8Array): readonly string[] {
  return scanArray(list, 0).elements.map(({ start, end }: Span) => decoder.decode(list.subarray(start, end)));
}

function drop(text: string, indices: readonly number[]): string {
  const bytes = encoder.encode(text);
  const { elements, span } = scanArray(bytes, 0);
  return decoder.decode(
    applySplices(
      bytes,
      listSplices(elements, span.end - 1, (index) => indices.includes(index)),
    ),
  );
}

function insert(text: string, added: readonly (readonly [number, string])[]): string {
  const bytes = encoder.encode(text);
  const { elements, span } = scanArray(bytes, 0);
  const insertions = added.map(([before, item]) => ({ before, bytes: encoder.encode(item) }));
  return decoder.decode(
    applySplices(
      bytes,
      listSplices(elements, span.end - 1, () => false, insertions),
    ),
  );
}
