import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { get_encoding } from 'tiktoken';
import { describe, expect, it, vi } from 'vitest';
import { loadExactCounter } from './load-counter.ts';

const recorded = '../shared/data/trajectories-dev.jsonl.gz';

const texts: readonly string[] = [
  '',
  ' ',
  'Keep every page.',
  "We'll say it's DON'T, I'M, they'VE and O'Reilly; '\u017fo too.",
  'export async function* read<T>(at: number): AsyncIterable<T> {\n\treturn await this.#next(at);\n}\n',
  '{"id":9007199254740993,"ok":true,"list":[1,2.5e-10,null],"path":"C:\\\\x\\ny"}',
  '    indented\n\n\n        more\r\n\r\n\ttabs\t\tand trailing   ',
  '折页书很小，却每一页都在。レポレロは忘れない。모든 페이지',
  'Ελληνικά, русский, עברית, العربية, हिन्दी, ภาษาไทย',
  '👩‍👩‍👧‍👦 🇨🇭 ❤️ e\u0301 \u0301\u0301 ǅ ʰ ½ ² Ⅷ ١٢٣',
  '<|endoftext|><|fim_prefix|> <|im_start|>user',
  'constructor hasOwnProperty __proto__ isPrototypeOf toString',
  '\ufeffmark\n\ufeff\n\u0085next\u00a0line\u2028separated\u3000',
  'lone \ud800 surrogates \udc00\ud800 in\udfff',
  'https://example.org/a/b?c=d&e=%20#frag /usr/lib/x86_64-linux-gnu//',
  `${'A'.repeat(300)}${'='.repeat(300)}${' '.repeat(300)}${'ab'.repeat(200)}${'中'.repeat(200)}`,
  'QmFzZTY0IGlzIG5vdCBwcm9zZSwgYnV0IGl0IGNvbWVzIGluIGxvbmcgcnVucyBvZiBpdA==',
  '0123456789abcdef'.repeat(40),
];

/**
 * Characters that became letters, marks or numbers with Unicode 17. The tables of the official tokenizer are of 16. Those of an engine
 * may be newer; then it splits next to these characters and the tokenizer does not.
 */
const newerThanItsTables = new RegExp(
  `[${(
    '295 88f c5c cdc 1acf-1add 1ae0-1aeb a7ce-a7cf a7d2 a7d4 a7f1 10940-10959 10ec5-10ec7 ' +
    '10efa-10efb 11b60-11b67 11db0-11ddb 11de0-11de9 16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff ' +
    '18d09-18d1e 18d80-18df2 1e6c0-1e6de 1e6e0-1e6f5 1e6fe-1e6ff 2b73a-2b73f 2cea2-2cead 323b0-33479'
  )
    .split(' ')
    .map((range) => range.replaceAll(/[\da-f]+/g, (code) => `\\u{${code}}`))
    .join('')}]`,
  'u',
);

describe.each(['o200k_base', 'cl100k_base'] as const)('the exact counter of %s', (encoding) => {
  const oracle = get_encoding(encoding);
  const expected = (text: string): number => oracle.encode_ordinary(text).length;

  it.each(texts.map((text) => [text.slice(0, 40), text]))(
    'counts %j as the official tokenizer does',
    async (_, text) => {
      const counter = await loadExactCounter(encoding);
      expect(counter.count(text)).toBe(expected(text));
    },
  );

  it('counts any text as the official tokenizer does', async () => {
    const counter = await loadExactCounter(encoding);
    const word = fc.constantFrom(
      'the',
      'Function',
      'données',
      "it's",
      '中文',
      '  ',
      '\n',
      '{"',
      '":',
      '3.14',
      '😀',
    );
    const anything = fc
      .oneof(
        fc.string({ unit: 'binary', maxLength: 80 }),
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        fc
          .array(fc.oneof(word, fc.string({ maxLength: 5 })), { maxLength: 40 })
          .map((words) => words.join(' ')),
      )
      .filter((text) => !newerThanItsTables.test(text));
    fc.assert(
      fc.property(anything, (text) => {
        expect(counter.count(text)).toBe(expected(text));
      }),
      { numRuns: 3_000 },
    );
  });

  it('counts pieces of any length as the official tokenizer does', async () => {
    const counter = await loadExactCounter(encoding);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'n', 't', 'i', 'ß'), maxLength: 400 }), (text) => {
        expect(counter.count(text)).toBe(expected(text));
      }),
      { numRuns: 300 },
    );
  });

  it.skipIf(!existsSync(recorded))(`counts recorded conversations likewise (${recorded})`, async () => {
    const counter = await loadExactCounter(encoding);
    const lines = gunzipSync(readFileSync(recorded)).toString().trimEnd().split('\n');
    for (const line of lines.filter((_, k) => k % 40 === 0)) {
      expect(counter.count(line)).toBe(expected(line));
    }
  });

  it('counts any text in steps as it does at once', async () => {
    const counter = await loadExactCounter(encoding);
    const piece = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.constantFrom('the ', '\n', 'a', ' '),
    );
    const long = fc.tuple(piece, fc.nat(3_000)).map(([unit, times]) => unit.repeat(times));
    fc.assert(
      fc.property(fc.array(long, { maxLength: 4 }), (pieces) => {
        const text = pieces.join('');
        const steps = counter.countInSteps!(text);
        let step = steps.next();
        while (!step.done) step = steps.next();
        expect(step.value).toBe(counter.count(text));
      }),
      { numRuns: 100 },
    );
  });

  it('counts a long text as the official tokenizer does, wherever its steps end', async () => {
    const counter = await loadExactCounter(encoding);
    const awkward = fc.string({
      unit: fc.constantFrom(...Array.from("'sſlReaÉǅʰ中\u03015½ \t\n\r\u00a0\u0085\u2028/!_。😀\ud800")),
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(awkward, fc.nat(60), (unit, shift) => {
        // Every text has a word with a space after it, as what people and programs write.
        const text = `${'a b '.repeat(shift)}${`${unit}a b`.repeat(Math.ceil(50_000 / unit.length))}`;
        expect(counter.count(text)).toBe(expected(text));
      }),
      { numRuns: 20 },
    );
  });

  it.each([
    ['emoji', '🙂'],
    ['ideographs', '中'],
    ['two bytes each', 'é'],
    ['spaces', ' '],
  ])('counts a run of %s in steps of at most 16,384 units', async (_, unit) => {
    const counter = await loadExactCounter(encoding);
    const encodeInto = vi.spyOn(TextEncoder.prototype, 'encodeInto');
    const steps = counter.countInSteps!(unit.repeat(200_000 / unit.length));
    let count = 0;
    while (!steps.next().done) count++;
    expect(count).toBeGreaterThanOrEqual(12);
    const lengths = encodeInto.mock.calls.map(([encoded]) => encoded.length);
    encodeInto.mockRestore();
    expect(Math.max(...lengths)).toBeLessThanOrEqual(16_384);
  });

  it('cuts a run of more than 16 kB without a break, and differs by a few tokens then', async () => {
    const counter = await loadExactCounter(encoding);
    const run = 'abcdefghij'.repeat(2_000);
    expect(Math.abs(counter.count(run) - expected(run))).toBeLessThanOrEqual(4);
    const shorter = run.slice(0, 16_384);
    expect(counter.count(shorter)).toBe(expected(shorter));
  });

  // Quadratic counting takes minutes for each of these, and the test would time out.
  it.each([
    ['one letter', 'a'],
    ['one capital', 'A'],
    ['spaces', ' '],
    ['dashes', '-'],
    ['line ends', '\n'],
    ['mixed white space', ' \t\u00a0'],
    ['line ends after spaces', '   \n'],
    ['ideographs', '中'],
    ['ideographs and capitals', '中AB'],
    ['combining marks', '\u0301'],
    ['emoji', '😀'],
    ['digits', '7'],
    ['zero bytes', '\0'],
    ['lone surrogates', '\ud800'],
    ['apostrophes', "'s'"],
  ])('finishes a megabyte of %s', async (_, unit) => {
    const counter = await loadExactCounter(encoding);
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
    expect(counter.count(`${text}x`)).toBeGreaterThan(1_000);
  });
});

describe('loadExactCounter', () => {
  it('names the encoding, says that it is exact and takes the costs it is given', async () => {
    const counter = await loadExactCounter('o200k_base', {
      image: { rule: 'flat', tokens: 7 },
      overhead: { message: 1, tool: 2, request: 3 },
    });
    const { name, exact, overhead } = counter;
    expect({ name, exact, overhead, image: counter.image(undefined) }).toEqual({
      name: 'o200k_base',
      exact: true,
      overhead: { message: 1, tool: 2, request: 3 },
      image: 7,
    });
  });

  it('counts a text longer than its buffer as it counts its parts', async () => {
    const counter = await loadExactCounter('o200k_base');
    const line = 'the same line again,\n';
    expect(counter.count(line.repeat(10_000))).toBe(counter.count(line) * 10_000);
  });
});
