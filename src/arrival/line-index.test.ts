import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstBeginning, firstNumbered } from './line-index.ts';

describe('the first line', () => {
  it('with a beginning is the same with and without the index', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'b', '\ud83d', '\ude42'), maxLength: 70 });
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 30 }),
        fc.array(line, { maxLength: 60 }),
        (lines, questions) => {
          const asked = [...lines, ...questions].map((one) => one.slice(0, 60));
          expect(asked.map((begins) => firstBeginning(lines, begins))).toEqual(
            asked.map((begins) => lines.findIndex((one) => one.startsWith(begins))),
          );
        },
      ),
    );
  });

  it('with a number is the same with and without the index', () => {
    const number = fc.integer({ min: -1, max: 12 });
    fc.assert(
      fc.property(fc.array(number, { maxLength: 30 }), fc.array(number, { maxLength: 60 }), (all, asked) => {
        const numbers = Int32Array.from(all);
        expect(asked.map((one) => firstNumbered(numbers, one))).toEqual(asked.map((one) => all.indexOf(one)));
      }),
    );
  });
});
