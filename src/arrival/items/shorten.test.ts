import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shorten, gapMark } from './shorten.ts';

const article = [
  '# Lamps of the coast',
  '',
  'The first lighthouse was built of wood. It burned for nine years. Nobody wrote down who lit it. ' +
    'In 1759 John Smeaton finished a tower of stone. Its lime sets under water. The stones were dovetailed into the rock, and each other. ' +
    'Visitors came from far away. They liked the view.',
  '',
  'Costs:',
  'Oil was 40 pounds a year.',
  'The keepers were paid in coal.',
].join('\n');

describe('shorten', () => {
  it('keeps the beginning, headings, numbers and words of the question, and marks omissions', () => {
    expect(shorten(article, 220, new Map([['lime', 2]]))).toBe(
      [
        '# Lamps of the coast',
        '',
        `The first lighthouse was built of wood. It burned for nine years. ${gapMark} In 1759 John Smeaton finished a tower of stone. Its lime sets under water. ${gapMark} They liked the view.`,
        '',
        'Costs:',
        `Oil was 40 pounds a year. ${gapMark}`,
      ].join('\n'),
    );
  });

  it('cuts the text if not even one sentence fits', () => {
    expect(shorten('word '.repeat(100), 30, new Map())).toBe(`word word word word word w ${gapMark}`);
  });

  it('returns a text that is short enough unchanged', () => {
    expect(shorten(article, article.length, new Map())).toBe(article);
  });

  it('is never much longer than requested, well-formed, and made of the words of the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 2_000 }), fc.nat(1_500), (text, most) => {
        const short = shorten(text, most, new Map([['a', 1]]));
        expect(short.length).toBeLessThanOrEqual(
          Math.max(Math.min(text.length, most + 2 * gapMark.length + 2), gapMark.length),
        );
        expect(short.isWellFormed()).toBe(text.isWellFormed() || short.isWellFormed());
        for (const piece of short.split(gapMark)) expect(text).toContain(piece.trim());
      }),
    );
  });
});
