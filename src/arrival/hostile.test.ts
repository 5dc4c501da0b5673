/** Nothing is timed: if a kind were quadratic in one of these texts, the test would not end. */
import { describe, expect, it } from 'vitest';
import { hostileTexts } from '../../bench/content/hostile.ts';
import { maxShrinkLength, shrink } from './shrink.ts';

describe('a text that is made to be slow to process', () => {
  it.each(hostileTexts)('of $name', ({ make }) => {
    const text = make(maxShrinkLength).slice(0, maxShrinkLength);
    const shrunk = shrink(text, { lossless: false, lineNumbers: 'every-fifth' });
    expect(shrunk === undefined || shrunk.text.length < text.length).toBe(true);
  });

  it('is not processed beyond the limit', () => {
    for (const { make } of hostileTexts) expect(shrink(make(5_000_000), { lossless: false })).toBeUndefined();
  });
});
