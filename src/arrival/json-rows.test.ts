import { describe, expect, it } from 'vitest';
import { json } from './json.ts';

/** Returns the text without omitted rows; undefined if none were omitted. */
function made(value: unknown): string | undefined {
  const drafts = json(JSON.stringify(value))?.drafts({ lossless: false }) ?? [];
  return drafts.find((draft) => !draft.isLossless)?.text;
}

const row = (id: number, more: object = {}) => ({
  id,
  state: 'open',
  title: `Number ${id} of many`,
  size: { bytes: 100 },
  ...more,
});

/** Returns the first members of the kept rows. */
function idsIn(text: string): readonly string[] {
  return [...text.matchAll(/^(\d+),|^\[(\d+) rows like these left out\]$/gm)].map(
    ([, id, gone]) => id ?? `(${gone})`,
  );
}

describe('a long array of rows', () => {
  it('keeps its beginning and end, failures, rare values, odd members and the smallest and largest numbers', () => {
    const rows = Array.from({ length: 300 }, (_, id) => row(id));
    rows[40] = row(40, { title: 'Connection refused' });
    rows[80] = row(80, { state: 'closed' });
    rows[120] = row(120, { size: { bytes: 9_000_000 } });
    rows[160] = row(160, { size: { bytes: 1 } });
    rows[200] = row(200, { extra: 1 });
    const text = made(rows)!;
    expect(idsIn(text)).toEqual(
      '0 1 2 3 4 5 6 7 (32) 40 (39) 80 (39) 120 (39) 160 (39) 200 (95) 296 297 298 299'.split(' '),
    );
    expect(text.split('\n').slice(0, 3)).toEqual([
      '[JSON; tables: [rows]{columns}: row lines]',
      '[300]{id,state,title,size{bytes},extra}:',
      '0,open,Number 0 of many,100,',
    ]);
  });

  it('is kept completely if it is short, if most rows are special, and if the text reports a failure', () => {
    expect(made(Array.from({ length: 99 }, (_, id) => row(id, { note: 'n'.repeat(100) })))).toBeUndefined();
    expect(made(Array.from({ length: 300 }, (_, id) => row(id, { title: `Error ${id}` })))).toBeUndefined();
    expect(made({ error: 'not all', rows: Array.from({ length: 300 }, (_, id) => row(id)) })).toBeUndefined();
  });

  it('has markers inside the array if its rows are no table', () => {
    const rows = Array.from({ length: 200 }, (_, id) =>
      id % 2 === 0 ? { a: id, note: 'n'.repeat(40) } : { b: id, c: id, d: id },
    );
    expect(made({ rows })).toMatch(/\{"b":7,"c":7,"d":7\},"\[188 rows like these left out\]",\{"a":196,/);
  });

  it('stays JSON without omissions if most of it is prose', () => {
    const prose = (id: number) =>
      `Article ${id} says that the lamp of house ${id} burned for long. `.repeat(9);
    const articles = (text: (id: number) => string) =>
      JSON.stringify(
        Array.from({ length: 150 }, (_, id) => ({ id, text: text(id) })),
        null,
        2,
      );
    const drafts = (text: string) => json(text)!.drafts({ lossless: false });
    const [only, ...others] = drafts(articles(prose));
    expect(others).toEqual([]);
    expect(JSON.parse(only!.text)).toEqual(JSON.parse(articles(prose)));
    expect(drafts(articles((id) => `House ${id}`)).length).toBeGreaterThan(1);
  });
});
