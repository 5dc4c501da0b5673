import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BoundedMap, cacheSpecs, createCaches, fixedSpecs, openFixed, openNotes } from './caches.ts';
import { waitingSpecs } from './experiment/waiting-notes.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const keysOf = (cache: Pick<BoundedMap<string, string | number>, 'entries'>) =>
  Array.from(cache.entries(), ([key]) => key);

describe('the caches of an engine', () => {
  it('may use what the others leave free', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    for (let at = 0; at < 1_100; at++) cache.set(`reply ${at}`, 'x'.repeat(600));
    expect([cache.size, cache.total]).toEqual([1_000, 1_000_000]);
    expect([cache.has('reply 99'), cache.has('reply 100')]).toEqual([false, true]);
  });

  it('drop what was not used for the longest time, in whatever cache it is', () => {
    const open = createCaches(1);
    const bodies = open<string>('seen bodies', (text) => text.length);
    const folds = open<string>('folds', (text) => text.length);
    const held = () => [keysOf(bodies), keysOf(folds)];
    for (const key of ['a', 'b', 'c', 'd']) {
      bodies.set(key, 'x'.repeat(124_500));
      folds.set(key, 'x'.repeat(124_700));
    }
    bodies.get('a');
    folds.get('b');
    bodies.peek('b');
    folds.has('a');
    bodies.set('e', 'x'.repeat(249_500));
    expect(held()).toEqual([
      ['a', 'c', 'd', 'e'],
      ['b', 'c', 'd'],
    ]);
    folds.set('e', 'x'.repeat(249_700));
    expect(held()).toEqual([
      ['a', 'd', 'e'],
      ['b', 'd', 'e'],
    ]);
  });

  it('keep a small entry that is used again and again beside large ones that come once', () => {
    const open = createCaches(1);
    const blocks = open<string>('read blocks', (text) => text.length);
    const bodies = open<string>('seen bodies', (text) => text.length);
    blocks.set('small', 'x');
    for (let at = 0; at < 20; at++) {
      bodies.set(`large ${at}`, 'x'.repeat(330_000));
      expect(blocks.get('small')).toBe('x');
    }
    expect(keysOf(bodies)).toEqual(['large 17', 'large 18', 'large 19']);
  });

  it('never exceed the budget together, and lose nothing before it is used up', () => {
    const names = ['kept replies', 'folds', 'seen bodies'] as const;
    const step = fc.record({
      name: fc.constantFrom(...names),
      key: fc.nat(9).map(String),
      kB: fc.nat(400),
      action: fc.constantFrom('set', 'set', 'set', 'get', 'delete'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const open = createCaches(1);
        const caches = Object.fromEntries(
          names.map((name) => [name, open<number>(name, (kB) => kB * 1_000)]),
        );
        for (const { name, key, kB, action } of steps) {
          const cache = caches[name]!;
          const before = totalOf(Object.values(caches));
          const other = Object.values(caches).reduce((sum, { size }) => sum + size, 0);
          if (action === 'get') cache.get(key);
          if (action === 'delete') cache.delete(key);
          if (action !== 'set') continue;
          const known = cache.has(key);
          cache.set(key, kB);
          expect(cache.get(key)).toBe(kB * 1_000 + cacheSpecs[name] <= 1_000_000 / 3 ? kB : undefined);
          if (!known && cache.has(key) && before + kB * 1_000 + 500 <= 1_000_000)
            expect(Object.values(caches).reduce((sum, { size }) => sum + size, 0)).toBe(other + 1);
          expect(totalOf(Object.values(caches))).toBeLessThanOrEqual(1_000_000);
        }
      }),
    );
  });

  it('hold no entry that is larger than a third of the budget', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    cache.set('small', 'x');
    cache.set('large', 'x'.repeat(333_000));
    expect(keysOf(cache)).toEqual(['small']);
  });
});

describe('a cache with a fixed bound', () => {
  it('counts entries, or what its owner counts', () => {
    const entries = openFixed<string, number>('receipts', { max: 2 });
    for (const key of ['a', 'b', 'c']) entries.set(key, 1);
    expect(keysOf(entries)).toEqual(['b', 'c']);
    const units = openFixed<string, number>('long texts', { unitsOf: (value) => value });
    units.set('a', 15_999_999);
    units.set('b', 2);
    expect(keysOf(units)).toEqual(['b']);
  });

  it('drops what was not used for the longest time', () => {
    const entries = openFixed<string, number>('receipts', { max: 3 });
    for (const key of ['a', 'b', 'c']) entries.set(key, 1);
    entries.get('a');
    entries.peek('b');
    entries.set('c', 2);
    entries.set('d', 1);
    expect(keysOf(entries)).toEqual(['a', 'c', 'd']);
    entries.set('e', 1);
    entries.set('f', 1);
    expect(keysOf(entries)).toEqual(['d', 'e', 'f']);
  });

  it('keeps nothing alive that was dropped or deleted', async () => {
    const entries = openFixed<string, object>('receipts', { max: 100 });
    const added: WeakRef<object>[] = [];
    for (let at = 0; at < 2_000; at++) {
      const value = { at };
      added.push(new WeakRef(value));
      entries.set(String(at), value);
      // First it is full, then nearly.
      if (at > 1_000) entries.delete(String(at - 90));
    }
    await pause(1);
    collect();
    expect(added.filter((one) => one.deref() !== undefined).length).toBeLessThan(250);
  });

  it('never exceeds its bound, and holds what a plain map would hold of the keys that it has', () => {
    const step = fc.record({
      key: fc.nat(9),
      value: fc.nat(12),
      action: fc.constantFrom('set', 'set', 'set', 'get', 'delete'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const cache = openFixed<string, number>('long texts', { unitsOf: (value) => value * 2_000_000 });
        const all = new Map<string, number>();
        for (const { key: number, value, action } of steps) {
          const key = String(number);
          if (action === 'get') expect([undefined, all.get(key)]).toContain(cache.get(key));
          if (action === 'delete') all.delete(key);
          if (action === 'delete') cache.delete(key);
          if (action !== 'set') continue;
          all.set(key, value);
          cache.set(key, value);
          expect(cache.get(key)).toBe(value <= 8 ? value : undefined);
        }
        const held = [...cache.entries()];
        expect(held.every(([key, value]) => all.get(key) === value)).toBe(true);
        expect(held.reduce((sum, [, value]) => sum + value * 2_000_000, 0)).toBe(cache.total);
        expect(cache.total).toBeLessThanOrEqual(16_000_000);
      }),
    );
  });
});

function totalOf(caches: readonly { readonly total: number }[]): number {
  return caches.reduce((sum, { total }) => sum + total, 0);
}

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

describe('docs/memory.md', () => {
  const page = readFileSync(new URL('../docs/memory.md', import.meta.url), 'utf8');

  it('lists every cache with its entry size', () => {
    const rows = Object.entries(cacheSpecs).map(([name, entryBytes]) => `| ${name} | ${entryBytes} | `);
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
