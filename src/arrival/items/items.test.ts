import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shortenerFor } from './shorten.ts';
import { itemsOf } from './items.ts';

const none: ReadonlyMap<string, number> = new Map();
const prose = (about: string) =>
  `About ${about}. ` + 'It is said that this goes on for some time without any news. '.repeat(12).trim();

/** Returns the text with the second item at 30 % of its size. */
function secondShorter(text: string): string | undefined {
  const list = itemsOf(text);
  const shorter = list?.items[1]!.shorter(0.3, shortenerFor(none));
  return shorter === undefined ? undefined : list!.write(new Map([[1, shorter]]));
}

describe('items of JSON', () => {
  const articles = ['lamps', 'ropes', 'sails'].map((about, at) => ({
    id: at,
    title: about,
    body: prose(about),
  }));

  it('are those of the largest array, wherever it is', () => {
    const text = JSON.stringify({ took: 3, tags: ['a', 'b', 'c'], result: { hits: articles } });
    expect(itemsOf(text)?.items.map((item) => item.text)).toEqual(articles.map((one) => JSON.stringify(one)));
  });

  it('lose text only from their long strings, and stay JSON', () => {
    const text = JSON.stringify({ took: 3, hits: articles }, undefined, 2);
    const after = JSON.parse(secondShorter(text)!) as { took: number; hits: typeof articles };
    expect(after.took).toBe(3);
    expect([after.hits[0], after.hits[2]]).toEqual([articles[0], articles[2]]);
    expect(after.hits[1]).toEqual({
      id: 1,
      title: 'ropes',
      body: 'About ropes. It is said that this goes on for some time without any news. It is said that this goes on for some time without any news. It is said that this goes on for some time without any news. […]',
      compressed: true,
    });
  });

  it('say what was done to them in JSON that stays JSON', () => {
    const written = (value: unknown, at: number, by: string) =>
      JSON.parse(itemsOf(JSON.stringify(value))!.write(new Map([[at, by]]), 'A note.')) as unknown;
    expect([
      written([{ a: 1 }, { a: 2 }, { a: 3 }], 1, '{"a":0}'),
      written([{ compressed: 1 }, { a: 2 }, {}], 0, '{"compressed":0}'),
      written([{ a: 1 }, { a: 2 }, {}], 2, '{}'),
      written(['a', 'b', 'c'], 1, '"…"'),
    ]).toEqual([
      [{ a: 1 }, { a: 0, compressed: true, compression: 'A note.' }, { a: 3 }],
      [{ compressed: 0 }, { a: 2 }, {}, 'A note.'],
      [{ a: 1 }, { a: 2 }, { compressed: true, compression: 'A note.' }],
      ['a', '…', 'c', 'A note.'],
    ]);
  });

  it('can be JSON lines', () => {
    const text = articles.map((one) => JSON.stringify(one)).join('\n');
    expect(
      secondShorter(text)!
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: number }).id),
    ).toEqual([0, 1, 2]);
  });

  it('have a relevance, by many names', () => {
    const scores = (extra: readonly object[]) =>
      itemsOf(JSON.stringify(extra))!.items.map(({ score }) => score);
    expect(scores([{ score: 0.9 }, { score: 0.2 }, { score: 0.4 }])).toEqual([0.9, 0.2, 0.4]);
    expect(scores([{ rank: 1 }, { rank: 2 }, { rank: 3 }])).toEqual([-1, -2, -3]);
    expect(scores([{ a: 1 }, { a: 2 }, { a: 3 }])).toEqual([undefined, undefined, undefined]);
  });

  it('are not shortened if nothing in them is long', () => {
    expect(itemsOf('[{"a":1},{"a":2},{"a":3}]')!.items[0]!.shorter(0.3, shortenerFor(none))).toBe(undefined);
  });
});

describe('items of a text', () => {
  const forms: Readonly<Record<string, (about: string, at: number) => string>> = {
    headings: (about) => `## ${about}\n\n${prose(about)}\n`,
    tags: (about, at) => `<document index="${at}">\n${prose(about)}\n</document>\n`,
    numbers: (about, at) => `${at + 1}. ${prose(about)}\n`,
    'numbers after a word': (about, at) => `Result ${at + 1}: ${prose(about)}\n`,
    'the same first word': (about) => `Title: ${about}\nURL: https://example.org/${about}\n${prose(about)}\n`,
    rulers: (about) => `---\n${prose(about)}\n`,
  };

  for (const [name, form] of Object.entries(forms)) {
    it(`begin with ${name}`, () => {
      const pieces = ['lamps', 'ropes', 'sails'].map(form);
      const text = `Found 3.\n${pieces.join('')}`;
      expect(itemsOf(text)?.items.map((item) => item.text)).toEqual(pieces.map((piece) => piece.trimEnd()));
      const after = secondShorter(text)!;
      expect(after.startsWith(`Found 3.\n${pieces[0]!}`)).toBe(true);
      expect(after.endsWith(`\n${pieces[2]!}`) && after.includes('[…]')).toBe(true);
    });
  }

  it('are paragraphs if it is long and has no other structure', () => {
    const pieces = Array.from({ length: 14 }, (_, at) => prose(`part ${at}`));
    expect(itemsOf(pieces.join('\n\n'))?.items.map((item) => item.text)).toEqual(pieces);
  });

  it('do not exist in code, in short prose, and in text without a list', () => {
    const code =
      'import a from "a";\n// 1. one\nconst b = 1;\n// 2. two\nexport function c() {\n  return b;\n}\n'.repeat(
        9,
      );
    for (const text of [code, prose('all'), 'ok', '', '{"a":1}', '[1,2', '[[1],[2]]'])
      expect(itemsOf(text)).toBe(undefined);
  });

  it('written unchanged restore the text, except for white space of JSON', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'grapheme' }), fc.json()), (text) => {
        const written = itemsOf(text)?.write(new Map());
        if (written !== undefined && !/^\s*[[{]/.test(text)) expect(written).toBe(text);
        else if (written !== undefined) expect(JSON.parse(written)).toEqual(JSON.parse(text));
      }),
    );
  });
});
