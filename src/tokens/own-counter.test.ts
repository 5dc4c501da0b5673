import { describe, expect, it } from 'vitest';
import { completeCounter } from './complete-counter.ts';
import type { CountText, OwnCounter } from './own-counter.ts';
import type { TokenCounter } from './token-counter.ts';

/** Counts a tenth of the characters, so that it differs from every counter below. */
const estimate: TokenCounter = {
  name: 'tenths',
  exact: true,
  count: (text) => Math.ceil(text.length / 10),
  image: () => 500,
  overhead: { message: 4, tool: 7, request: 3 },
};

function completed(own: OwnCounter) {
  const warnings: string[] = [];
  return { counter: completeCounter(own, estimate, (message) => warnings.push(message)), warnings };
}

describe('a counter of the user', () => {
  it('may be a bare function; the rest is that of the model', () => {
    const { counter } = completed((text) => text.length);
    expect([counter.count('four'), counter.image(undefined), counter.overhead]).toEqual([
      4,
      500,
      { message: 4, tool: 7, request: 3 },
    ]);
    expect(counter.exact).toBe(false);
    expect(counter.asyncCounts).toBeUndefined();
  });

  it('may bring more than text counts', () => {
    const own = { name: 'mine', exact: true, count: () => 2, image: () => 9, overhead: { message: 1 } };
    const { counter } = completed(own);
    expect([counter.name, counter.exact, counter.count('x'), counter.image(undefined)]).toEqual([
      'mine',
      true,
      2,
      9,
    ]);
    expect(counter.overhead).toEqual({ message: 1, tool: 7, request: 3 });
  });

  it('is identified by its name, under which counts are remembered', () => {
    const one = (text: string) => text.length;
    const other = (text: string) => 2 * text.length;
    const names = [one, other, one].map((own) => completed(own).counter.name);
    expect(names[0]).toBe(names[2]);
    expect(names[0]).not.toBe(names[1]);
  });

  it.each<[string, CountText, string]>([
    [
      'throws',
      (text) => {
        if (text === 'a') return 1;
        throw new Error('out of memory');
      },
      'threw: out of memory',
    ],
    ['returns NaN', (text) => (text === 'a' ? 1 : Number.NaN), 'returned NaN'],
    ['returns less than nothing', (text) => (text === 'a' ? 1 : -5), 'returned -5'],
    [
      'returns a text',
      (text) => (text === 'a' ? 1 : ('5' as unknown as number)),
      'returned a value of the type string',
    ],
    [
      'answers later all of a sudden',
      (text) => (text === 'a' ? 1 : Promise.reject(new Error('busy'))),
      'returned a promise',
    ],
  ])('that %s is estimated for, with one warning', (_, count, what) => {
    const { counter, warnings } = completed({ name: 'mine', count });
    expect([counter.count('x'.repeat(100)), counter.count('x'.repeat(50))]).toEqual([10, 5]);
    expect(warnings).toEqual([`The token counter "mine" ${what}; such texts are counted by tenths.`]);
  });
});

describe('an asynchronous counter of the user', () => {
  const later = (count: (text: string) => Promise<number>) => {
    const { counter, warnings } = completed({ name: 'mine', count });
    return { counter, warnings, later: counter.asyncCounts! };
  };

  it('gives estimates at once that never change, and counts for requested texts', async () => {
    const asked: string[] = [];
    const { counter, later: counts } = later(async (text) => {
      asked.push(text);
      return Promise.resolve(text.length);
    });
    const text = 'x'.repeat(100);
    await counts.ask([text, text, 'four']);
    await counts.ask([text]);
    expect(asked).toEqual(['a', text, 'four']);
    expect([counts.known(text), counts.known('four'), counts.known('other')]).toEqual([100, 4, undefined]);
    expect(counter.count(text)).toBe(10);
    expect(counts.ratio()).toBe(104 / 11);
  });

  it('that fails is paused, and its texts are estimated', async () => {
    let calls = 0;
    const { later: counts, warnings } = later(async () => {
      calls += 1;
      return Promise.reject(new Error('429'));
    });
    const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`);
    await counts.ask(texts);
    const before = calls;
    expect(before).toBeLessThanOrEqual(1 + 16 + 3);
    await counts.ask(texts);
    expect([calls, counts.known('text 0'), counts.ratio()]).toEqual([before, undefined, 1]);
    expect(warnings).toEqual(['The token counter "mine" failed: 429; such texts are counted by tenths.']);
  });
});
