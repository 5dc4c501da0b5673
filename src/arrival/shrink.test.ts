import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lossOf } from '../../bench/content/verify.ts';
import type { ShrinkOptions } from './kind.ts';
import { maxShrinkLength, minShrinkLength, shrink } from './shrink.ts';

const lossless: ShrinkOptions = { lossless: true };
const listing = (lines: number): string =>
  Array.from({ length: lines }, (_, at) => `${String(at + 1).padStart(6)}→line ${at}`).join('\n');

/** A simple token counter: words and signs. */
const count = (text: string): number => text.match(/\s?\w+|\S/gu)?.length ?? 0;

describe('a tool result', () => {
  it('is shrunk by its kind', () => {
    expect(shrink(listing(30), lossless)).toEqual({
      text: listing(30).replace(/^ +/gm, ''),
      kind: 'numbered-lines',
      isLossless: true,
      notes: ['padding of line numbers dropped'],
    });
    const found = Array.from(
      { length: 9 },
      (_, at) => `\x1b[35msrc/store.ts\x1b[m:${at + 1}:  const found${at}`,
    );
    expect(shrink(found.join('\n'), lossless)).toEqual({
      text: `[grouped by file]\nsrc/store.ts\n${found.map((_, at) => `${at + 1}:  const found${at}`).join('\n')}`,
      kind: 'search',
      isLossless: true,
      notes: ['control codes as a terminal shows them', 'found lines grouped by file'],
    });
  });

  it('is not changed if its kind is excluded', () => {
    expect(shrink(listing(30), { lossless: true, without: ['numbered-lines'] })).toBeUndefined();
    expect(shrink(listing(30), { lossless: true, without: ['json'] })?.kind).toBe('numbered-lines');
  });

  it('is not changed if it is short, longer than any window, or if little would be saved', () => {
    expect(shrink(listing(100).slice(0, minShrinkLength - 1), lossless)).toBeUndefined();
    expect(shrink(listing(90_000).slice(0, maxShrinkLength + 1), lossless)).toBeUndefined();
    expect(shrink(`{"a": "${'x'.repeat(2_000)}"}`, lossless)).toBeUndefined();
    expect(shrink(`${listing(10).replace(/^ +/gm, '')}\n${'word '.repeat(100)}`, lossless)).toBeUndefined();
  });

  it('is not changed if it is code, a change or a document', () => {
    const code = Array.from(
      { length: 30 },
      (_, at) => `export const aLongCommonBeginning${at} = read(${at});`,
    ).join('\n');
    const document = Array.from(
      { length: 30 },
      (_, at) => `## Always do this: step ${at}\n\nAlways do this.`,
    ).join('\n');
    const change = `diff --git a/x b/x\n@@ -1,30 +1,30 @@\n${'+one and the same line\n'.repeat(30)}`;
    for (const text of [code, document, change]) expect(shrink(text, { lossless: false })).toBeUndefined();
  });

  it('of a file that may be edited loses only padding', () => {
    const config = JSON.stringify(
      { scripts: { test: 'vitest run', check: 'tsc --noEmit' }, files: Array(20).fill('dist') },
      null,
      2,
    );
    expect(shrink(config, lossless)?.kind).toBe('json');
    expect(shrink(config, { lossless: true, mayBeEdited: true })).toBeUndefined();
    expect(shrink(listing(30), { lossless: true, mayBeEdited: true })?.kind).toBe('numbered-lines');
  });

  it('loses nothing if it reports a failure, even if loss is allowed', () => {
    const rows = JSON.stringify(
      Array.from({ length: 300 }, (_, id) => ({ id, name: `row ${id}`, note: 'like the others' })),
    );
    expect(shrink(rows, { lossless: false })?.isLossless).toBe(false);
    expect(shrink(`${rows}\n\nExit code 1`, { lossless: false })?.isLossless).toBe(true);
  });

  it('never grows, never splits characters, keeps what it must, and is not shrunk twice', () => {
    const options = fc.record({
      lossless: fc.boolean(),
      count: fc.constantFrom(count, undefined),
      lineNumbers: fc.constantFrom('every' as const, 'every-fifth' as const),
    });
    fc.assert(
      fc.property(texts, options, (text, chosen) => {
        const shrunk = shrink(text, chosen);
        if (!shrunk) return;
        expect(shrunk.text.length).toBeLessThan(text.length);
        expect(Buffer.byteLength(shrunk.text)).toBeLessThan(Buffer.byteLength(text));
        if (chosen.count) expect(count(shrunk.text)).toBeLessThan(count(text));
        expect(shrunk.text.isWellFormed()).toBe(true);
        expect(shrunk.isLossless || !chosen.lossless).toBe(true);
        expect(lossOf(text, shrunk)).toBeUndefined();
        expect(shrink(text, chosen)).toEqual(shrunk);
        expect(shrink(shrunk.text, chosen)).toBeUndefined();
      }),
      { numRuns: 1_000 },
    );
  });
});

/** Texts of every kind, also mixed. */
const name = fc.constantFrom('src/a.ts', '/home/ada/cli/src/b-2-c.ts', 'Makefile', 'lib/données/😀.json');
const word = fc.constantFrom(
  'fold',
  'é',
  '😀',
  '12',
  'a: b',
  '\t',
  '"',
  ' ',
  '{',
  '中文',
  'error',
  '-3-',
  ':7:',
);
const content = fc.array(word, { maxLength: 6 }).map((words) => words.join(''));
const many = <Value>(one: fc.Arbitrary<Value>) => fc.array(one, { minLength: 3, maxLength: 40 });
const piece = fc.oneof(
  many(content).map((lines) => lines.map((line, at) => `${String(at + 7).padStart(6)}→${line}`).join('\n')),
  many(fc.tuple(name, fc.nat(99), fc.constantFrom(':', '-'), content)).map((rows) =>
    rows.map(([path, number, mark, text]) => `${path}${mark}${number}${mark}${text}`).join('\n'),
  ),
  many(fc.tuple(name, content)).map((rows) =>
    rows.map(([path, text]) => `ok  \t${path}\t${text}`).join('\n'),
  ),
  many(fc.record({ name, content, size: fc.nat() }, { requiredKeys: ['name'] })).chain((rows) =>
    fc.constantFrom(JSON.stringify(rows, null, 2), rows.map((row) => JSON.stringify(row)).join('\n')),
  ),
  many(fc.constantFrom('\r', '\x1b[31m', '\x1b[K', '\b', '50%', 'done\n', '😀')).map((all) => all.join('')),
  content.map((line) => `${line}\n`.repeat(30)),
  many(content).map((lines) => lines.join('\n')),
);
const texts = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('\n'));
