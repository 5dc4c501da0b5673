import { describe, expect, it } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { createReadySummaries } from './ready-summaries.ts';
import { createVault } from './vault.ts';

const vault = createVault({ store: inMemoryStore(), secret: new Uint8Array(32).fill(3) });
/** A process of its own over the same store. */
const open = () => createReadySummaries({ vault });

/** Links of a chain whose messages are named by these letters. */
const chain = (letters: string) =>
  Array.from({ length: letters.length + 1 }, (_, at) => `link-${letters.slice(0, at)}`);

describe('ready summaries', () => {
  it('are found by what begins with all that they stand for, the longest first, by other processes too', async () => {
    const summaries = open();
    const short = { from: 1, upTo: 3, link: 'link-abc', body: 'abc' };
    const long = { from: 1, upTo: 5, link: 'link-abcde', body: 'abcde' };
    await summaries.record('one', short.link, short);
    await summaries.record('one', long.link, long);
    for (const process of [summaries, open()]) {
      expect(await process.find('one', chain('abcdefghij'))).toEqual([long, short]);
      expect(await process.find('one', chain('abcdxyz'))).toEqual([short]);
      expect(await process.find('one', chain('abX'))).toEqual([]);
    }
  });

  it('are not found for another tenant, nor for a conversation without messages', async () => {
    await open().record('one', 'link-pq', { from: 0, upTo: 2, link: 'link-pq', body: 'pq' });
    expect(await open().find('two', chain('pqrs'))).toEqual([]);
    expect(await open().find('one', chain(''))).toEqual([]);
  });
});
