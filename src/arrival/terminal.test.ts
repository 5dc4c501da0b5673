/* oxlint-disable no-control-regex -- control characters are what this is about */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderTerminal } from './terminal.ts';

function shown(text: string): string | undefined {
  return renderTerminal(text)[0]?.text;
}

describe('text with control codes', () => {
  it('shows the last state of a progress bar', () => {
    expect(shown('Fetching\n\r  0%\r 50%\r100%\nDone\n')).toBe('Fetching\n100%\nDone\n');
    expect(shown('Rebasing (1/4)\rRebasing (4/4)\r\x1b[KDone.')).toBe('Done.');
    expect(shown('a long line\rshort\nend')).toBe('shortg line\nend');
    expect(shown('Reading 1 of 9\rReading 8 of 9\rReading 9 of 9, done')).toBe('Reading 9 of 9, done');
  });

  it('loses its colors, titles and links', () => {
    expect(
      shown('\x1b[1;31mFAIL\x1b[0m a.ts\x1b[K\n\x1b]0;title\x07\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\'),
    ).toBe('FAIL a.ts\nhere');
  });

  it('shows overwritten text, and follows the cursor up and down', () => {
    expect(shown('N\bNA\bAM\bME\bE')).toBe('NAME');
    expect(shown('one: ...\ntwo: ...\n\x1b[2A\x1b[2Kone: ok\n\x1b[2Ktwo: ok\n')).toBe('one: ok\ntwo: ok\n');
  });

  it('keeps a screen of unknown size, without its colors', () => {
    expect(shown('\x1b[H\x1b[2J\x1b[32mtop\x1b[m\x1b[5;10Hvalue')).toBe('\x1b[H\x1b[2Jtop\x1b[5;10Hvalue');
    expect(shown('\x1b[3A\x1b[32mup from where\x1b[m')).toBe('\x1b[3Aup from where');
    expect(shown(`${'x'.repeat(2_000)}\ry`)).toBe(`${'x'.repeat(2_000)}\ry`);
  });

  it('is not changed if carriage returns only end lines', () => {
    expect(shown('one\r\ntwo\r\n')).toBeUndefined();
  });

  it('is not changed if NUL separates the items of a list', () => {
    expect(shown('src/a.ts\0src/b.ts\0')).toBeUndefined();
    expect(shown('PATH=/bin\0HOME=/root\0TERM=xterm')).toBeUndefined();
  });

  it('becomes a marker if nothing of it is visible', () => {
    expect(shown('\0'.repeat(300))).toBe('[300 control characters left out]');
  });

  it('becomes what a terminal would show', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 5 }),
      fc.constantFrom('\n', '\r', '\b', '\r\n', '\0', '\x07', 'é', '😀'),
      fc.constantFrom('\x1b[K', '\x1b[1K', '\x1b[2K', '\x1b[J', '\x1b[31m', '\x1b[m', '\x1b[?25l', '\x1b(B'),
      fc.constantFrom(
        '\x1b[A',
        '\x1b[2A',
        '\x1b[B',
        '\x1b[C',
        '\x1b[3C',
        '\x1b[2D',
        '\x1b[G',
        '\x1b[4G',
        '\x1b[E',
        '\x1b[F',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
        const text = `\x1b[m${pieces.join('')}`;
        const isList = /[^\0-\x20]\0+[^\0-\x20]/.test(text);
        expect(shown(text) === undefined).toBe(isList);
        if (isList) return;
        const wanted = emulate(text);
        const got = shown(text)!;
        if (wanted === undefined) expect(got).toBe(text.replace(/\x1b\[\d*m/g, ''));
        else if (wanted.trim() !== '') expect(withoutEnds(got)).toBe(withoutEnds(wanted));
      }),
      { numRuns: 1_500 },
    );
  });
});

/** Removes trailing blanks, which are not visible. */
function withoutEnds(text: string): string {
  return text.replace(/ +$/gm, '');
}

/** A simple terminal: a grid of signs. Undefined if the cursor leaves it. */
function emulate(text: string): string | undefined {
  const grid: string[][] = [[]];
  let row = 0;
  let column = 0;
  for (const [what] of text.matchAll(/\x1b\[[\d?]*[A-Za-z]|\x1b\(B|\r\n|[^]/gu)) {
    const line = grid[row]!;
    const [, digits, final] = /^\x1b\[([\d?]*)([A-Za-z])$/.exec(what) ?? [];
    const count = Number(digits) || 1;
    if (what === '\r') column = 0;
    else if (what === '\n' || what === '\r\n') {
      row++;
      column = 0;
      grid[row] ??= [];
    } else if (what === '\b' || final === 'D') column = Math.max(0, column - count);
    else if (final === 'C') column += count;
    else if (final === 'G') column = count - 1;
    else if (final === 'A' || final === 'F' || final === 'B' || final === 'E') {
      row += final === 'A' || final === 'F' ? -count : count;
      if (!grid[row]) return undefined;
      if (final === 'E' || final === 'F') column = 0;
    } else if (final === 'K' || final === 'J') {
      if (digits === '1') for (let at = 0; at <= column; at++) line[at] = ' ';
      else line.length = digits === '2' ? 0 : Math.min(line.length, column);
      if (final === 'J') grid.length = row + 1;
    } else if (!what.startsWith('\x1b') && what !== '\0' && what !== '\x07') {
      while (line.length < column) line.push(' ');
      line[column++] = what;
    }
  }
  return grid.map((line) => Array.from(line, (sign) => sign ?? ' ').join('')).join('\n');
}
