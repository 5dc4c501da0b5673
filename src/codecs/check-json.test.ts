import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkJson, parseJson, Paused, openRun, runPausably } from '../conversation/steps.ts';

const encoder = new TextEncoder();

/** Checks with a pause after every step, and returns how many there were. */
function checkInSteps(bytes: Uint8Array): number {
  const slice = openRun(() => true);
  for (let pauses = 0; ; pauses++) {
    try {
      runPausably(slice, () => checkJson(bytes));
      return pauses;
    } catch (error) {
      if (!(error instanceof Paused)) throw error;
    }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

describe('checking JSON in steps', () => {
  /** Long enough that every level is cut. */
  const long = 'x'.repeat(150_000);
  const value = fc.oneof(
    fc.constant(long),
    fc.constant([long, 1]),
    fc.constant({ a: long, b: [] }),
    fc.constant(Array.from({ length: 40_000 }, (_, at) => at)),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const texts = fc
    .oneof(fc.array(value, { maxLength: 5 }), fc.dictionary(fc.string(), value, { maxKeys: 5 }))
    .chain((json) => fc.constantFrom(JSON.stringify(json), JSON.stringify(json, undefined, 1)));

  it('accepts JSON, and nothing else', () => {
    fc.assert(
      fc.property(
        texts,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(...Array.from('[]{},:"\\ 1x')),
        (text, place, put) => {
          const at = Math.floor(place * (text.length - 1));
          // An outer list makes the text a value for the scanner, as in a body.
          for (const one of [
            text,
            text.slice(0, at) + put + text.slice(at + 1),
            text.slice(0, at) + put + text.slice(at),
          ]) {
            if (!/^[[{]/.test(one)) continue;
            const bytes = encoder.encode(one);
            expect(
              passes(() => checkJson(bytes)),
              one.slice(0, 60),
            ).toBe(isJson(one));
            expect(passes(() => checkInSteps(bytes))).toBe(isJson(one));
            if (isJson(one))
              expect(JSON.stringify(parseJson(bytes)) === JSON.stringify(JSON.parse(one))).toBe(true);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('takes a step for each piece of a long value', () => {
    const members = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`key${at}`, at]));
    const bytes = encoder.encode(JSON.stringify({ members }));
    expect(checkInSteps(bytes)).toBeGreaterThanOrEqual(bytes.length / 140_000);
  });
});
