/**
 * Where summaries wait that were written ahead, for the fold that will need them: by a prefix that has all that they stand for, so that a
 * branch, a restart and another instance find those of their own history alone. Who writes one says so first, for as long as it may
 * take, so that each is written once.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from './store.ts';
import type { EncryptedStore } from './encrypted-store.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

/** A summary of the messages from `from` to before `upTo`, of which none was folded away when it was written. */
export type ReadySummary = {
  readonly from: number;
  readonly upTo: number;
  /** Stands for the first `upTo` messages, with what was recalled in private. */
  readonly link: string;
  readonly body: string;
};

export interface ReadySummaries {
  /**
   * Those that may be for this chain, the newest first: `links[j]` stands for the first j messages as the client sent them, and a summary
   * is for a conversation that has its `link`. Rejects with `store-failed`.
   */
  find(tenant: string, links: readonly string[]): Promise<readonly FoundSummary[]>;
  /**
   * Whether to write one: not where another instance does, or has, for as many messages or fewer, beyond what is known. For `forMs` nobody
   * else will, so a process that ends meanwhile holds it up for no longer. Rejects with `store-failed`.
   */
  claim(tenant: string, links: readonly string[], place: SummaryPlace, forMs: number): Promise<boolean>;
  /** To be found by all that begin with the prefix `link` stands for. Rejects with `store-failed`, but remembers it here. */
  record(tenant: string, link: string, ready: ReadySummary): Promise<void>;
}

/** By how many messages of the client it was found. */
export type FoundSummary = ReadySummary & { readonly matched: number };

/** By what a summary is to be found, and what there is of earlier ones: the messages of the client that are in front. */
export type SummaryPlace = { readonly foundBy: number; readonly known: number };

type ReadySummariesOptions = {
  readonly encryptedStore: Pick<EncryptedStore, 'putSealed' | 'getSealedMany' | 'keep'>;
  /** How long one is kept, in milliseconds. Default a day: the fold it was written for comes within hours, or never. */
  readonly ttlMs?: number | undefined;
  readonly clock?: Clock | undefined;
};

/** Links asked for in the store, the newest: a summary written ahead ends not far behind what is newest. */
const mostLinks = 128;

/**
 * Behind an encrypted store. The store is asked once for each conversation that this process meets, and while another instance writes for it; what
 * others write besides it does not see.
 */
export function createReadySummaries({
  encryptedStore,
  ttlMs = 24 * 60 * 60 * 1_000,
  clock = Date.now,
}: ReadySummariesOptions): ReadySummaries {
  const known = new LRUCache<string, ReadySummary>({ max: 2_000 });
  /** Until when another instance may be writing; in the past where none is known to. */
  const asked = new LRUCache<string, number>({ max: 10_000 });

  return {
    async find(tenant, links) {
      const here = newestOf(tenant, links);
      if (links[1] === undefined) return here;
      const conversation = keyIn(tenant, links[1]);
      const expected = asked.get(conversation);
      const isExpected = expected !== undefined && expected > clock();
      if (!isExpected && (here.length > 0 || expected !== undefined)) return here;
      const recent = links.slice(Math.max(1, links.length - mostLinks));
      const records = await encryptedStore.getSealedMany(tenant, recent.map(keyOf));
      if (!isExpected) asked.set(conversation, 0);
      for (const [at, record] of records.entries()) learn(tenant, recent[at]!, record);
      return newestOf(tenant, links);
    },
    async claim(tenant, links, { foundBy, known: before }, forMs) {
      const link = links[foundBy]!;
      const between = links.slice(Math.max(before + 1, foundBy - mostLinks + 1), foundBy + 1).toReversed();
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
