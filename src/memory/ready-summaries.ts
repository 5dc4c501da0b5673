/**
 * Where summaries wait that were written ahead, for the fold that will need them: by a prefix that has all that they stand for, so that a
 * branch, a restart and another instance find those of their own history alone.
 */
import { LRUCache } from 'lru-cache';
import type { Vault } from './vault.ts';
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
  find(tenant: string, links: readonly string[]): Promise<readonly ReadySummary[]>;
  /** To be found by all that begin with the prefix `link` stands for. Rejects with `store-failed`, but remembers it here. */
  record(tenant: string, link: string, ready: ReadySummary): Promise<void>;
}

type ReadySummariesOptions = {
  readonly vault: Pick<Vault, 'putSealed' | 'getSealedMany'>;
  /** How long one is kept, in milliseconds. Default a day: the fold it was written for comes within hours, or never. */
  readonly ttlMs?: number | undefined;
};

/** Links asked for in the store, the newest: a summary written ahead ends not far behind what is newest. */
const mostLinks = 128;

/** Behind a vault. The store is asked once for each conversation that this process meets; what others write later it does not see. */
export function createReadySummaries({
  vault,
  ttlMs = 24 * 60 * 60 * 1_000,
}: ReadySummariesOptions): ReadySummaries {
  const known = new LRUCache<string, ReadySummary>({ max: 2_000 });
  const asked = new LRUCache<string, true>({ max: 10_000 });

  return {
    async find(tenant, links) {
      const here = newestOf(tenant, links);
      const conversation = `${tenant}/${links[1]}`;
      if (here.length > 0 || links[1] === undefined || asked.has(conversation)) return here;
      const recent = links.slice(Math.max(1, links.length - mostLinks));
      const records = await vault.getSealedMany(tenant, recent.map(keyOf));
      asked.set(conversation, true);
      for (const [at, record] of records.entries()) {
        const ready = record && (decodeRecord(record, 'A summary') as ReadySummary | undefined);
        if (ready) known.set(placeOf(tenant, recent[at]!), ready);
      }
      return newestOf(tenant, links);
    },
    async record(tenant, link, ready) {
      known.set(placeOf(tenant, link), ready);
      const content = encodeRecord(ready);
      await vault.putSealed(tenant, [keyOf(link)], content, ttlMs);
    },
  };

  function newestOf(tenant: string, links: readonly string[]): readonly ReadySummary[] {
    return links
      .slice(1)
      .flatMap((link) => known.get(placeOf(tenant, link)) ?? [])
      .toReversed();
  }
}

function placeOf(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `summary/${link}`;
}
