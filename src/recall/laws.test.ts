/** The laws of recall: nothing is lost by reading in pieces, the cap holds, and nothing a model sends breaks it. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CountTokens } from '../conversation/messages.ts';
import { resolveRecall } from './resolve.ts';

const byCharacters: CountTokens = (text) => Math.ceil(text.length / 4);
const byWords: CountTokens = (text) => (text.match(/\w{1,8}|\W{1,3}/gs) ?? []).length;
const byBytes: CountTokens = (text) => new TextEncoder().encode(text).length / 3;
const counters = fc.constantFrom(byCharacters, byWords, byBytes);

const unit = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('a', ' word', '\n', '\n\n', '\r\n', '😀', 'é', '"', '\\', '17') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('x'.repeat(300), '😀'.repeat(200), '\n'.repeat(60), '\ud83d', '\ude00'),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);
const text = fc.array(unit, { maxLength: 150, size: 'max' }).map((units) => units.join(''));

const lastLine = /\n\[(Lines?|Characters) \S+ of \d+\.(?: For the rest: (\{.*\}))?\]$/;

/** Makes the call that each answer ends with, and joins the texts. */
async function readAll(
  held: string,
  first: object,
  maxTokens: number,
  countTokens: CountTokens,
): Promise<string> {
  let argumentsJson = JSON.stringify({ id: 'm1', ...first });
  let joined = '';
  const cuts: number[] = [];
  for (let calls = 0; calls < 2_000; calls++) {
    const answer = await resolveRecall({ argumentsJson, lookup: () => held, maxTokens, countTokens });
    expect(countTokens(answer)).toBeLessThanOrEqual(maxTokens);
    const [ending = '', unitOfPiece, next] = lastLine.exec(answer) ?? [];
    joined += answer.slice(0, answer.length - ending.length);
    if (next === undefined) {
      expect(cuts.filter((cut) => isInsidePair(joined, cut))).toEqual([]);
      return joined;
    }
    if (unitOfPiece !== 'Characters') joined += '\n';
    cuts.push(joined.length);
    argumentsJson = next;
  }
  throw new Error('the calls for the rest never come to an end');
}

function isInsidePair(whole: string, offset: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(whole.slice(offset - 1, offset + 1));
}

describe('recall', () => {
  it('gives back the whole text when the calls for the rest are followed', async () => {
    const property = fc.asyncProperty(
      text,
      fc.integer({ min: 70, max: 200 }),
      counters,
      async (whole, cap, count) => {
        expect(await readAll(JSON.stringify(whole), {}, cap, count)).toBe(whole);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('gives back the whole of a range of lines', async () => {
    const range = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(40));
    const property = fc.asyncProperty(text, range, counters, async (whole, [from, more], count) => {
      const lines = whole.split(/(?<=\n)/);
      const wanted = lines.slice(from - 1, from + more);
      if (whole === '' || wanted.length === 0) return;
      const isToEnd = from + more >= lines.length;
      const expected = isToEnd ? wanted.join('') : wanted.join('').slice(0, -1);
      expect(await readAll(JSON.stringify(whole), { lines: `${from}-${from + more}` }, 90, count)).toBe(
        expected,
      );
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('gives back the last line break at every cap', async () => {
    const held = JSON.stringify(`head\n${'line\n'.repeat(20)}${'x'.repeat(50)}\n`);
    for (let cap = 90; cap < 250; cap++) {
      const read = await readAll(held, { lines: '2-' }, cap, (piece) => piece.length);
      expect(read).toBe(`${'line\n'.repeat(20)}${'x'.repeat(50)}\n`);
    }
  });

  it('gives back the whole value that a path names', async () => {
    const property = fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 30 }), async (items) => {
      const held = JSON.stringify(JSON.stringify({ items }));
      const read = await readAll(held, { path: '$.items' }, 90, byCharacters);
      expect(JSON.stringify(JSON.parse(read))).toBe(JSON.stringify(items));
    });
    await fc.assert(property);
  });

  it('finds any value in the text, and shows it', async () => {
    const property = fc.asyncProperty(
      text,
      fc.nat(),
      fc.integer({ min: 1, max: 30 }),
      async (whole, from, length) => {
        const query = whole
          .slice(from % Math.max(1, whole.length))
          .slice(0, length)
          .trim();
        if (query === '') return;
        const argumentsJson = JSON.stringify({ id: 'm1', query });
        const options = { lookup: () => JSON.stringify(whole), maxTokens: 120, countTokens: byCharacters };
        const answer = await resolveRecall({ argumentsJson, ...options });
        expect(answer.split('\n').slice(1, -1).join('\n')).toContain(query);
        expect(byCharacters(answer)).toBeLessThanOrEqual(120);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('answers whatever is sent with a text under the cap', async () => {
    const junk = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('1-2', '-', '$.a', '[*]', 'c5-', 'm1', '$[0].content', -3, 1e99),
    );
    const object = fc.record(
      { id: fc.oneof(fc.constant('m1'), junk), query: junk, lines: junk, path: junk },
      { requiredKeys: [] },
    );
    const sent = fc.oneof(
      object.map((value) => JSON.stringify(value)),
      fc.string(),
      fc.json(),
    );
    const held = fc.oneof(
      text.map((whole) => JSON.stringify(whole)),
      fc.json(),
      fc.json().map((json) => JSON.stringify(json)),
      fc.string(),
    );
    const property = fc.asyncProperty(
      sent,
      fc.array(held, { minLength: 1, maxLength: 3 }),
      fc.nat(100),
      counters,
      async (argumentsJson, stored, maxTokens, countTokens) => {
        const all = stored.map((_, at) => `m${at + 1}`);
        const lookup = (id: string): string | undefined => stored[all.indexOf(id)];
        const answer = await resolveRecall({ argumentsJson, lookup, all, maxTokens, countTokens });
        expect(countTokens(answer)).toBeLessThanOrEqual(maxTokens);
      },
    );
    await fc.assert(property, { numRuns: 1_000 });
  });

  it.each([
    ['one line of 5 MB', 'x'.repeat(5_000_000)],
    ['a million short lines', 'ab\n'.repeat(1_000_000)],
    ['a million breaks', '\n'.repeat(1_000_000)],
    ['JSON in one line', JSON.stringify(Array.from({ length: 200_000 }, (_, id) => ({ id })))],
    ['deep JSON', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
    ['nothing but backslashes', JSON.stringify(['\\'.repeat(2_000_000), 1])],
  ])('reads %s in every way', async (_name, whole) => {
    const lookup = (): string => JSON.stringify(whole);
    const ways = [
      {},
      { lines: '-20' },
      { lines: 'c900000-' },
      { query: 'b id 7' },
      { path: '$[0]' },
      { path: `$${'[0]'.repeat(60)}` },
    ];
    for (const way of ways) {
      const argumentsJson = JSON.stringify({ id: 'm1', ...way });
      const answer = await resolveRecall({
        argumentsJson,
        lookup,
        maxTokens: 1_000,
        countTokens: byCharacters,
      });
      expect(byCharacters(answer)).toBeLessThanOrEqual(1_000);
      expect(answer).not.toBe('');
    }
  });

  it('accepts arguments that are nested or long beyond reason', async () => {
    const nested = '['.repeat(100_000) + ']'.repeat(100_000);
    const long = ' '.repeat(1_000_000);
    for (const value of [
      nested,
      JSON.stringify(`a${long}b`),
      JSON.stringify(long),
      JSON.stringify('$[0]'.repeat(100_000)),
    ]) {
      for (const key of ['id', 'query', 'lines', 'path']) {
        const argumentsJson = `{"id":"m1","${key}":${value}}`;
        const answer = await resolveRecall({
          argumentsJson,
          lookup: () => '"[1]"',
          maxTokens: 200,
          countTokens: byCharacters,
        });
        expect(byCharacters(answer)).toBeLessThanOrEqual(200);
      }
    }
  });
});
