import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeInSteps, rememberedText } from './messages.ts';
import { runSteps } from './steps.ts';
import { longStringText } from '../../test/support/codec-suite/json-text.ts';

const encoder = new TextEncoder();

describe('decoding a long literal in steps', () => {
  it('gives the same text as JSON.parse, wherever the pieces end', () => {
    fc.assert(
      fc.property(longStringText(), (json) => {
        const literal = encoder.encode(json);
        const span = { start: 0, end: literal.length };
        expect(runSteps(decodeInSteps(literal, span)) === JSON.parse(json)).toBe(true);
        expect(rememberedText(span) === JSON.parse(json)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('takes a step for each piece', () => {
    const literal = encoder.encode(JSON.stringify('line\n'.repeat(1_000_000)));
    const steps = decodeInSteps(literal, { start: 0, end: literal.length });
    let count = 0;
    while (!steps.next().done) count++;
    expect(count).toBeGreaterThanOrEqual(literal.length / 131_072);
  });
});
