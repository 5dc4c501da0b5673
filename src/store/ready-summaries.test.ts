import { describe, expect, it } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { createReadySummaries } from './ready-summaries.ts';
import { createEncryptedStore } from './encrypted-store.ts';

const encryptedStore = createEncryptedStore({ store: inMemoryStore(), secret: new Uint8Array(32).fill(3) });
/** Another process with the same store. */
const open = () => createReadySummaries({ encryptedStore });

/** Returns prefix hashes of a conversation whose messages are these letters. */
const chain = (letters: string) =>
  Array.from({ length: letters.length + 1 }, (_, at) => `link-${letters.slice(0, at)}`);

describe('ready summaries', () => {
  it('are found by conversations that begin with all summarized messages, the longest first, also by other processes', async () => {
    const summaries = open();
    const short = { from: 1, upTo: 3, link: 'link-abc', body: 'abc' };
    const long = { from: 1, upTo: 5, link: 'link-abcde', body: 'abcde' };
    await summaries.record('one', short.link, short);
    await summaries.record('one', long.link, long);
    for (const process of [summaries, open()]) {
      expect(await process.find('one', chain('abcdefghij'))).toMatchObject([long, short]);
      expect(await process.find('one', chain('abcdxyz'))).toMatchObject([short]);
      expect(await process.find('one', chain('abX'))).toEqual([]);
    }
  });

  it('are not found for another tenant, nor for a conversation without messages', async () => {
    await open().record('one', 'link-pq', { from: 0, upTo: 2, link: 'link-pq', body: 'pq' });
    expect(await open().find('two', chain('pqrs'))).toEqual([]);
    expect(await open().find('one', chain(''))).toEqual([]);
  });

  describe('with a lease', () => {
    const start = () => {
      let now = 1_000;
      const clock = () => now;
      const shared = createEncryptedStore({
        store: inMemoryStore({ clock }),
        secret: new Uint8Array(32).fill(3),
        clock,
      });
      return {
        instance: () => createReadySummaries({ encryptedStore: shared, clock }),
        pass: (ms: number) => void (now += ms),
      };
    };
    const links = chain('abcdefgh');
    const ready = { from: 0, upTo: 4, link: 'link-abcd', body: 'abcd' };

    it('are left to the instance with the lease until it ends, and so are later ones of the conversation', async () => {
      const { instance, pass } = start();
      const [one, other] = [instance(), instance()];
      expect(await one.claim('t', links, { foundBy: 4, known: 0 }, 60_000)).toBe(true);
      expect(await other.claim('t', links, { foundBy: 4, known: 0 }, 60_000)).toBe(false);
      expect(await other.claim('t', links, { foundBy: 6, known: 0 }, 60_000)).toBe(false);
      // Another branch, and another tenant.
      expect(await other.claim('t', chain('abcXY'), { foundBy: 4, known: 0 }, 60_000)).toBe(true);
      expect(await other.claim('u', links, { foundBy: 4, known: 0 }, 60_000)).toBe(true);
      pass(59_999);
      expect(await other.claim('t', links, { foundBy: 4, known: 0 }, 60_000)).toBe(false);
      // The other instance may have crashed.
      pass(1);
      expect(await other.claim('t', links, { foundBy: 6, known: 0 }, 60_000)).toBe(true);
    });

    it('are leased by only one of many instances that claim them at once', async () => {
      const { instance } = start();
      const claims = await Promise.all(
        Array.from({ length: 12 }, () => instance().claim('t', links, { foundBy: 4, known: 0 }, 60_000)),
      );
      expect(claims.filter((isMine) => isMine)).toEqual([true]);
    });

    it('are found by the other instances as soon as they are stored', async () => {
      const { instance } = start();
      const [one, other] = [instance(), instance()];
      expect(await other.find('t', links)).toEqual([]);
      await one.claim('t', links, { foundBy: 4, known: 0 }, 60_000);
      await other.claim('t', links, { foundBy: 4, known: 0 }, 60_000);
      expect(await other.find('t', links)).toEqual([]);
      await one.record('t', links[4]!, ready);
      expect(await other.find('t', links)).toEqual([{ ...ready, matched: 4 }]);
    });

    it('are not written again if the store has one that this process did not know', async () => {
      const { instance, pass } = start();
      const [one, other] = [instance(), instance()];
      expect(await other.find('t', links)).toEqual([]);
      await one.claim('t', links, { foundBy: 4, known: 0 }, 60_000);
      await one.record('t', links[4]!, ready);
      pass(60_000);
      expect(await other.claim('t', links, { foundBy: 6, known: 0 }, 60_000)).toBe(false);
      expect(await other.find('t', links)).toEqual([{ ...ready, matched: 4 }]);
      // A later summary is.
      expect(await other.claim('t', links, { foundBy: 6, known: 4 }, 60_000)).toBe(true);
    });
  });
});
