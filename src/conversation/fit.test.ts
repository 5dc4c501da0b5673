import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clip, longestFit } from './messages.ts';

const byLength = (text: string): number => Math.ceil(text.length / 4);
/** Dense at the end of a text, thin before: no one rate fits. */
const uneven = (text: string): number => Math.ceil(text.length / 40) + text.split('#').length - 1;

describe('the longest part that fits', () => {
  it('is the whole text if that fits, to the last token', () => {
    const text = 'x'.repeat(4_000);
    expect(longestFit(text, { start: 0, end: 4_000 }, 1_000, byLength)).toBe(4_000);
    expect(longestFit(text, { start: 100, end: 4_000 }, 975, byLength)).toBe(4_000);
    expect(longestFit(text, { start: 0, end: 4_000 }, 0, byLength)).toBe(0);
  });

  it('comes close to the budget if the text is longer', () => {
    const used = byLength(
      'x'.repeat(longestFit('x'.repeat(9_999), { start: 0, end: 9_999 }, 1_000, byLength)),
    );
    expect(used).toBeLessThanOrEqual(1_000);
    expect(used).toBeGreaterThan(950);
  });

  it('costs in proportion to the part that fits, not to the text', () => {
    let counted = 0;
    const count = (text: string): number => {
      counted += text.length;
      return byLength(text);
    };
    longestFit('x'.repeat(5_000_000), { start: 0, end: 5_000_000 }, 1_000, count);
    expect(counted).toBeLessThan(40_000);
  });

  it('fits, splits no code point, and stops only when one more would not fit or the budget is nearly used', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '#', '😀', '\n', 'é'), maxLength: 300, size: 'max' });
    const property = fc.property(
      text,
      fc.nat(60),
      fc.constantFrom(byLength, uneven),
      (whole, budget, count) => {
        const end = longestFit(whole, { start: 0, end: whole.length }, budget, count);
        const fitting = whole.slice(0, end);
        expect(fitting.isWellFormed()).toBe(true);
        expect(count(fitting)).toBeLessThanOrEqual(budget);
        const next = String.fromCodePoint(whole.codePointAt(end) ?? 0);
        const isFull = budget === 0 || count(fitting + next) > budget || count(fitting) >= budget * 0.97;
        expect(end === whole.length || isFull).toBe(true);
        expect(clip(whole, budget, count)).toBe(fitting);
      },
    );
    fc.assert(property, { numRuns: 500 });
  });
});
