import { describe, expect, it } from 'vitest';
import { NO_RANK, openVocabulary } from './bpe.ts';
import { packVocabulary } from './pack-vocabulary.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('openVocabulary', () => {
  const vocabulary = openVocabulary(
    packVocabulary(['a', 'ab', 'é', [0xc3], 'abcd', '\ufeff\n', '\n', [0xff, 0xfe, 0xfd]]),
  );
  const rankOf = (text: string) => vocabulary.rank(bytes(text), 0, bytes(text).length);

  it('finds tokens of one byte, of two, and longer', () => {
    expect(['a', 'ab', 'abcd', 'é'].map(rankOf)).toEqual([0, 1, 4, 2]);
  });

  it('finds tokens that are no valid text', () => {
    expect(vocabulary.rank(Uint8Array.of(0xc3), 0, 1)).toBe(3);
    expect(vocabulary.rank(Uint8Array.of(0, 0xff, 0xfe, 0xfd), 1, 4)).toBe(7);
  });

  it('distinguishes a token from one with a byte order mark ahead', () => {
    expect([rankOf('\ufeff\n'), rankOf('\n')]).toEqual([5, 6]);
  });

  it('has no rank for anything else, and no inherited names', () => {
    const strangers = ['b', 'ba', 'abc', 'abcde', 'constructor', '__proto__', 'x'.repeat(1000)];
    expect(strangers.map(rankOf)).toEqual(strangers.map(() => NO_RANK));
  });

  it('looks at the given range only', () => {
    expect(vocabulary.rank(bytes('xabcdx'), 1, 5)).toBe(4);
  });

  it('may be empty', () => {
    expect(openVocabulary(packVocabulary([])).rank(bytes('abc'), 0, 3)).toBe(NO_RANK);
  });
});
