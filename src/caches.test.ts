import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  cacheSpecs,
  createCaches,
  fixedSpecs,
  openFixed,
  openNotes,
  openWaitingNotes,
  waitingSpecs,
} from './caches.ts';

describe('the caches of an engine', () => {
  it('share the whole budget', () => {
    const shares = Object.values(cacheSpecs).map(({ share }) => share);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(1_000);
  });

  it('hold as many bytes as their share of the budget', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    for (let at = 0; at < 100; at++) cache.set(`reply ${at}`, 'x'.repeat(600));
    expect([cache.size, cache.calculatedSize]).toEqual([20, 20_000]);
    expect([cache.has('reply 79'), cache.has('reply 80')]).toEqual([false, true]);
  });

  it('hold no entry that is larger than their share', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    cache.set('small', 'x');
    cache.set('large', 'x'.repeat(20_001));
    expect([...cache.keys()]).toEqual(['small']);
  });
});

describe('a cache with a fixed bound', () => {
  it('counts entries, or what its owner counts', () => {
    const entries = openFixed<string, number>('receipts', { max: 2 });
    for (const key of ['a', 'b', 'c']) entries.set(key, 1);
    expect([...entries.keys()]).toEqual(['c', 'b']);
    const units = openFixed<string, number>('long texts', { unitsOf: (value) => value });
    units.set('a', 15_999_999);
    units.set('b', 2);
    expect([...units.keys()]).toEqual(['b']);
  });
});

describe('notes', () => {
  it('belong to one object and one kind, and no copy has them', () => {
    const [one, other] = [openNotes<object, string>(), openNotes<object, string>()];
    const key = { a: 1 };
    one.set(key, 'x');
    expect([one.get(key), one.has(key), other.get(key), other.has(key)]).toEqual([
      'x',
      true,
      undefined,
      false,
    ]);
    expect([one.get({ ...key }), one.get(structuredClone(key)), JSON.stringify(key)]).toEqual([
      undefined,
      undefined,
      '{"a":1}',
    ]);
    expect(key).toEqual({ a: 1 });
  });

  it('are refused for an object that has notes of another owner', () => {
    const [one, other] = [openNotes<object, string>('message'), openNotes<object, string>('part')];
    const key = {};
    one.set(key, 'x');
    expect(other.get(key)).toBeUndefined();
    expect(() => other.set(key, 'y')).toThrow('An object with notes of a message got one of a part.');
  });

  it('are kept for objects that accept no property, too', () => {
    const notes = openNotes<object, number>();
    const frozen = Object.freeze({});
    notes.set(frozen, 1);
    notes.set(frozen, 2);
    expect([notes.get(frozen), notes.get(Object.freeze({}))]).toEqual([2, undefined]);
  });
});

describe('notes that wait', () => {
  it('are no more than their bound, until some have left', () => {
    const waiting = openWaitingNotes('receipt');
    const leaves = Array.from({ length: 200 }, () => waiting.enter(1_000));
    expect(leaves).not.toContain(undefined);
    expect(waiting.enter(0)).toBeUndefined();
    leaves[0]!();
    leaves[0]!();
    expect(waiting.enter(0)).toBeDefined();
    expect(waiting.enter(0)).toBeUndefined();
  });

  it('hold no more bytes than their bound, unless there is only one', () => {
    const waiting = openWaitingNotes('holdout');
    const leave = waiting.enter(100_000_000);
    expect(waiting.enter(1)).toBeUndefined();
    leave!();
    expect(waiting.enter(40_000_000)).toBeDefined();
    expect(waiting.enter(40_000_000)).toBeUndefined();
    expect(waiting.enter(24_000_000)).toBeDefined();
  });
});

describe('docs/memory.md', () => {
  const page = readFileSync(new URL('../docs/memory.md', import.meta.url), 'utf8');

  it('lists every cache with its share and its entry size', () => {
    const rows = Object.entries(cacheSpecs).map(
      ([name, { share, entryBytes }]) => `| ${name} | ${share / 10} % | ${entryBytes} | `,
    );
    expectDescribed(rowsOf(page, '| Cache |'), rows);
  });

  it('lists everything else with its bound', () => {
    const rows = Object.entries(fixedSpecs).map(([name, spec]) => {
      const bound = 'max' in spec ? `${spec.max} entries` : `${spec.maxUnits / 1_000_000} million`;
      return `| ${name} | ${bound} | `;
    });
    expectDescribed(rowsOf(page, '| Name |'), rows);
  });

  it('lists the notes that wait with their bounds', () => {
    const rows = Object.entries(waitingSpecs).map(
      ([kind, { max, maxBytes }]) => `| ${kind} | ${max}, ${maxBytes / 1_000_000} million bytes | `,
    );
    expectDescribed(rowsOf(page, '| Note |'), rows);
  });
});

/** Returns the rows of the table that begins with this header. */
function rowsOf(page: string, header: string): readonly string[] {
  const lines = page.slice(page.indexOf(header)).split('\n');
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(2, end);
}

/** Expects these rows in this order, each with a sentence on what the cache holds. */
function expectDescribed(found: readonly string[], rows: readonly string[]): void {
  expect(found.map((row, at) => row.slice(0, rows[at]?.length))).toEqual(rows);
  expect(found.filter((row, at) => row.length < (rows[at]?.length ?? 0) + 15)).toEqual([]);
}
