/**
 * Where summaries wait that were written ahead, for the fold that will need them: by the prefix they end with, so that a branch, a
 * restart and another instance find those of their own history alone.
 */
import { LRUCache } from 'lru-cache';
import type { Vault } from './vault.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

/** A summary of the messages from `from` to before `upTo`, of which none was folded away when it was written. */
export type ReadySummary = { readonly from: number; readonly upTo: number; readonly body: string };

export interface ReadySummaries {
  /** That of the longest part of this chain; `links[j]` stands for the first j messages. Rejects with `store-failed`. */
  find(tenant: string, links: readonly string[]): Promise<ReadySummary | undefined>;
  /** Rejects with `store-failed`, but remembers it here. */
  record(tenant: string, links: readonly string[], ready: ReadySummary): Promise<void>;
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
      const here = newest(tenant, links);
      const conversation = `${tenant}/${links[1]}`;
      if (here || links[1] === undefined || asked.has(conversation)) return here;
      const from = Math.max(1, links.length - mostLinks);
      const recent = links.slice(from);
      const records = await vault.getSealedMany(tenant, recent.map(keyOf));
      asked.set(conversation, true);
      for (const [at, record] of records.entries()) {
        const ready = record && (decodeRecord(record, 'A summary') as ReadySummary | undefined);
        if (ready && ready.upTo === from + at) known.set(placeOf(tenant, recent[at]!), ready);
      }
      return newest(tenant, links);
    },
    async record(tenant, links, ready) {
      const link = links[ready.upTo];
      if (link === undefined) return;
      known.set(placeOf(tenant, link), ready);
      const content = encodeRecord(ready);
      await vault.putSealed(tenant, [keyOf(link)], content, ttlMs);
    },
  };

  function newest(tenant: string, links: readonly string[]): ReadySummary | undefined {
    for (let at = links.length - 1; at > 0; at--) {
      const ready = known.get(placeOf(tenant, links[at]!));
      if (ready) return ready;
    }
    return undefined;
  }
}

function placeOf(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `summary/${link}`;
}
