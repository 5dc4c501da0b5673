import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countLines, locate, parseRange, spellRange } from './text-ranges.ts';

describe('ranges as models write them', () => {
  it.each([
    ['10-40', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['10', { kind: 'span', unit: 'lines', from: 10, to: 10 }],
    ['100-', { kind: 'span', unit: 'lines', from: 100, to: undefined }],
    ['-20', { kind: 'tail', unit: 'lines', count: 20 }],
    ['c1001-2000', { kind: 'span', unit: 'characters', from: 1001, to: 2000 }],
    ['c-500', { kind: 'tail', unit: 'characters', count: 500 }],
    ['10,40', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['[10, 40]', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    [' "10 – 40" ', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['lines 10 to 40', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['L10-L40', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['10..40', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['10:', { kind: 'span', unit: 'lines', from: 10, to: undefined }],
    [':40', { kind: 'span', unit: 'lines', from: 1, to: 40 }],
    ['40-10', { kind: 'span', unit: 'lines', from: 10, to: 40 }],
    ['0-10', { kind: 'span', unit: 'lines', from: 1, to: 10 }],
  ])('%s', (text, range) => {
    expect(parseRange(text)).toEqual(range);
  });

  it.each(['', '-', 'all', '1-2-3', '1-2, 5-6', '1.5', 'object', '1e3', '9'.repeat(99)])(
    'are refused: %s',
    (text) => {
      expect(parseRange(text)).toBe(undefined);
    },
  );
});

const read = (text: string, lines: string): string | undefined => {
  const range = parseRange(lines);
  const place = range && locate(text, range);
  return place && text.slice(place.start, place.end);
};

describe('the place of a range', () => {
  it('covers whole lines without the last line break, except for that of the text', () => {
    expect(read('a\nb\n\nd\n', '1-2')).toBe('a\nb');
    expect(read('a\nb\n\nd\n', '3')).toBe('');
    expect(read('a\nb\n\nd\n', '4-9')).toBe('d\n');
    expect(read('a\nb\n\nd\n', '-2')).toBe('\nd\n');
    expect(read('a\r\nb\r\n', '1')).toBe('a\r');
    expect(read('a\nb', '3-')).toBe(undefined);
    expect(read('', '1')).toBe(undefined);
  });

  it('of characters never splits a code point', () => {
    expect(read('a😀b', 'c1-2')).toBe('a😀');
    expect(read('a😀b', 'c3-4')).toBe('😀b');
    expect(read('a😀b', 'c-1')).toBe('b');
    expect(read('a😀b', 'c5-')).toBe(undefined);
  });

  it('is spelled so that reading it gives the same place', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\n', 'é', '😀'), minLength: 1 });
    const property = fc.property(text, fc.nat(60), fc.nat(60), fc.boolean(), (whole, one, other, byLines) => {
      const [from, to] = [1 + Math.min(one, other), 1 + Math.max(one, other)];
      const place = locate(whole, { kind: 'span', unit: byLines ? 'lines' : 'characters', from, to });
      const total = byLines ? countLines(whole) : whole.length;
      const again = place && parseRange(spellRange(whole, place));
      expect(again && locate(whole, again)).toEqual(place);
      expect(place === undefined).toBe(from > total);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});
