/**
 * What this process sent last for each conversation, found by its prefix chain: digests and counts, never content. It is only ever
 * compared with what is sent next; after a restart it is empty, and each conversation begins anew.
 */
import { LRUCache } from 'lru-cache';
import type { Conversation } from '../conversation/conversation.ts';
import { perMessage } from '../conversation/per-message.ts';
import type { Habit } from './cache-marks.ts';

export type SentRequest = {
  /** The messages as they were sent; marks for a provider's cache are not in them. */
  readonly messages: SentMessages;
  /** How many edits made them, of how many messages. */
  readonly edits: number;
  readonly length: number;
  /** What stood before the messages: names what it was sent to, too. */
  readonly preamble: string;
  /** Whether it offered the recall tool. */
  readonly offers: boolean;
  /** Milliseconds. */
  readonly at: number;
  /** How many messages the request before this one was sent with, if they are the first of these. */
  readonly earlier: number | undefined;
  readonly habit: Habit;
};

/** Digests of what so many messages say. The list may be longer: requests that only append share one. */
export type SentMessages = { readonly digests: readonly string[]; readonly length: number };

const digestsOf = perMessage<string>();

export function sentMessages({ messages }: Pick<Conversation, 'messages'>): SentMessages {
  return { digests: digestsOf(messages, (message) => message.canonical), length: messages.length };
}

/** Returns how many messages both begin with. */
export function commonMessages(one: SentMessages, other: SentMessages): number {
  const length = Math.min(one.length, other.length);
  if (one.digests === other.digests) return length;
  let common = 0;
  while (common < length && one.digests[common] === other.digests[common]) common++;
  return common;
}

/**
 * `matched`: how many messages of the client it had, which are the first of these. `isAgain`: not the request before, but this very one,
 * sent again or counted first.
 */
export type Found = { readonly request: SentRequest; readonly matched: number; readonly isAgain: boolean };

export interface LastSent {
  /** `links` of the conversation as the client sent it. */
  find(links: readonly string[]): Found | undefined;
  /** Takes the place of what was found for these links. */
  record(links: readonly string[], request: SentRequest, found: Found | undefined): void;
}

/** The client's part of what names it. */
export function preambleOf({ model, preamble }: Pick<Conversation, 'model' | 'preamble'>): string {
  return [model, ...preamble.map((block) => block.digest)].join(' ');
}

/** `most` digests are kept. */
export function createLastSent(most = 400_000): LastSent {
  const requests = new LRUCache<string, SentRequest>({
    maxSize: most,
    sizeCalculation: ({ messages }) => 1 + messages.length,
  });
  return {
    find(links) {
      // The first link stands for no message at all.
      for (let matched = links.length - 1; matched > 0; matched--) {
        const request = requests.get(links[matched]!);
        if (request) return { request, matched, isAgain: matched === links.length - 1 };
      }
      return undefined;
    },
    record(links, request, found) {
      if (found) requests.delete(links[found.matched]!);
      requests.set(links.at(-1)!, request);
    },
  };
}
