import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutBlobs } from './shrink.ts';

const bytes = Uint8Array.from({ length: 1_501 }, (_, at) => (at * at * 31 + at * 7) % 251);
const base64 = Buffer.from(bytes).toString('base64');

describe('base64', () => {
  it('is removed, with a marker that shows its beginning and length', () => {
    expect(withoutBlobs(`{"image":"data:image/png;base64,${base64}","width":4}`)[0]?.text).toBe(
      `{"image":"data:image/png;base64,[2004 characters of base64 left out: ${base64.slice(0, 16)}...]","width":4}`,
    );
  });

  it('is removed from the lines of a mail', () => {
    const lines = base64.replace(/.{76}/g, '$&\r\n');
    expect(withoutBlobs(`Content:\n\n${lines}\n\n--end`)[0]?.text).toBe(
      `Content:\n\n[${lines.length} characters of base64 left out: ${base64.slice(0, 16)}...]\n\n--end`,
    );
  });

  it('stays if it is short enough to be a token, if it is a key, and if it only looks like base64', () => {
    expect(withoutBlobs(`token: ${base64.slice(0, 900)}`)).toEqual([]);
    expect(withoutBlobs(`-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----`)).toEqual([]);
    expect(withoutBlobs('a'.repeat(5_000))).toEqual([]);
    expect(withoutBlobs('/usr/share/doc'.repeat(200))).toEqual([]);
  });

  it('is found in lines of any length and in any place, as by an expression that reads every character', () => {
    const expression = /(?:[A-Za-z0-9+/_-]{60,}(?:\r?\n|\\r\\n|\\n)?)+(?:[A-Za-z0-9+/_-]{0,59}={1,2})?/g;
    const text = fc
      .array(
        fc.tuple(
          fc.constantFrom('', ' ', 'word ', '"', '\\', `${base64.slice(0, 59)} `),
          fc.integer({ min: 50, max: 90 }),
          fc.constantFrom('\n', '\r\n', String.raw`\n`, String.raw`\r\n`, ' ', ''),
          fc.integer({ min: 800, max: 1_200 }),
          fc.constantFrom('', '=', '==', '\n', ' end'),
        ),
        { maxLength: 3 },
      )
      .map((pieces) =>
        pieces
          .map(([before, width, lineEnd, length, after]) => {
            const lines = base64.slice(0, length).match(new RegExp(`.{1,${width}}`, 'g'))!;
            return `${before}${lines.join(lineEnd)}${after}`;
          })
          .join(''),
      );
    fc.assert(
      fc.property(text, (given) => {
        const isLong = (given.match(expression) ?? []).some((blob) => blob.length >= 1_000);
        expect(withoutBlobs(given).length).toBe(isLong ? 1 : 0);
      }),
      { numRuns: 2_000 },
    );
  });
});
