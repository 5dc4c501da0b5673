/**
 * Where folds are kept, by prefix: the same conversation prefix finds the same edits in every later request, across restarts and
 * across instances. A fold is found by the links of the chain it was made on, so no session id is needed.
 */
import { LRUCache } from 'lru-cache';
import type { Edit } from '../conversation/edit.ts';
import type { Sealed, Vault } from './vault.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

/** A recorded set of edits over the first `length` messages, complete: it holds those of the folds before it too. */
export type Fold = {
  readonly length: number;
  readonly edits: readonly Edit[];
  /** The provider refused this conversation with edits and took it without: it is left alone from here on. */
  readonly alone: boolean;
  /** Index of the first message whose results were made smaller at birth; undefined where that need not be remembered. */
  readonly shrinksFrom?: number | undefined;
  /** When the request was sent that it was made for, in milliseconds since the epoch. */
  readonly at?: number | undefined;
};

/** A fold and how many messages of the conversation are those it was made on: all of its own, or fewer where the newest differ. */
export type FoundFold = { readonly fold: Fold; readonly matched: number };

export interface Ledger {
  /** The newest fold that holds for this chain; `links[j]` stands for the first j messages. Rejects with `store-failed`. */
  find(tenant: string, links: readonly string[]): Promise<FoundFold | undefined>;
  /**
   * Keeps a fold made on the whole chain; also under the last few links from `from` messages on, so that clients which rewrite
   * their newest messages find it. `write` puts it into the store together with what it must not stand there without; by default it
   * stands alone. Rejects with `store-failed`.
   */
  record(
    tenant: string,
    links: readonly string[],
    from: number,
    fold: Omit<Fold, 'length'>,
    write?: (record: Sealed) => Promise<void>,
  ): Promise<void>;
}

type LedgerOptions = {
  readonly vault: Pick<Vault, 'putSealed' | 'getSealedMany'>;
  /** How long a fold is kept, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/** Links a fold is recorded under at most: enough for a newest message or two that the client rewrites. */
const mostLinks = 8;

/**
 * Links asked for in one round trip, newest first; a conversation that goes on finds its fold in the first. Few batches, since a store
 * may be far away, but not one: a process that meets a long conversation anew would be sent all of its folds.
 */
const batchSizes = [64, Number.POSITIVE_INFINITY];

/** What this process knows of a link: its fold, that it has none, or that neither it nor any before it has one. */
type Known = Fold | 'none' | 'none-before';

/** A ledger behind a vault. What this process learns of links is remembered, bounded, so a turn that goes on asks for one or two. */
export function createLedger({ vault, ttlMs = 30 * 24 * 60 * 60 * 1_000 }: LedgerOptions): Ledger {
  const known = new LRUCache<string, Known>({
    maxSize: 400_000,
    sizeCalculation: (knowledge) => (typeof knowledge === 'string' ? 1 : 1 + knowledge.edits.length),
  });

  return {
    async find(tenant, links) {
      const later = new Set<number>();
      let end = links.length;
      for (const size of batchSizes) {
        const start = Math.max(1, end - size);
        await learn(tenant, links, start, end);
        for (let matched = end - 1; matched >= start; matched--) {
          const fold = known.get(keyIn(tenant, links[matched]!));
          if (fold === 'none-before') return undefined;
          if (fold === undefined || fold === 'none') continue;
          if (holds(fold, matched, links.length - 1, later)) return { fold, matched };
        }
        end = start;
      }
      const newest = links.at(-1);
      if (newest !== undefined && later.size === 0) known.set(keyIn(tenant, newest), 'none-before');
      return undefined;
    },
    async record(tenant, links, from, made, write) {
      const length = links.length - 1;
      const fold: Fold = { length, ...made };
      const content = encodeRecord(fold);
      const recorded = links.slice(Math.max(from, length - mostLinks + 1, 1));
      const record = { keys: recorded.map(keyOf), content, ttlMs };
      if (write) await write(record);
      else await vault.putSealed(tenant, record.keys, content, ttlMs);
      for (const link of recorded) known.set(keyIn(tenant, link), fold);
    },
  };

  /** Asks the store for the links of a batch that this process knows nothing of, in one round trip. */
  async function learn(tenant: string, links: readonly string[], start: number, end: number): Promise<void> {
    const unknown: string[] = [];
    for (let at = end - 1; at >= start; at--) {
      const here = known.get(keyIn(tenant, links[at]!));
      if (here === 'none-before') break;
      if (here === undefined) unknown.push(links[at]!);
    }
    if (unknown.length === 0) return;
    const records = await vault.getSealedMany(tenant, unknown.map(keyOf));
    for (const [order, record] of records.entries()) {
      known.set(
        keyIn(tenant, unknown[order]!),
        (record && (decodeRecord(record, 'A fold') as Fold | undefined)) ?? 'none',
      );
    }
  }
}

/**
 * A fold holds for every conversation that goes on from where it was made. Met at a shorter link, it holds only where the
 * conversation took another way from there; a request that ends there was sent before the fold was made, and must be sent so again.
 */
function holds(fold: Fold, matched: number, length: number, later: Set<number>): boolean {
  if (matched === fold.length) return true;
  if (matched === length) later.add(fold.length);
  return !later.has(fold.length);
}

function keyIn(tenant: string, link: string): string {
  return `${tenant}/${link}`;
}

function keyOf(link: string): string {
  return `fold/${link}`;
}
