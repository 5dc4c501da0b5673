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
  /** Of the conversation as its client sent it. */
  readonly length: number;
  readonly edits: readonly Edit[];
  /** The provider refused this conversation with edits and took it without: it is left alone from here on. */
  readonly alone: boolean;
  /** What the edits name places in; undefined where there are none. */
  readonly over?: Prefix | undefined;
  /** Index of the first message whose results were made smaller at birth; undefined where that need not be remembered. */
  readonly shrinksFrom?: number | undefined;
  /** When the request was sent that it was made for, in milliseconds since the epoch. */
  readonly at?: number | undefined;
};

/** So many messages of a conversation with what its model recalled in private, by the link that stands for them. */
export type Prefix = { readonly messages: number; readonly link: string };

/** A fold and how many messages of the conversation are those it was made on: all of its own, or fewer where the newest differ. */
export type FoundFold = { readonly fold: Fold; readonly matched: number };

export interface Ledger {
  /**
   * The folds that hold for this chain, the newest first; `links[j]` stands for the first j messages as the client sent them. One round
   * trip at most: of those far back only the newest is found. Rejects with `store-failed`.
   */
  find(tenant: string, links: readonly string[]): Promise<readonly FoundFold[]>;
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
  readonly vault: Pick<Vault, 'putSealed' | 'getSealedMany' | 'getSealedFirst'>;
  /** How long a fold is kept, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/** Links a fold is recorded under at most: enough for a newest message or two that the client rewrites. */
const mostLinks = 8;

/**
 * The newest links, all of which are asked for; a conversation that goes on finds its fold among them. Of those before only the newest
 * that has a fold is: a process that meets a long conversation anew would be sent all of its folds.
 */
const newestLinks = 64;

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
      await learn(tenant, links);
      const found: FoundFold[] = [];
      const later = new Set<number>();
      for (let matched = links.length - 1; matched > 0; matched--) {
        const fold = known.get(keyIn(tenant, links[matched]!));
        // Further back nobody looked, or need look.
        if (fold === undefined || fold === 'none-before') return found;
        if (found.length > 0 && matched < links.length - newestLinks) return found;
        if (fold !== 'none' && holds(fold, matched, links.length - 1, later)) found.push({ fold, matched });
      }
      if (links.length > 1 && later.size === 0 && found.length === 0)
        known.set(keyIn(tenant, links.at(-1)!), 'none-before');
      return found;
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

  /** Asks the store for what this process does not know of these links, back to the newest fold that it knows. */
  async function learn(tenant: string, links: readonly string[]): Promise<void> {
    const unknown = unknownOf(tenant, links);
    const newest = unknown.filter((at) => at >= links.length - newestLinks);
    const older = unknown.slice(newest.length);
    const keysOf = (places: readonly number[]) => places.map((at) => keyOf(links[at]!));
    // Started at once, so that both are one round trip.
    const [records, first] = await Promise.all([
      newest.length > 0 ? vault.getSealedMany(tenant, keysOf(newest)) : [],
      older.length > 0 ? vault.getSealedFirst(tenant, keysOf(older)) : undefined,
    ]);
    for (const [order, at] of newest.entries()) learned(tenant, links[at]!, records[order]);
    const none = older.slice(0, first?.at ?? older.length);
    for (const at of none) learned(tenant, links[at]!, undefined);
    if (first) learned(tenant, links[older[first.at]!]!, first.content);
  }

  function unknownOf(tenant: string, links: readonly string[]): readonly number[] {
    const unknown: number[] = [];
    for (let at = links.length - 1; at > 0; at--) {
      const here = known.get(keyIn(tenant, links[at]!));
      if (here === undefined) unknown.push(at);
      else if (here === 'none-before' || (here !== 'none' && here.length < links.length)) break;
    }
    return unknown;
  }

  function learned(tenant: string, link: string, record: Uint8Array | undefined): void {
    const fold = record && (decodeRecord(record, 'A fold') as Fold | undefined);
    known.set(keyIn(tenant, link), fold ?? 'none');
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
