/**
 * Remembers how to continue a reply that the provider stores, by the response id that the client knows: the provider's stored reply may
 * end with a private call that must be answered first.
 */
import { LRUCache } from 'lru-cache';
import type { KeptReply } from '../conversation/hidden-recall.ts';
import { type EncryptedStore, sha256 } from './encrypted-store.ts';
import type { Clock } from './store.ts';
import { decodeRecord, encodeRecord } from './sealing.ts';

export interface KeptReplies {
  /** Returns the reply that this process remembers, without reading the store. */
  known(tenant: string, knownAs: string): KeptReply | undefined;
  /**
   * Finds a reply and renews its expiry. Undefined for most replies: they can be continued as they are. Rejects with `store-failed`.
   */
  find(tenant: string, knownAs: string): Promise<KeptReply | undefined>;
  /** Stores a reply. Rejects with `store-failed`, but this process remembers the reply. */
  record(tenant: string, knownAs: string, reply: KeptReply): Promise<void>;
}

type KeptRepliesOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'renewSealed'>;
  /** How long a reply is kept after it was last continued, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
};

/** The format on disk. `at`: when the record was written, in milliseconds since the epoch; earlier releases did not write it. */
type StoredReply = {
  readonly name: string;
  readonly owed: KeptReply['pendingAnswers'];
  readonly at?: number;
};

/** Creates the store of kept replies. It remembers a bounded number in memory, so it also works while the store is down. */
export function createKeptReplies({
  encryptedStore,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
  clock = Date.now,
}: KeptRepliesOptions): KeptReplies {
  const known = new LRUCache<string, KeptReply>({
    maxSize: 16 * 1024 * 1024,
    sizeCalculation: ({ pendingAnswers }) => pendingAnswers.reduce((sum, { text }) => sum + text.length, 200),
  });

  function findHere(tenant: string, knownAs: string): KeptReply | undefined {
    const here = known.get(`${tenant}/${knownAs}`);
    if (here) encryptedStore.renewSealed(tenant, keyOf(knownAs), ttlMs);
    return here;
  }

  return {
    known: findHere,
    async find(tenant, knownAs) {
      const here = findHere(tenant, knownAs);
      if (here) return here;
      const [record] = await encryptedStore.getSealedMany(tenant, [keyOf(knownAs)]);
      const stored = record && (decodeRecord(record, 'A kept reply') as StoredReply | undefined);
      if (!stored) return undefined;
      const { at, name, owed: pendingAnswers } = stored;
      const reply = { name, pendingAnswers };
      known.set(`${tenant}/${knownAs}`, reply);
      encryptedStore.renewSealed(tenant, keyOf(knownAs), ttlMs, { writtenAt: at });
      return reply;
    },
    async record(tenant, knownAs, reply) {
      // Before anything can fail.
      known.set(`${tenant}/${knownAs}`, reply);
      const stored: StoredReply = { name: reply.name, owed: reply.pendingAnswers, at: clock() };
      const content = encodeRecord(stored);
      await encryptedStore.putSealed(tenant, [keyOf(knownAs)], content, ttlMs);
    },
  };
}

/** Names come from outside, and keys are stored in clear. */
function keyOf(knownAs: string): string {
  return `kept/${sha256(new TextEncoder().encode(knownAs))}`;
}
