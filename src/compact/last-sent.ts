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

/**
 * `matched`: how many messages of the client it had, which are the first of these. `isAgain`: not the request before, but this very one,
 * sent again or counted first.
 */
export type Found = { readonly request: SentRequest; readonly matched: number; readonly isAgain: boolean };

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
  const newest = (links: readonly string[]) =>
    links.findLastIndex((link, at) => at > 0 && requests.has(link));
  return {
    find(links) {
      const matched = newest(links);
      const request = matched < 0 ? undefined : requests.get(links[matched]!);
      return request && { request, matched, isAgain: matched === links.length - 1 };
    },
    record(links, request) {
      const matched = newest(links);
      if (matched >= 0) requests.delete(links[matched]!);
      requests.set(links.at(-1)!, request);
    },
  };
}
