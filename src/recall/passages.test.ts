import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPassages, windowsOf } from './search.ts';
import { queryTerms, spellingsOf } from '../arrival/items/query-terms.ts';

const everything = (text: string) => ({ start: 0, end: text.length });
const filler = (lines: number): string =>
  Array.from({ length: lines }, (_, line) => `row ${line} of filler text`).join('\n');

describe('passages for a query', () => {
  it('put rare words before common ones', () => {
    const text = [
      filler(60),
      'the gasket of the pump leaks',
      filler(60),
      'filler row pump filler row',
      filler(60),
    ].join('\n');
    const [first, second] = findPassages([{ text, within: everything(text) }], 'row with pump gasket?');
    expect(text.slice(first?.start, first?.end)).toContain('gasket');
    expect(text.slice(second?.start, second?.end)).toContain('filler row pump');
  });

  it('put the exact value first, then other case, and leave out what has only some of its words', () => {
    const text = [
      filler(60),
      'id users/4711 here',
      filler(60),
      'ID USERS/4711 THERE',
      filler(60),
      'users 4711 users',
    ].join('\n');
    const hits = findPassages([{ text, within: everything(text) }], 'users/4711').map(({ hit }) =>
      text.slice(hit, hit + 10),
    );
    expect(hits).toEqual(['users/4711', 'USERS/4711']);
  });

  it('put words side by side, as in the query, before the same words apart', () => {
    const text = [
      'gamma of alpha, then delta; beta at last',
      filler(60),
      'alpha beta, and later gamma delta',
      filler(60),
      'delta alpha gamma beta',
    ].join('\n');
    const [first] = findPassages([{ text, within: everything(text) }], 'alpha beta gamma delta');
    expect(text.slice(first?.start, first?.end)).toContain('alpha beta, and later gamma delta');
  });

  it('put a number next to a path before the pieces of the path', () => {
    const hay = 'hay\n'.repeat(400);
    const text = `${hay}shop, next, project, source\n${hay}line 958\n${hay}`;
    const [first] = findPassages([{ text, within: everything(text) }], 'shop/next/project/source/a.go 958');
    expect(text.slice(first?.start, first?.end)).toContain('958');
  });

  it('cover together what no passage holds by itself, rather than repeat the same words', () => {
    const text = ['alpha beta', 'alpha beta', 'alpha beta', 'gamma']
      .flatMap((words) => [words, filler(60)])
      .join('\n');
    const [first, second] = findPassages([{ text, within: everything(text) }], 'alpha beta gamma');
    const shown = [first, second].map((one) => text.slice(one?.start, one?.end)).join('');
    expect(shown).toContain('alpha beta');
    expect(shown).toContain('gamma');
  });

  it('stay within the range', () => {
    const text = 'needle\nhay\nneedle\nhay\nneedle';
    const from = { text, within: { start: 7, end: 21 } };
    expect(findPassages([from], 'needle')).toEqual([{ from, start: 7, end: 21, hit: 11, isStrong: true }]);
    expect(findPassages([{ text, within: { start: 7, end: 15 } }], 'needle')).toEqual([]);
  });

  it('are found in a long line, and across the border of two windows', () => {
    const text = `${'x'.repeat(1_495)}needle-in-hay${'y'.repeat(4_000)}`;
    const from = { text, within: everything(text) };
    expect(findPassages([from], 'needle-in-hay')).toEqual([
      { from, start: 0, end: 1_508, hit: 1_495, isStrong: true },
    ]);
  });

  it('are found in each text as it spells the query', () => {
    const sources = ['say "hi there" now', String.raw`{"say":"\"hi there\" now"}`].map((text) => ({
      text,
      within: everything(text),
    }));
    expect(findPassages(sources, '"hi there"').map(({ from }) => sources.indexOf(from))).toEqual([0, 1]);
  });

  it("are ranked among those of other texts, and of equals the first text's comes first", () => {
    const sources = ['hay and a straw', 'a needle', 'needle and hay', 'needle and hay'].map((text, at) => ({
      name: at,
      text,
      within: everything(text),
    }));
    const names = (query: string) => findPassages(sources, query).map(({ from }) => from.name);
    expect(names('needle hay')).toEqual([2, 3, 1, 0]);
    expect(names('a straw')).toEqual([0]);
  });

  it('hold every requested piece of the text', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'B', '7', '-', '/', ' ', '\n', '😀', 'é'),
      maxLength: 4_000,
      size: 'max',
    });
    const property = fc.property(text, fc.nat(), fc.integer({ min: 1, max: 60 }), (whole, from, length) => {
      const at = from % Math.max(1, whole.length);
      const wanted = whole
        .slice(at, at + length)
        .toWellFormed()
        .trim();
      const best = findPassages([{ text: whole, within: everything(whole) }], wanted)[0];
      if (wanted === '' || !whole.includes(wanted)) return;
      expect(whole.slice(best?.hit, best?.end).startsWith(wanted)).toBe(true);
    });
    fc.assert(property);
  });
});

describe('windows', () => {
  it('cover the text without overlap and split no code point', () => {
    const unit = fc.constantFrom('line of text\n', '\n', 'x'.repeat(900), '😀'.repeat(500));
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 120, size: 'max' }), (units) => {
        const text = units.join('');
        const pieces = Array.from(windowsOf(text, everything(text)), ({ start, end }) =>
          text.slice(start, end),
        );
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) {
          expect(piece.isWellFormed()).toBe(true);
          expect(piece.length).toBeGreaterThan(0);
          expect(piece.length).toBeLessThanOrEqual(1_500);
        }
      }),
    );
  });
});

describe('a query', () => {
  it('is split into words, values and their pieces', () => {
    const spelled = queryTerms('What is the timeout in src/app.ts (line 42)?');
    expect(spelled.map(({ text, weight }) => `${text} ${weight.toFixed(2)}`)).toEqual([
      'timeout 1.00',
      'src/app.ts 1.00',
      'src 0.33',
      'app 0.33',
      'ts 0.33',
      'line 1.00',
      '42 1.00',
    ]);
    expect(queryTerms('the')).toEqual([{ text: 'the', weight: 1 }]);
    expect(queryTerms('=> !')).toEqual([]);
  });

  it('is searched as it is and as JSON spells it', () => {
    expect(spellingsOf('"café"\n')).toEqual([
      '"café"\n',
      '\\"café\\"\\n',
      '\\"caf\\u00e9\\"\\n',
      '\\\\\\"café\\\\\\"\\\\n',
    ]);
    expect(spellingsOf("'a b'")).toEqual(["'a b'", 'a b']);
  });
});
