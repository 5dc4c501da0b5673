import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { checkJson, parseJson, Paused, openRun, runPausably } from '../conversation/steps.ts';
import { longStringText } from '../../test/support/codec-suite/json-text.ts';

const encoder = new TextEncoder();

/** Checks with a pause after every step, and returns how many there were. */
function checkInSteps(bytes: Uint8Array): number {
  // No time passes, so that repeated steps never take longer than new ones.
  const now = vi.spyOn(performance, 'now').mockReturnValue(1);
  try {
    const slice = openRun(() => true);
    for (let pauses = 0; ; pauses++) {
      try {
        runPausably(slice, () => checkJson(bytes));
        return pauses;
      } catch (error) {
        if (!(error instanceof Paused)) throw error;
      }
    }
  } finally {
    now.mockRestore();
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

  it('accepts and parses one long text as JSON.parse does, wherever its pieces end', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    fc.assert(
      fc.property(
        longStringText(),
        fc.nat(299_999),
        fc.constantFrom(0x22, 0x5c, 0x75, 0x0a, 0x80, 0xbf, 0xc3, 0xff),
        (json, at, put) => {
          const bytes = encoder.encode(json);
          const broken = Uint8Array.from(bytes);
          broken[at] = put;
          for (const one of [bytes, broken]) {
            let expected: unknown;
            const isValid = passes(() => (expected = JSON.parse(decoder.decode(one))));
            expect(passes(() => checkJson(one))).toBe(isValid);
            if (isValid) expect(parseJson(one) === expected).toBe(true);
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it('takes a step for each piece of a long text', () => {
    const bytes = encoder.encode(JSON.stringify('🙂'.repeat(250_000)));
    expect(checkInSteps(bytes)).toBeGreaterThanOrEqual(bytes.length / 140_000);
  });

  it('takes a step for each piece of a long value', () => {
    const members = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`key${at}`, at]));
    const bytes = encoder.encode(JSON.stringify({ members }));
    expect(checkInSteps(bytes)).toBeGreaterThanOrEqual(bytes.length / 140_000);
  });
});
