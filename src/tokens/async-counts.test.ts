import { describe, expect, it } from 'vitest';
import { createAsyncCounts } from './async-counts.ts';

const estimate = (text: string) => text.length;
const failed = () => undefined;

describe('counts that come later', () => {
  it('are waited for no longer than the deadline, and count when they arrive', async () => {
    const answers = new Map<string, (tokens: number) => void>();
    const counts = createAsyncCounts({
      count: (text) => new Promise((answer) => answers.set(text, answer)),
      estimate,
      failed,
      deadlineMs: 5,
      atOnce: 2,
    });
    expect(await counts.ask(['one', 'two', 'three'])).toBe(false);
    expect([...answers.keys()]).toEqual(['one', 'two']);
    answers.get('one')!(30);
    await Promise.resolve();
    await Promise.resolve();
    expect([counts.known('one'), counts.known('two'), counts.ratio()]).toEqual([30, undefined, 10]);
  });

  it('are requested once for a text, even when two requests ask at once', async () => {
    let calls = 0;
    const counts = createAsyncCounts({
      count: async (text) => {
        calls += 1;
        return Promise.resolve(text.length);
      },
      estimate,
      failed,
    });
    expect(await Promise.all([counts.ask(['one', 'two']), counts.ask(['two', 'one'])])).toEqual([true, true]);
    expect(calls).toBe(2);
  });

  it('are requested again after the pause', async () => {
    let now = 0;
    let isDown = true;
    const counts = createAsyncCounts({
      count: async (text) => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(text.length)),
      estimate,
      failed,
      atOnce: 1,
      clock: () => now,
    });
    expect(await counts.ask(['one', 'two', 'three', 'four'])).toBe(false);
    isDown = false;
    expect(await counts.ask(['one'])).toBe(false);
    now = 30_000;
    expect(await counts.ask(['one'])).toBe(true);
    expect(counts.known('one')).toBe(3);
  });
});
