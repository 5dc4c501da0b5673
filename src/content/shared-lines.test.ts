import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { undoLines } from '../../bench/content/undo.ts';
import { isShrunk } from './markers.ts';
import { sharedLines } from './shared-lines.ts';

function made(text: string): string | undefined {
  return sharedLines(text).drafts({ lossless: true })[0]?.text;
}

describe('lines that follow each other', () => {
  it('share their beginning, cut behind a sign', () => {
    expect(
      made(
        [
          '[test] $ go test ./...',
          'ok  \texample.org/cli/cmd/cli/agent\t(cached)',
          'ok  \texample.org/cli/cmd/cli/arguments\t1.735s',
          'ok  \texample.org/cli/cmd/cli/strategy\t(cached)',
          '?   \texample.org/cli/cmd\t[no test files]',
        ].join('\n'),
      ),
    ).toBe(
      [
        '[test] $ go test ./...',
        '[next 3 lines begin: ok  \texample.org/cli/cmd/cli/]',
        ' agent\t(cached)',
        ' arguments\t1.735s',
        ' strategy\t(cached)',
        '?   \texample.org/cli/cmd\t[no test files]',
      ].join('\n'),
    );
  });

  it('share their end too', () => {
    const lines = ['block/sda', 'block/sdb/queue', 'cpu', 'memory', 'net/eth0'].map(
      (name) => `grep: ./sys/devices/${name}: Permission denied`,
    );
    expect(made(lines.join('\n'))).toBe(
      [
        '[next 5 lines begin: grep: ./sys/devices/]',
        '[and end: : Permission denied]',
        ' block/sda',
        ' block/sdb/queue',
        ' cpu',
        ' memory',
        ' net/eth0',
      ].join('\n'),
    );
  });

  it('are one block or several, whichever saves more', () => {
    const lines = ['left', 'right'].flatMap((side) =>
      ['one', 'two', 'three', 'four'].map(
        (name) => `/usr/share/documents/of/the/${side}/hand/side/${name}.txt`,
      ),
    );
    expect(made(lines.join('\n'))).toBe(
      [
        '[next 4 lines begin: /usr/share/documents/of/the/left/hand/side/]',
        ' one.txt',
        ' two.txt',
        ' three.txt',
        ' four.txt',
        '[next 4 lines begin: /usr/share/documents/of/the/right/hand/side/]',
        ' one.txt',
        ' two.txt',
        ' three.txt',
        ' four.txt',
      ].join('\n'),
    );
  });

  it('are counted where they are the same', () => {
    expect(made(`start\n${'testing: warning: no tests to run\n'.repeat(4)}end`)).toBe(
      'start\n[next line 4 times]\ntesting: warning: no tests to run\nend',
    );
  });

  it('stay as they are where they share too little, or only their indentation', () => {
    expect(made('a: one\na: two\na: three\na: four')).toBeUndefined();
    expect(
      made(`${' '.repeat(40)}one\n`.repeat(1) + `${' '.repeat(40)}two\n${' '.repeat(40)}three`),
    ).toBeUndefined();
  });

  it('come back whole', () => {
    const word = fc.constantFrom(
      '/usr/',
      'lib/',
      'share/',
      'ok  \t',
      'x',
      '2026-11-21T10:00:',
      '", "',
      'é',
      '😀',
      ' ',
      '',
    );
    const line = fc.array(word, { maxLength: 7 }).map((words) => words.join(''));
    const lines = fc
      .array(fc.record({ line, times: fc.integer({ min: 1, max: 5 }) }), { minLength: 1, maxLength: 25 })
      .map((some) => some.flatMap(({ line: one, times }) => Array.from({ length: times }, () => one)));
    fc.assert(
      fc.property(lines, (all) => {
        const text = all.join('\n');
        const shrunk = made(text);
        if (shrunk === undefined) return;
        expect(undoLines(shrunk)).toBe(text);
        expect(isShrunk(shrunk)).toBe(true);
        expect(shrunk.length).toBeLessThan(text.length);
      }),
      { numRuns: 600 },
    );
  });
});
