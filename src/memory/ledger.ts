/**
 * Where folds are kept, by prefix: the same conversation prefix finds the same edits in every later request, across restarts and
 * across instances. A fold is found by the newest link of the chain it was made on, so no session id is needed.
 */
import { LRUCache } from 'lru-cache';
import type { Edit } from '../conversation/edit.ts';
import { LeporelloError } from '../errors.ts';
import type { Vault } from './vault.ts';

/** A recorded set of edits over the first `length` messages, complete: it holds those of the folds before it too. */
export type Fold = { readonly length: number; readonly edits: readonly Edit[] };

export interface Ledger {
  /**
   * Folds made on this chain, newest first, each with the length of the prefix it was found by. `links[j]` stands for the first
   * j messages. Rejects with `store-failed`.
   */
  find(tenant: string, links: readonly string[]): Promise<FoundFold | undefined>;
  /** Keeps a fold of the whole chain, and under the links from `from` messages on, for clients that change their newest message. */
  record(tenant: string, links: readonly string[], from: number, edits: readonly Edit[]): Promise<void>;
}

export type FoundFold = { readonly fold: Fold; readonly matched: number };

type LedgerOptions = {
  readonly vault: Pick<Vault, 'putSealed' | 'getSealedMany'>;
  /** How long an unused fold is kept, in milliseconds. Default 30 days. */
  readonly ttlMs?: number;
};

/** Links a fold is recorded under at most: enough for a newest message or two that the client rewrites. */
const mostLinks = 8;

/** Links asked for in one round trip, newest first; a conversation that goes on finds its fold in the first. */
const batches = [8, 64, Number.POSITIVE_INFINITY];

export function createLedger({ vault, ttlMs = 30 * 24 * 60 * 60 * 1_000 }: LedgerOptions): Ledger {
  // What this process knows already: a fold, or that there is none at or before this link.
  const known = new LRUCache<string, FoundFold | 'none'>({ max: 50_000 });
  const decoder = new TextDecoder();

  return {
    async find(tenant, links) {
      let end = links.length;
      let found: FoundFold | undefined;
      for (const size of batches) {
        const start = Math.max(1, end - size);
        const step = await search(tenant, links, start, end);
        if (step.status !== 'continue') {
          found = step.status === 'found' ? step.fold : undefined;
          break;
        }
        end = start;
      }
      const last = links.at(-1);
      if (last !== undefined) known.set(`${tenant}/${last}`, found ?? 'none');
      return found;
    },
    async record(tenant, links, from, edits) {
      const length = links.length - 1;
      const content = new TextEncoder().encode(JSON.stringify({ version: 1, length, edits }));
      const first = Math.max(from, length - mostLinks + 1, 1);
      for (let matched = length; matched >= first; matched--) {
        await vault.putSealed(tenant, keyOf(links[matched]!), content, ttlMs);
        known.set(`${tenant}/${links[matched]}`, { fold: { length, edits }, matched });
      }
    },
  };

  async function search(tenant: string, links: readonly string[], start: number, end: number) {
    const asked: number[] = [];
    for (let at = end - 1; at >= start; at--) {
      const memo = known.get(`${tenant}/${links[at]}`);
      if (memo === undefined) {
        asked.push(at);
        continue;
      }
      const stored = await fetchNewest(tenant, links, asked);
      if (stored) return { status: 'found', fold: stored } as const;
      return memo === 'none' ? ({ status: 'none' } as const) : ({ status: 'found', fold: memo } as const);
    }
    const stored = await fetchNewest(tenant, links, asked);
    return stored ? ({ status: 'found', fold: stored } as const) : ({ status: 'continue' } as const);
  }

  async function fetchNewest(
    tenant: string,
    links: readonly string[],
    asked: readonly number[],
  ): Promise<FoundFold | undefined> {
    if (asked.length === 0) return undefined;
    const records = await vault.getSealedMany(
      tenant,
      asked.map((at) => keyOf(links[at]!)),
    );
    for (const [order, record] of records.entries()) {
      const fold = record && parseFold(decoder.decode(record));
      if (fold) return { fold, matched: asked[order]! };
    }
    return undefined;
  }
}

function keyOf(link: string): string {
  return `fold/${link}`;
}

/** Records are sealed by us, so only their version is checked; one of a later version counts as absent. */
function parseFold(json: string): Fold | undefined {
  try {
    const value = JSON.parse(json) as Fold & { readonly version: number };
    return value.version === 1 ? { length: value.length, edits: value.edits } : undefined;
  } catch (cause) {
    throw new LeporelloError(
      'store-failed',
      'A fold in the store is not JSON. Delete the data folder to start anew.',
      { cause },
    );
  }
}
