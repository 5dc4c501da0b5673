import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { END, type Splitter } from './bpe.ts';
import { splitCl100k, splitO200k } from './load-counter.ts';

// The official patterns, in JavaScript's words: its \s and /i differ from the tokenizers' engine in a few characters.
const short = "'(?:[sSſ]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";
const space = '\\p{White_Space}';
const upperish = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
const lowerish = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
const blanks = `${space}*[\\r\\n]+|${space}+(?!\\P{White_Space})|${space}+`;
const o200k = new RegExp(
  `[^\\r\\n\\p{L}\\p{N}]?${upperish}*${lowerish}+(?:${short})?|[^\\r\\n\\p{L}\\p{N}]?${upperish}+${lowerish}*(?:${short})?|\\p{N}{1,3}| ?[^\\p{White_Space}\\p{L}\\p{N}]+[\\r\\n/]*|${blanks}`,
  'gu',
);
const cl100k = new RegExp(
  `${short}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\p{White_Space}\\p{L}\\p{N}]+[\\r\\n]*|${blanks}`,
  'gu',
);

function piecesOf(split: Splitter, text: string): readonly string[] {
  const encoded = new TextEncoder().encode(text);
  const bytes = Uint8Array.of(...encoded, END);
  const pieces: string[] = [];
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (let start = 0; start < encoded.length; ) {
    const end = split(bytes, start);
    pieces.push(decoder.decode(bytes.subarray(start, end)));
    start = end;
  }
  return pieces;
}

describe('splitO200k', () => {
  it('cuts prose, code and numbers like the pattern', () => {
    expect(piecesOf(splitO200k, "It's HTTPServer2000, don't\n\n  return x;  ")).toEqual([
      "It's",
      ' HTTPServer',
      '200',
      '0',
      ',',
      " don't",
      '\n\n',
      ' ',
      ' return',
      ' x',
      ';',
      '  ',
    ]);
  });

  it('keeps slashes and line ends with the punctuation before them', () => {
    expect(piecesOf(splitO200k, 'a);\r\n/// b')).toEqual(['a', ');\r\n///', ' b']);
  });

  it('gives capitals back when no lower-case letter follows', () => {
    expect(piecesOf(splitO200k, '中ABC!\u0301XY')).toEqual(['中', 'ABC', '!\u0301', 'XY']);
  });
});

describe('splitCl100k', () => {
  it('cuts off contractions in any case', () => {
    expect(piecesOf(splitCl100k, "It'LL be HTTPServer 12345")).toEqual([
      'It',
      "'LL",
      ' be',
      ' HTTPServer',
      ' ',
      '123',
      '45',
    ]);
  });
});

describe.each([
  ['o200k_base', splitO200k, o200k],
  ['cl100k_base', splitCl100k, cl100k],
] as const)('the pieces of %s', (_, split, pattern) => {
  const units = Array.from("'sSſlLreVaÉǅʰ中\u0301\u09031½ \t\n\r\u00a0\u0085\ufeff\u2028/!-_😀\u200d");
  const awkward = fc.string({ unit: fc.constantFrom(...units), maxLength: 12 });

  it('are those of the official pattern for awkward texts', () => {
    fc.assert(
      fc.property(awkward, (text) => {
        expect(piecesOf(split, text)).toEqual(text.match(pattern) ?? []);
      }),
      { numRuns: 5_000 },
    );
  });

  it('are those of the official pattern for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(piecesOf(split, text)).toEqual(text.match(pattern) ?? []);
      }),
      { numRuns: 1_000 },
    );
  });
});
