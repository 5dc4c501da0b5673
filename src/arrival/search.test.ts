import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type SearchRow, undoSearch } from '../../bench/content/undo.ts';
import { search } from './search.ts';

function made(lines: readonly string[]): string | undefined {
  return search(lines.join('\n'))?.drafts({ lossless: true })[0]?.text;
}

describe('the output of grep', () => {
  it('shows each path once, above its lines', () => {
    expect(
      made([
        'src/app.ts:12:import { a } from "a";',
        'src/app.ts:40:  a("src/lib.ts:1:x");',
        'src/lib.ts:3:export function a() {',
        '',
        '(Results are truncated.)',
      ]),
    ).toBe(
      [
        '[grouped by file]',
        'src/app.ts',
        '12:import { a } from "a";',
        '40:  a("src/lib.ts:1:x");',
        'src/lib.ts',
        '3:export function a() {',
        '',
        '(Results are truncated.)',
      ].join('\n'),
    );
  });

  it('shows the full path if some of its lines do', () => {
    expect(
      made([
        'src/app.ts-11-// before: it',
        '/home/ada/cli/src/app.ts-12-',
        'src/app.ts:13:find(it)',
        '/home/ada/cli/src/app.ts-14-}',
        '--',
        'src/a-1-b.ts:7:find(it)',
        '/home/ada/cli/src/a-1-b.ts-8-done',
      ]),
    ).toBe(
      [
        '[grouped by file, some named relative to /home/ada/cli/]',
        '/home/ada/cli/src/app.ts',
        '11-// before: it',
        '12-',
        '13:find(it)',
        '14-}',
        '--',
        '/home/ada/cli/src/a-1-b.ts',
        '7:find(it)',
        '8-done',
      ].join('\n'),
    );
  });

  it('does not merge two paths if their line numbers do not continue', () => {
    expect(made(['b/x.ts:1:one', 'b/x.ts:2:two', 'b/x.ts:9:nine', '/a/b/x.ts-3-three'])).toBe(
      ['[grouped by file]', 'b/x.ts', '1:one', '2:two', '9:nine', '/a/b/x.ts', '3-three'].join('\n'),
    );
  });

  it('is not a log with times, nor a text with few matches', () => {
    expect(made(['Started 12:30:45 fine', '12:30:46: on', '12:30:47: on', '12:30:48: on'])).toBeUndefined();
    expect(made(['a.ts:1:x', 'a.ts:2:x', 'a.ts:3:x', 'and', 'much', 'more'])).toBeUndefined();
  });

  it('is not changed if another line could be mistaken for a found line', () => {
    expect(made(['a.ts:1:x', 'a.ts:2:x', 'a.ts:3:x', 'a.ts:4:x', '5: five'])).toBeUndefined();
  });

  it('can be restored to the same lines of the same files', () => {
    const path = fc.constantFrom(
      'src/a.ts',
      'src/a-1-b.ts',
      '/home/x/lib.rs',
      'C:\\x\\y.cs',
      'Makefile',
      'a/2-b/c.py',
    );
    const text = fc.oneof(
      fc.string({ maxLength: 10 }).map((content) => content.replace(/\n/g, ' ')),
      fc.constantFrom('', 'a.ts:1:x', '-2-', '12-34', '12:34', '--'),
    );
    const row: fc.Arbitrary<SearchRow> = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          path,
          number: fc.nat(999).map(String),
          mark: fc.constantFrom(':', '-'),
          text,
        }),
      },
      { weight: 1, arbitrary: fc.constantFrom('', '--', 'No more.', 'src/a.ts').map((other) => ({ other })) },
    );
    fc.assert(
      fc.property(fc.array(row, { minLength: 3, maxLength: 12 }), (rows) => {
        // A path with only context lines is not recognized.
        const found = rows.concat(
          ['src/a.ts', 'src/a-1-b.ts', '/home/x/lib.rs', 'C:\\x\\y.cs', 'Makefile', 'a/2-b/c.py'].map(
            (each): SearchRow => ({ path: each, number: '1', mark: ':', text: 'x' }),
          ),
        );
        const lines = found.map(lineOf);
        const shrunk = made(lines);
        if (shrunk !== undefined) expect(undoSearch(shrunk).rows.map(lineOf)).toEqual(lines);
      }),
      { numRuns: 400 },
    );
  });
});

function lineOf(row: SearchRow): string {
  return 'other' in row ? row.other : `${row.path}${row.mark}${row.number}${row.mark}${row.text}`;
}
