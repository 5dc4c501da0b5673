import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runSteps } from '../conversation/steps.ts';
import { rankPlaces } from './rank.ts';
import { findWhole, type Searched, windowsOf } from './whole-matches.ts';
import { queryTerms, spellingsOf } from '../arrival/items/query-terms.ts';

const everything = (text: string) => ({ start: 0, end: text.length });
const filler = (lines: number): string =>
  Array.from({ length: lines }, (_, line) => `row ${line} of filler text`).join('\n');

function source(text: string, order = 0, within = { start: 0, end: text.length }): Searched {
  return { id: `m${order}`, text, within, title: undefined, sections: [], order, callFor: () => '' };
}

/** Returns the texts of the places for a query of words, the best first. */
function placesFor(query: string, ...texts: readonly string[]): readonly string[] {
  const ranked = texts.map((text) => ({
    text,
    parts: [{ start: 0, end: text.length, heading: '', worth: 1 }],
  }));
  return runSteps(rankPlaces(ranked, query)).map(({ text, start, end }) => texts[text]!.slice(start, end));
}

describe('places for a query of words', () => {
  it('put rare words before common ones', () => {
    const text = [
      filler(60),
      'the gasket of the pump leaks',
      filler(60),
      'a row with a pump',
      filler(60),
    ].join('\n');
    const [first, second] = placesFor('row with pump gasket?', text);
    expect(first).toContain('gasket');
    expect(second).toContain('a row with a pump');
  });

  it('put words side by side, as in the query, before the same words apart', () => {
    const text = [
      'gamma of alpha, then delta; beta at last',
      filler(60),
      'alpha beta, and later gamma delta',
      filler(60),
      'delta alpha gamma beta',
    ].join('\n');
    expect(placesFor('alpha beta gamma delta', text)[0]).toContain('alpha beta, and later gamma delta');
  });

  it('put a number next to a path before the folders of the path', () => {
    const hay = 'hay\n'.repeat(400);
    const text = `${hay}shop, next, project, source\n${hay}line 958\n${hay}`;
    expect(placesFor('shop/next/project/source/a.go 958', text)[0]).toContain('958');
  });

  it('have five lines at most', () => {
    const text = `${filler(30)}\n${'the gasket leaks\n'.repeat(12)}${filler(30)}`;
    const counts = placesFor('gasket leaks', text).map((place) => place.trimEnd().split('\n').length);
    expect(counts[0]).toBe(5);
    expect(Math.max(...counts)).toBe(5);
  });

  it('cover together what no place holds by itself, rather than repeat the same words', () => {
    const copies = Array.from({ length: 20 }, (_, copy) => `alpha beta ${copy}`);
    const text = [...copies, 'gamma'].flatMap((words) => [words, filler(60)]).join('\n');
    const shown = placesFor('alpha beta gamma', text).slice(0, 5).join('');
    expect(shown).toContain('alpha beta');
    expect(shown).toContain('gamma');
  });

  it('find names by their pieces, and words with other endings', () => {
    const text = [
      filler(60),
      'func LoadSessionState(id string)',
      filler(60),
      'parse_errors: 3',
      filler(60),
    ].join('\n');
    expect(placesFor('loading the session', text)[0]).toContain('LoadSessionState');
    expect(placesFor('error while parsing', text)[0]).toContain('parse_errors');
  });

  it('find words of languages without spaces', () => {
    const text = [filler(60), '配置文件的端口是 8080', filler(60)].join('\n');
    expect(placesFor('端口', text)[0]).toContain('8080');
  });

  it('prefer texts under the heading of the same file, and newer ones', () => {
    const [old, other, renewed] = ['hay\nport 1\nhay', 'hay\nport 2\nhay', 'hay\nport 3\nhay'];
    const texts = [old, other, renewed].map((text, at) => ({
      text,
      parts: [
        { start: 0, end: text.length, heading: `result of Read src/${at === 1 ? 'b' : 'a'}.ts`, worth: 1 },
      ],
    }));
    expect(runSteps(rankPlaces(texts, 'Read src/a.ts port')).map(({ text }) => text)).toEqual([2, 0, 1]);
  });

  it('show lines once that several texts have', () => {
    expect(placesFor('needle', 'a needle\nhay', '  1→a needle\n  2→hay', 'a needle\nhay')).toEqual([
      'a needle\nhay',
    ]);
  });

  it('say which of them hold a line that the query quotes', () => {
    const line = 'const port = readPort(settings);';
    const text = [filler(30), `  12→${line}`, filler(30)].join('\n');
    const parts = [{ start: 0, end: text.length, heading: '', worth: 1 }];
    const [place] = runSteps(rankPlaces([{ text, parts }], `Edit src/a.ts ${line}`));
    expect(place?.quotes).toEqual([line]);
  });
});

describe('passages that hold the whole query', () => {
  const foundIn = (query: string, ...sources: readonly Searched[]) =>
    runSteps(findWhole(sources, query)).map(
      ({ from, hit }) => `${from.id} ${from.text.slice(hit, hit + 10)}`,
    );

  it('hold the exact value, else the value in other case', () => {
    const [exact, other] = ['id users/4711 here', 'ID USERS/4711 THERE'].map((text, at) => source(text, at));
    expect(foundIn('users/4711', exact!, other!)).toEqual(['m0 users/4711']);
    expect(foundIn('Users/4711', exact!, other!)).toEqual(['m1 USERS/4711', 'm0 users/4711']);
  });

  it('put whole words first, then what users said, then newer texts', () => {
    const said = 'why 230?\n';
    const page = {
      ...source(said, 1),
      sections: [{ start: 0, end: said.length, heading: 'user', kind: 'user' as const }],
    };
    expect(foundIn('230', source('at 12301', 9), source('line 230', 2), page, source('line 230', 3))).toEqual(
      ['m1 230?\n', 'm3 230', 'm2 230', 'm9 2301'],
    );
  });

  it('stay within the range', () => {
    const text = 'needle\nhay\nneedle\nhay\nneedle';
    const from = source(text, 0, { start: 7, end: 21 });
    expect(runSteps(findWhole([from], 'needle'))).toEqual([
      { from, start: 7, end: 21, hit: 11, isWord: true },
    ]);
    expect(runSteps(findWhole([source(text, 0, { start: 7, end: 15 })], 'needle'))).toEqual([]);
  });

  it('are found in a long line, and across the border of two windows', () => {
    const from = source(`${'x'.repeat(1_494)} needle-in-hay ${'y'.repeat(4_000)}`);
    expect(runSteps(findWhole([from], 'needle-in-hay'))).toEqual([
      { from, start: 0, end: 1_508, hit: 1_495, isWord: true },
    ]);
  });

  it('are found in each text as it spells the query', () => {
    const texts = ['say "hi there" now', String.raw`{"say":"\"hi there\" now"}`];
    expect(foundIn('"hi there"', ...texts.map((text, at) => source(text, at)))).toEqual([
      'm1 hi there\\"',
      'm0 "hi there"',
    ]);
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
      const best = runSteps(findWhole([source(whole)], wanted))[0];
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
