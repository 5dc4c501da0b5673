import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placeOf, type Value } from './needs.ts';
import { createOccurrences } from './recording.ts';

describe('createOccurrences', () => {
  it('returns the texts before an index that contain a value', () => {
    const occurrences = createOccurrences(['order_1', 'order_12', 'order_1 and order_1', '', 'x order_1']);
    const value: Value = { kind: 'word', text: 'order_1' };
    expect(occurrences(value, 5)).toEqual([0, 2, 4]);
    expect(occurrences(value, 4)).toEqual([0, 2]);
    expect(occurrences(value, 0)).toEqual([]);
    expect(occurrences({ kind: 'word', text: 'order_2' }, 5)).toEqual([]);
  });

  it('finds the same as a search in each text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '_', ' '), maxLength: 8 });
    const value = fc.record({
      kind: fc.constantFrom<'word' | 'line'>('word', 'line'),
      text: fc.string({ unit: fc.constantFrom('a', 'b', '_'), minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(text), value, (texts, wanted) => {
        const expected = [...texts.keys()].filter((at) => placeOf(texts[at]!, wanted, 0) >= 0);
        expect(createOccurrences(texts)(wanted, texts.length)).toEqual(expected);
      }),
    );
  });
});
