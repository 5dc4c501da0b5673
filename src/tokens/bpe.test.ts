import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMerger, NO_RANK, openVocabulary } from './bpe.ts';
import { packVocabulary } from './pack-vocabulary.ts';

const vocabulary = openVocabulary(
  packVocabulary([
    'a',
    'b',
    'c',
    'd',
    'ab',
    'bc',
    'cd',
    'aa',
    'aaaa',
    'abc',
    'bcd',
    'aab',
    'dd',
    'cdd',
    'abcd',
    'bb',
  ]),
);
const merger = createMerger(vocabulary);
const bytes = (text: string) => new TextEncoder().encode(text);

/** The definition: join the pair of lowest rank, the leftmost of equals, until no pair is a token. */
function countByDefinition(text: string): number {
  let parts = Array.from(text, (_, k) => ({ start: k, end: k + 1 }));
  const whole = bytes(text);
  for (;;) {
    const ranks = parts.slice(1).map((part, k) => vocabulary.rank(whole, parts[k]!.start, part.end));
    const lowest = Math.min(NO_RANK, ...ranks);
    if (lowest === NO_RANK) return parts.length;
    const at = ranks.indexOf(lowest);
    parts = [
      ...parts.slice(0, at),
      { start: parts[at]!.start, end: parts[at + 1]!.end },
      ...parts.slice(at + 2),
    ];
  }
}

describe('createMerger', () => {
  it('counts one for a token, even for one that merging would not reach', () => {
    expect(merger.count(bytes('abcd'), 0, 4)).toBe(1);
    expect(merger.count(bytes('a'), 0, 1)).toBe(1);
  });

  it('counts nothing for nothing', () => {
    expect(merger.count(bytes(''), 0, 0)).toBe(0);
  });

  it('counts only the given range', () => {
    expect(merger.count(bytes('xxabcdxx'), 2, 6)).toBe(1);
  });

  it('merges as the definition says, in short pieces and in long ones', () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', 'e'), maxLength: 300 });
    fc.assert(
      fc.property(piece, (text) => {
        const whole = bytes(text);
        const asToken = vocabulary.rank(whole, 0, whole.length) !== NO_RANK;
        expect(merger.count(whole, 0, whole.length)).toBe(asToken ? 1 : countByDefinition(text));
      }),
    );
  });
});
