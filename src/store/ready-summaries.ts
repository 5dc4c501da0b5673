/**
 * Stores summaries that were written ahead of the fold that will need them. They are found by a prefix that contains all summarized
 * messages, so a branch, a restart and another instance find only summaries of their own history. A writer takes a lease first, so only
 * one instance writes a summary.
 */
import { openFixed } from '../caches.ts';
import type { Clock } from './store.ts';
import type { EncryptedStore } from './encrypted-store.ts';
import { decodeRecord, encodeRecord } from './records.ts';

/** A summary of the messages from index `from` up to, not including, `upTo`. None of them was folded when it was written. */
export type ReadySummary = {
  readonly from: number;
  readonly upTo: number;
  /** The hash of the first `upTo` messages, hidden recalls included. */
  readonly link: string;
  readonly body: string;
};

export interface ReadySummaries {
  /**
   * Finds summaries that may belong to a conversation, newest first. `links[j]` is the hash of its first j messages as the client sent them.
   * A summary belongs to a conversation that has the summary's `link`. Rejects with `store-failed`.
   */
  find(tenant: string, links: readonly string[]): Promise<readonly FoundSummary[]>;
  /**
   * Takes the lease to write a summary. Returns false if another instance is writing, or has written, one of as many messages or fewer
   * that goes beyond the known one. The lease lasts `forMs` milliseconds, so a process that ends holds others up no longer. Rejects with
   * `store-failed`.
   */
  claim(tenant: string, links: readonly string[], place: SummaryPlace, forMs: number): Promise<boolean>;
  /** Stores a summary for conversations that begin with the prefix with hash `link`. Rejects with `store-failed`, but this process remembers it. */
  record(tenant: string, link: string, ready: ReadySummary): Promise<void>;
}

/** A summary, and how many messages of the client its prefix has. */
export type FoundSummary = ReadySummary & { readonly matched: number };

/** The prefix by which a new summary is to be found, and that of the known one before it, both as numbers of client messages. */
export type SummaryPlace = { readonly foundBy: number; readonly known: number };

type ReadySummariesOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'keep'>;
  /** How long a summary is kept, in milliseconds. Default one day: the fold it was written for comes within hours, or never. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
};

/** The number of newest prefixes that are looked up: a summary written ahead ends close to the newest message. */
const maxLinks = 128;

/**
 * Creates the store of ready summaries. It reads the store once per conversation that is new to this process, and again while another
 * instance writes a summary for it. It does not see other summaries that other instances write.
 */
export function createReadySummaries({
  encryptedStore,
  ttlMs = 24 * 60 * 60 * 1_000,
  clock = Date.now,
}: ReadySummariesOptions): ReadySummaries {
  const known = openFixed<string, ReadySummary>('summaries ahead');
  /** When the lease of another instance ends; a time in the past if none is known. */
  const asked = openFixed<string, number>('summary leases');

  return {
    async find(tenant, links) {
      const here = newestOf(tenant, links);
      if (links[1] === undefined) return here;
      const conversation = keyIn(tenant, links[1]);
      const expected = asked.get(conversation);
      const isExpected = expected !== undefined && expected > clock();
      if (!isExpected && (here.length > 0 || expected !== undefined)) return here;
      const recent = links.slice(Math.max(1, links.length - maxLinks));
      const records = await encryptedStore.getSealedMany(tenant, recent.map(keyOf));
      if (!isExpected) asked.set(conversation, 0);
      for (const [at, record] of records.entries()) learn(tenant, recent[at]!, record);
      return newestOf(tenant, links);
    },
    async claim(tenant, links, { foundBy, known: before }, forMs) {
      const link = links[foundBy]!;
      const between = links.slice(Math.max(before + 1, foundBy - maxLinks + 1), foundBy + 1).toReversed();
      const mine = leaseOf(link);
      const inTheWay = await encryptedStore.keep(tenant, [], {
        keys: [mine],
        content: encodeRecord({}),
        ttlMs: forMs,
        unless: [mine, ...between.flatMap((one) => [keyOf(one), leaseOf(one)])],
      });
      if (inTheWay === undefined) return true;
      const isReady = inTheWay.at % 2 === 1;
      if (isReady) learn(tenant, between[(inTheWay.at - 1) / 2]!, inTheWay.content);
      else asked.set(keyIn(tenant, links[1]!), clock() + forMs);
      return false;
    },
    async record(tenant, link, ready) {
      known.set(keyIn(tenant, link), ready);
      const content = encodeRecord(ready);
      await encryptedStore.putSealed(tenant, [keyOf(link)], content, ttlMs);
    },
  };

  function learn(tenant: string, link: string, record: Uint8Array | undefined): void {
    const ready = record && (decodeRecord(record, 'A summary') as ReadySummary | undefined);
    if (ready) known.set(keyIn(tenant, link), ready);
  }

  function newestOf(tenant: string, links: readonly string[]): readonly FoundSummary[] {
    return links
      .flatMap((link, matched) => {
        const ready = matched > 0 && known.get(keyIn(tenant, link));
        return ready ? { ...ready, matched } : [];
      })
      .toReversed();
  }
}

function keyIn(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `summary/${link}`;
}

function leaseOf(link: string): string {
  return `writing/${link}`;
}
