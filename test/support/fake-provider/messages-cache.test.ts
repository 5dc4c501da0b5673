import { describe, expect, it } from 'vitest';
import { promptCache } from './messages-cache.ts';
import type { JsonObject } from './script.ts';

const long = 'word '.repeat(2_000);
const say = (text: string, isMarked = false): JsonObject => ({
  role: 'user',
  content: [{ type: 'text', text, ...(isMarked ? { cache_control: { type: 'ephemeral' } } : {}) }],
});
const ask = (messages: readonly JsonObject[], more: JsonObject = {}) =>
  ({ body: { messages, ...more }, model: 'm', reply: 'whole' }) as const;

describe('the cache of Messages', () => {
  it('keeps what is marked, and nothing else', () => {
    const cache = promptCache();
    expect(cache(ask([say(long)]))).toEqual({ cacheRead: 0, cacheWrite: 0 });
    const { cacheRead, cacheWrite } = cache(ask([say(long, true), say('a')]));
    expect(cacheRead).toBe(0);
    expect(cacheWrite).toBeGreaterThan(2_500);
    expect(cache(ask([say(long, true), say('b')]))).toEqual({ cacheRead: cacheWrite, cacheWrite: 0 });
    const grown = cache(ask([say(long), say('b'), say(long, true)]));
    expect(grown.cacheRead).toBe(cacheWrite);
    expect(grown.cacheWrite).toBeGreaterThan(2_500);
  });

  it('counts a string as one text block, and marks as no content', () => {
    const cache = promptCache();
    const { cacheWrite } = cache(ask([say(long, true)]));
    expect(cache(ask([{ role: 'user', content: long }, say('a', true)])).cacheRead).toBe(cacheWrite);
  });

  it('looks back 20 blocks from a mark', () => {
    const more = (count: number) => Array.from({ length: count }, (_, at) => say(`${at}`));
    for (const [between, found] of [
      [18, true],
      [19, false],
    ] as const) {
      const cache = promptCache();
      cache(ask([say(long, true)]));
      const { cacheRead } = cache(ask([say(long), ...more(between), say('end', true)]));
      expect(cacheRead > 0).toBe(found);
    }
  });

  it('does not serve a short prompt, another model, or another beginning', () => {
    const cache = promptCache();
    cache(ask([say('short', true)]));
    expect(cache(ask([say('short', true)]))).toEqual({ cacheRead: 0, cacheWrite: 0 });
    cache(ask([say(long, true)]));
    expect(cache({ ...ask([say(long, true)]), model: 'n' }).cacheRead).toBe(0);
    expect(cache(ask([say(long, true)], { system: 'Be brief.' })).cacheRead).toBe(0);
  });
});
