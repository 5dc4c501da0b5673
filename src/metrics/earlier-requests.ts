/**
 * Which request came before in the same conversation: found by the links of the prefix chain, as folds are, so that branches keep
 * apart. Bounded; in memory alone.
 */
import { LRUCache } from 'lru-cache';
import type { EarlierRequest } from './money.ts';

/** Where a request stands among others. */
export type Standing = {
  readonly tenant: string;
  /** One link of the prefix chain for each message. */
  readonly links: readonly string[];
  /** The link that all requests of the conversation share. */
  readonly beginning: string | undefined;
};

export interface EarlierRequests {
  /** The newest request that this one goes on from; where a client rewrote its history, the newest that began alike. */
  find(standing: Standing): EarlierRequest | undefined;
  note(standing: Standing, request: EarlierRequest): void;
}

/** A turn adds a few messages; a batch of calls run at once, some dozens. */
const mostNewMessages = 200;

export function createEarlierRequests(most = 20_000): EarlierRequests {
  const requests = new LRUCache<string, EarlierRequest>({ max: most });
  return {
    find({ tenant, links, beginning }) {
      const newestFirst = links.slice(-mostNewMessages).toReversed();
      for (const link of beginning === undefined ? newestFirst : [...newestFirst, beginning]) {
        const found = requests.get(`${tenant} ${link}`);
        if (found) return found;
      }
      return undefined;
    },
    note({ tenant, links, beginning }, request) {
      for (const link of new Set([links.at(-1), beginning]))
        if (link !== undefined) requests.set(`${tenant} ${link}`, request);
    },
  };
}
