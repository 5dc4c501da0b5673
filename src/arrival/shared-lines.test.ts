import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { undoLines } from '../../bench/content/undo.ts';
import { isShrunk } from './markers.ts';
import { sharedLines } from './shared-lines.ts';

function made(text: string): string | undefined {
  return sharedLines(text).drafts({ lossless: true })[0]?.text;
}

describe('successive lines', () => {
  it('share their beginning, cut after a sign', () => {
    expect(
      made(
        [
          '[job] deploy',
          'info service=billing region=eu started',
          'info service=billing region=europe ready',
          'info service=billing region=us ready',
          'done',
        ].join('\n'),
      ),
    ).toBe(
      [
        '[job] deploy',
        '[next 3 lines begin: info service=billing region=]',
        ' eu started',
        ' europe ready',
        ' us ready',
        'done',
      ].join('\n'),
    );
  });

  it('share their end, too', () => {
    const lines = ['sda', 'sdb/queue', 'cpu', 'memory', 'net/eth0'].map(
      (name) => `warn: could not read ${name} of this machine: Permission denied`,
    );
    expect(made(lines.join('\n'))).toBe(
      [
        '[next 5 lines begin: warn: could not read ]',
        '[and end:  of this machine: Permission denied]',
        ' sda',
        ' sdb/queue',
        ' cpu',
        ' memory',
        ' net/eth0',
      ].join('\n'),
    );
  });

  it('keep whole paths, except in long listings if loss is allowed', () => {
    const listing = Array.from({ length: 200 }, (_, at) => `/usr/share/documents/of/the/left/hand/${at}.txt`);
    const text = listing.join('\n');
    expect(sharedLines(text).drafts({ lossless: true })).toEqual([]);
    const [byFolder] = sharedLines(text).drafts({ lossless: false });
    expect({ ...byFolder, text: byFolder!.text.split('\n').slice(0, 3) }).toEqual({
      text: ['[next 200 lines begin: /usr/share/documents/of/the/left/hand/]', ' 0.txt', ' 1.txt'],
      isLossless: false,
      note: 'folders of paths written once',
    });
    expect(undoLines(byFolder!.text)).toBe(text);
    expect(sharedLines(listing.slice(0, 100).join('\n')).drafts({ lossless: false })).toEqual([]);
  });

  it('become one block or several, whichever saves more', () => {
    const lines = ['left', 'right'].flatMap((side) =>
      ['one', 'two', 'three', 'four'].map(
        (name) => `copied it from the ${side} hand side to document ${name}`,
      ),
    );
    expect(made(lines.join('\n'))).toBe(
      [
        '[next 4 lines begin: copied it from the left hand side to document ]',
        ' one',
        ' two',
        ' three',
        ' four',
        '[next 4 lines begin: copied it from the right hand side to document ]',
        ' one',
        ' two',
        ' three',
        ' four',
      ].join('\n'),
    );
  });

  it('are counted if they are equal', () => {
    expect(made(`start\n${'testing: warning: no tests to run\n'.repeat(4)}end`)).toBe(
      'start\n[next line 4 times]\ntesting: warning: no tests to run\nend',
    );
  });

  it('are not changed if they share too little, or only their indentation', () => {
    expect(made('a: one\na: two\na: three\na: four')).toBeUndefined();
    expect(
      made(`${' '.repeat(40)}one\n`.repeat(1) + `${' '.repeat(40)}two\n${' '.repeat(40)}three`),
    ).toBeUndefined();
  });

  it('can be restored completely', () => {
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
