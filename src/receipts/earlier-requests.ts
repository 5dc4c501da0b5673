/**
 * Which request came before in the same conversation: found by the links of the prefix chain, as folds are, so that branches keep
 * apart. Bounded; in memory alone.
 */
import { LRUCache } from 'lru-cache';
import type { EarlierRequest } from './baseline-cost.ts';

/** Where a request stands among others. */
export type Standing = {
  readonly tenant: string;
  /** One link of the prefix chain for each message. */
  readonly links: readonly string[];
  /** The link that all requests of the conversation share. */
  readonly beginning: string | undefined;
};

export type FoundRequest = {
  readonly earlier: EarlierRequest | undefined;
  /** True for one that this request begins with; false for one that only began alike, as where a client rewrote its history. */
  readonly continues: boolean;
};

export interface EarlierRequests {
  /** The newest request that this one goes on from, or else the newest that began alike. */
  find(standing: Standing): FoundRequest;
  note(standing: Standing, request: EarlierRequest): void;
}

/** A turn adds a few messages; a batch of calls run at once, some dozens. */
const mostNewMessages = 200;

/** `most`: requests are remembered so many by their last message, and so many by how they begin. */
export function createEarlierRequests(most = 10_000): EarlierRequests {
  const byLast = new LRUCache<string, EarlierRequest>({ max: most });
  const byBeginning = new LRUCache<string, EarlierRequest>({ max: most });
  return {
    find({ tenant, links, beginning }) {
      for (const link of links.slice(-mostNewMessages).toReversed()) {
        const earlier = byLast.get(`${tenant} ${link}`);
        if (earlier) return { earlier, continues: true };
      }
      return { earlier: byBeginning.get(`${tenant} ${beginning}`), continues: false };
    },
    note({ tenant, links, beginning }, request) {
      const last = links.at(-1);
      if (last !== undefined) byLast.set(`${tenant} ${last}`, request);
      if (beginning !== undefined) byBeginning.set(`${tenant} ${beginning}`, request);
    },
  };
}
