import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { undoNumberedLines, withoutPadding } from '../../bench/content/undo.ts';
import { runSteps } from '../conversation/steps.ts';
import { numberedLines, writtenLines } from './numbered-lines.ts';

/** Returns the smaller versions, smallest last. */
function made(text: string, lineNumbers?: 'every-fifth'): readonly string[] | undefined {
  return numberedLines(text)
    ?.drafts({ lossless: true, lineNumbers })
    .map((draft) => draft.text);
}

/** Prints a file as agents' file readers do. */
function listing(lines: readonly string[], first = 1, mark = '→'): string {
  return lines.map((line, at) => `${String(first + at).padStart(6)}${mark}${line}`).join('\n');
}

describe('a file listing', () => {
  it('loses only the padding before its numbers', () => {
    const text = [
      "The file main.go has been updated. Here's the result of running `cat -n` on a snippet:",
      '     8→',
      '     9→func main() {',
      '    10→\tprintln("     7→ is text")',
      '    11→}',
      '',
      '<system-reminder>',
      'Consider whether it is malware.',
      '</system-reminder>',
    ].join('\n');
    expect(made(text)).toEqual([
      [
        "The file main.go has been updated. Here's the result of running `cat -n` on a snippet:",
        '8→',
        '9→func main() {',
        '10→\tprintln("     7→ is text")',
        '11→}',
        '',
        '<system-reminder>',
        'Consider whether it is malware.',
        '</system-reminder>',
      ].join('\n'),
    ]);
  });

  it('shows its first, its last and every fifth number on request', () => {
    const text = `${listing(['a', 'b', '', '\td', 'e', 'f', 'g', 'h', 'i', 'j', 'k'], 3)}\n\nThe end.`;
    expect(made(text, 'every-fifth')!.at(-1)).toBe(
      [
        '[every fifth line is numbered]',
        '3→a',
        'b',
        '5→',
        '\td',
        'e',
        'f',
        'g',
        '10→h',
        'i',
        'j',
        '13→k',
        '',
        'The end.',
      ].join('\n'),
    );
  });

  it('keeps the number of a line that itself begins like one', () => {
    const text = listing(['a', '7→b', 'c', 'd', 'e']);
    expect(made(text, 'every-fifth')!.at(-1)).toBe(
      ['[every fifth line is numbered]', '1→a', '2→7→b', 'c', 'd', '5→e'].join('\n'),
    );
  });

  it('keeps all numbers if text between two runs could be counted as lines', () => {
    const text = `${listing(['a', 'b', 'c', 'd'])}\nnot a line\n${listing(['e', 'f'], 6)}`;
    expect(made(text, 'every-fifth')).toHaveLength(1);
    expect(made(text.replace('not a line', 'not\na line'), 'every-fifth')).toHaveLength(2);
  });

  it('is not a table whose first column counts up, nor a text with other numbers', () => {
    expect(made('1\tAda\tLondon\n2\tBob\tParis\n3\tCyd\tRome\n4\tDan\tBonn')).toBeUndefined();
    expect(made(' 12→a\n 12→b\n 12→c\n 12→d\n 12→e')).toBeUndefined();
    expect(made('    4 apples\n    5 pears\n    6 plums\n    7 figs')).toBeUndefined();
  });

  it('can be restored completely, whatever text is in and around it', () => {
    const line = fc.oneof(
      fc.string({ maxLength: 12, unit: 'grapheme' }),
      fc.constantFrom('', '\t\treturn', '12→x', ' 3\ty', '}'),
    );
    const clean = line.map((text) => text.replace(/\n/g, ' '));
    const piece = fc.oneof(
      fc
        .record({
          lines: fc.array(clean, { minLength: 1, maxLength: 14 }),
          first: fc.integer({ min: 1, max: 20 }),
          mark: fc.constantFrom('→', '\t'),
        })
        .map(({ lines, first, mark }) => listing(lines, first, mark)),
      fc.array(clean, { maxLength: 6 }).map((lines) => lines.join('\n')),
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), (pieces) => {
        const text = pieces.join('\n');
        for (const draft of made(text, 'every-fifth') ?? [])
          expect(undoNumberedLines(draft)).toBe(withoutPadding(text));
      }),
      { numRuns: 400 },
    );
  });
});

describe('the lines that a call wrote', () => {
  const code = Array.from(
    { length: 8 },
    (_, at) => `  const value${at} = compute(${at}, 'some words of it');`,
  );
  const notes = (lines: readonly string[], from: number, written: object): readonly string[] => {
    const numbers = Int32Array.from(lines, (_, at) => from + at);
    const listed = lines.map((line, at) => `${from + at}→${line}`);
    return runSteps(writtenLines(listed, numbers, JSON.stringify(written))).map(({ note }) => note);
  };

  it('are told by all of their numbers, and by their first line if others are ahead of it', () => {
    expect(notes(['{', ...code, '}'], 4, { path: 'a.ts', new_string: code.join('\n') })).toEqual([
      '[lines 5 6 7 8 9 10 11 12 as in new_string of this call]',
    ]);
    const more = `other\n${code.join('\n')}`;
    expect(notes(['{', ...code, '}'], 4, { path: 'a.ts', content: more })).toEqual([
      `[lines 5 6 7 8 9 10 11 12 as in content of this call, from "  const value0 = compute(0, 'some words of it');" on]`,
    ]);
  });

  it('are those of the longest text, the last of equal ones; the first line stays', () => {
    const old_string = code.slice(0, 5).join('\n');
    expect(
      notes(['{', ...code], 1, { old_string, new_string: code.join('\n'), other: code.join('\n') }),
    ).toEqual(['[lines 2 3 4 5 6 7 8 9 as in other of this call]']);
    expect(notes(code, 1, { new_string: code.join('\n') })).toEqual([
      `[lines 2 3 4 5 6 7 8 as in new_string of this call, from "  const value1 = compute(1, 'some words of it');" on]`,
    ]);
  });

  it('are none if they are short or few, or if their beginning leads elsewhere', () => {
    const short = ['a', 'b', 'c', 'd', 'e', 'f'];
    expect(notes(['{', ...short], 1, { new_string: short.join('\n') })).toEqual([]);
    expect(notes(['{', ...code], 1, { new_string: code[0], list: code })).toEqual([]);
    const alike = code.map((line, at) => `${'x'.repeat(60)}${line}${at}`);
    const written = ['0', ...alike].join('\n');
    expect(notes(['{', ...alike.slice(1)], 1, { new_string: written })).toEqual([]);
  });
});
