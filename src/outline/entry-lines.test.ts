import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tellingLines } from './entry-lines.ts';

/** Counts one token per four characters. */
const count = (text: string) => Math.ceil(text.length / 4);

const steps = [
  'a1 npm test\nstarting\nok 1\nok 2\nFAIL src/auth.test.ts: token expired\ndone',
  'a2 cat src/auth.ts\nimport x\nconst ttl = 3600\nand so on',
  'a3 ls\n\n  \nsrc',
];

describe("the steps' own lines", () => {
  it('are the first lines and the most telling lines, in order', () => {
    expect(tellingLines(steps, 33, count)).toBe(
      [
        'a1 npm test',
        'ok 1',
        'FAIL src/auth.test.ts: token expired',
        'done',
        'a2 cat src/auth.ts',
        'const ttl = 3600',
        'and so on',
        'a3 ls',
      ].join('\n'),
    );
  });

  it('are short forms of some first lines if there are many steps, including the first and the last', () => {
    const many = Array.from(
      { length: 30 },
      (_, at) => `a${at + 1} read the file src/part-${at + 1}.ts\nfound`,
    );
    expect(tellingLines(many, 40, count)).toBe(
      [
        'a1 read src/part-1.ts',
        'found',
        'a2 read src/part-2.ts',
        'a3 read src/part-3.ts',
        'a11 read src/part-11.ts',
        'a20 read src/part-20.ts',
        'a30 read src/part-30.ts',
      ].join('\n'),
    );
  });

  it('never exceed the budget, and are deterministic', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary', maxLength: 300 })),
        fc.nat(200),
        (texts, maxTokens) => {
          const text = tellingLines(texts, maxTokens, count);
          expect(count(text)).toBeLessThanOrEqual(maxTokens);
          expect(tellingLines(texts, maxTokens, count)).toBe(text);
        },
      ),
    );
  });
});
