import { describe, expect, it } from 'vitest';
import { inMemoryStore } from './in-memory.ts';
import { createRecallOffers, type Opening } from './recall-offers.ts';
import { createVault } from './vault.ts';

const opening = (beginning: string, ...toolNames: readonly string[]): Opening => ({ beginning, toolNames });

function open() {
  let now = 0;
  const clock = () => now;
  const store = inMemoryStore({ clock });
  const vault = createVault({ store, secret: new Uint8Array(32), clock });
  const at = (ms: number) => {
    now = ms;
  };
  return { vault, offers: createRecallOffers({ vault, ttlMs: 1_000_000_000 }), at };
}

const unknown = expect.objectContaining({ isAgentFolded: false, isOffered: undefined }) as unknown;

describe('what is known of offers', () => {
  it('is of an agent by its tenant and its tools, in every process, for as long as is said', async () => {
    const { vault, offers, at } = open();
    await vault.keep('t', [], offers.agentRecordOf(opening('a', 'read', 'write')));
    const other = createRecallOffers({ vault });
    const asked = opening('b', 'write', 'read');
    const known = { opening: asked, isAgentFolded: true, isOffered: undefined };
    expect(await other.find('t', asked)).toEqual(known);
    expect(await other.find('t', opening('a', 'read'))).toEqual(unknown);
    expect(await other.find('t', opening('a', 'read,write'))).toEqual(unknown);
    expect(await other.find('u', opening('a', 'read', 'write'))).toEqual(unknown);
    at(1_000_000_001);
    expect(await other.find('t', opening('b', 'write', 'read'))).toEqual(unknown);
  });

  it('is of a conversation by how it begins and by its agent, for half a day after its last request', async () => {
    const { vault, offers, at } = open();
    await vault.keep('t', [], offers.recordOf(opening('a', 'read', 'write'), false));
    await vault.keep('t', [], offers.recordOf(opening('b', 'read'), true));
    const isOffered = async (one: Opening) => (await offers.find('t', one)).isOffered;
    expect(await isOffered(opening('a', 'write', 'read'))).toBe(false);
    expect(await isOffered(opening('b', 'read'))).toBe(true);
    expect(await isOffered(opening('a', 'read'))).toBeUndefined();
    at(12 * 60 * 60 * 1_000 + 1);
    expect(await isOffered(opening('b', 'read'))).toBeUndefined();
  });
});
