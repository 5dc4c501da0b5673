/**
 * What this process sent last for each conversation, found by its prefix chain: digests and counts, never content. It is only ever
 * compared with what is sent next; after a restart it is empty, and each conversation begins anew.
 */
import { LRUCache } from 'lru-cache';
import type { Habit } from './cache-marks.ts';

export type SentRequest = {
  /** Digests of what the messages said as they were sent; marks for a provider's cache are not in them. */
  readonly messages: readonly string[];
  /** How many edits made them, of how many messages. */
  readonly edits: number;
  readonly length: number;
  /** What stood before the messages: names what it was sent to, too. */
  readonly preamble: string;
  /** Milliseconds. */
  readonly at: number;
  /** How many messages the request before this one was sent with, if they are the first of these. */
  readonly earlier: number | undefined;
  readonly habit: Habit;
};

/** `isAgain`: not the request before, but this very one, sent again or counted first. */
export type Found = { readonly request: SentRequest; readonly isAgain: boolean };

export interface LastSent {
  /** `links` of the conversation as the client sent it. */
  find(links: readonly string[]): Found | undefined;
  /** Takes the place of what is found for these links. */
  record(links: readonly string[], request: SentRequest): void;
}

/** `most` digests are kept. */
export function createLastSent(most = 400_000): LastSent {
  const requests = new LRUCache<string, SentRequest>({
    maxSize: most,
    sizeCalculation: ({ messages }) => 1 + messages.length,
  });
  // The first link stands for no message at all.
  const newest = (links: readonly string[]) => links.slice(1).findLast((link) => requests.has(link));
  return {
    find(links) {
      const link = newest(links);
      const request = link === undefined ? undefined : requests.get(link);
      return request && { request, isAgain: link === links.at(-1) };
    },
    record(links, request) {
      const link = newest(links);
      if (link !== undefined) requests.delete(link);
      requests.set(links.at(-1)!, request);
    },
  };
}
