import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BoundedMap,
  CacheBudget,
  type SharedBudget,
  cacheSpecs,
  createCaches,
  fixedSpecs,
  openFixed,
  openNotes,
} from './caches.ts';
import { waitingSpecs } from './experiment/waiting-notes.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const keysOf = (cache: Pick<BoundedMap<string, string | number>, 'entries'>) =>
  Array.from(cache.entries(), ([key]) => key);

describe('the caches of an engine', () => {
  it('share the whole budget', () => {
    const shares = Object.values(cacheSpecs).map(({ share }) => share);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(1_000);
  });

  it('may use what the others leave free', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    for (let at = 0; at < 1_100; at++) cache.set(`reply ${at}`, 'x'.repeat(600));
    expect([cache.size, cache.total]).toEqual([1_000, 1_000_000]);
    expect([cache.has('reply 99'), cache.has('reply 100')]).toEqual([false, true]);
  });

  it('keep their shares of the budget when all are in demand', () => {
    const open = createCaches(1);
    const replies = open<string>('kept replies', (text) => text.length);
    const folds = open<string>('folds', (text) => text.length);
    const bodies = open<string>('seen bodies', (text) => text.length);
    const blocks = open<string>('read blocks', (text) => text.length);
    bodies.set('body', 'x'.repeat(99_500));
    blocks.set('block', 'x'.repeat(199_500));
    // The first two have 700,000 bytes for 20 and 90 thousandths.
    for (let at = 0; at < 2_000; at++) {
      replies.set(`reply ${at}`, 'x'.repeat(600));
      folds.set(`fold ${at}`, 'x'.repeat(700));
    }
    expect([replies.total, folds.total].map((bytes) => Math.round(bytes / 10_000))).toEqual([13, 57]);
    expect([bodies.has('body'), blocks.has('block')]).toEqual([true, true]);
  });

  it('never exceed the budget together, and lose nothing before it is used up', () => {
    const names = ['kept replies', 'folds', 'seen bodies'] as const;
    const step = fc.record({
      name: fc.constantFrom(...names),
      key: fc.nat(9).map(String),
      kB: fc.nat(250),
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
          expect(cache.get(key)).toBe(
            kB * 1_000 + cacheSpecs[name].entryBytes <= 1_000 * cacheSpecs[name].share ? kB : undefined,
          );
          if (!known && cache.has(key) && before + kB * 1_000 + 500 <= 1_000_000)
            expect(Object.values(caches).reduce((sum, { size }) => sum + size, 0)).toBe(other + 1);
          expect(totalOf(Object.values(caches))).toBeLessThanOrEqual(1_000_000);
        }
      }),
    );
  });

  it('hold no entry that is larger than their share', () => {
    const cache = createCaches(1)<string>('kept replies', (text) => text.length);
    cache.set('small', 'x');
    cache.set('large', 'x'.repeat(20_001));
    expect(keysOf(cache)).toEqual(['small']);
  });
});

describe('engines with one budget', () => {
  const open = (engine: number, budget: SharedBudget = { max: 3e6, used: new Uint32Array(3) }) => {
    const own = new CacheBudget(budget, engine);
    const cache = createCaches(own)<string>('seen bodies', (text) => text.length);
    const fill = (count: number) => {
      for (let at = 0; at < count; at++) cache.set(String(at), 'x'.repeat(99_500));
    };
    return { own, cache, fill };
  };

  it('may use what the others leave free', () => {
    const engine = open(1);
    engine.fill(50);
    expect(engine.cache.total).toBe(3_000_000);
  });

  it('have at least an equal part, and give back what they have borrowed when others need it', () => {
    const budget = { max: 3e6, used: new Uint32Array(3) };
    const [first, second, third] = [open(0, budget), open(1, budget), open(2, budget)];
    first.fill(50);
    second.fill(50);
    expect([first.cache.total, second.cache.total]).toEqual([3_000_000, 1_000_000]);
    first.own.makeRoom(0);
    expect([first.cache.total, second.cache.total]).toEqual([2_000_000, 1_000_000]);
    third.fill(50);
    first.cache.set('new', 'x'.repeat(99_500));
    expect([first, second, third].map(({ cache }) => cache.total)).toEqual([1_000_000, 1_000_000, 1_000_000]);
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

  it('spares entries that were used, once for each use', () => {
    const entries = openFixed<string, number>('receipts', { max: 3 });
    for (const key of ['a', 'b', 'c']) entries.set(key, 1);
    entries.get('a');
    entries.peek('b');
    entries.set('c', 2);
    entries.set('d', 1);
    expect(keysOf(entries)).toEqual(['c', 'a', 'd']);
    entries.set('e', 1);
    entries.set('f', 1);
    expect(keysOf(entries)).toEqual(['c', 'e', 'f']);
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
