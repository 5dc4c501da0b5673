/**
 * The last step before a request goes out: compares it with what was sent before in its conversation, and marks it for the provider's
 * cache where that pays. Changes no word of it.
 */
import { LRUCache } from 'lru-cache';
import type { CacheMarks, Codec } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { lastMessageOf } from '../conversation/edit.ts';
import { leavesOriginals } from '../conversation/original.ts';
import { perMessage } from '../conversation/per-message.ts';
import type { Draft } from './plan.ts';
import type { SenderOptions } from './types.ts';
import type { FoldReport } from '../receipts/receipt.ts';
import type { Economy } from '../triggers/trigger.ts';

export type Outgoing = {
  readonly request: { readonly codec: Codec; readonly refusal?: object };
  /** As the client sent it, with the links of its prefix chain. */
  readonly conversation: Conversation;
  readonly links: readonly string[];
  /** With hidden recalls: what the draft was made of. */
  readonly whole: Conversation;
  /** Its tokens are those that the provider is expected to count. */
  readonly draft: Draft;
  readonly prices: Pick<Economy, 'read' | 'write' | 'minCachedTokens'> | undefined;
  /** The provider refused our edits in this conversation. */
  readonly alone: boolean;
};

export type Sending = {
  readonly body: Uint8Array;
  readonly report: Pick<FoldReport, 'bytesAfter' | 'cacheMarks' | 'unstableFrom'>;
};

export type Send = (outgoing: Outgoing) => Sending;

/** `lastSent` takes in what it sends. */
export function createSender(
  { cacheMarks = true, clock = () => 0, mode }: SenderOptions,
  lastSent: LastSent,
): Send {
  const mayMark = cacheMarks && mode !== 'observe';
  return function send(outgoing) {
    const { request, conversation, links, draft, alone } = outgoing;
    // Where the provider keeps the history, a request begins like those of other conversations.
    if (conversation.previousReplyId !== undefined || links.length < 2) return sendingOf(draft.body);
    const found = lastSent.find(links);
    const now = requestAfter(found, outgoing, clock());
    lastSent.record(links, now, found);
    // What follows a refusal differs from before on purpose.
    if (alone || request.refusal) return sendingOf(draft.body);
    const unstable = found && unstableFrom(found.request, now, draft);
    const behind = mayMark && !conversation.marked ? placesOf(outgoing, now) : undefined;
    const { body, sent } = draft;
    const known = sent.body === body ? sent.messages : undefined;
    const marked = behind && request.codec.cacheMarks?.set(body, behind, known);
    return sendingOf(marked?.body ?? body, marked?.count, unstable);
  };
}

function sendingOf(body: Uint8Array, cacheMarks = 0, unstable?: number): Sending {
  return { body, report: { bytesAfter: body.length, cacheMarks, unstableFrom: unstable } };
}

function placesOf({ request, draft, prices }: Outgoing, now: SentRequest) {
  return messagesToMark({
    marks: request.codec.cacheMarks,
    prices,
    habit: now.habit,
    tokens: draft.tokens,
    messages: now.messages.length,
    earlier: now.earlier,
  });
}

function requestAfter(found: Found | undefined, outgoing: Outgoing, at: number): SentRequest {
  const { request, conversation, whole, draft } = outgoing;
  const now = {
    messages: sentMessages(draft.sent),
    edits: draft.edits.length,
    length: whole.messages.length,
    preamble: preambleOf(conversation),
    offers: draft.offers,
    at,
  };
  if (!found) return { ...now, earlier: undefined, habit: noCacheHabit };
  const { request: last, isAgain } = found;
  const common = commonMessages(last.messages, now.messages);
  if (isAgain) {
    const { earlier = 0, habit } = last;
    return { ...now, earlier: earlier > 0 && earlier <= common ? earlier : undefined, habit };
  }
  const isAheadIntact = last.preamble === now.preamble && last.offers === now.offers;
  const isIntact = isAheadIntact && common === last.messages.length;
  const wasKept = isIntact && at - last.at < (request.codec.cacheMarks?.keptMs ?? 0);
  return {
    ...now,
    earlier: isIntact ? common : undefined,
    habit: habitAfter(last.habit, wasKept),
  };
}

// Cache marks, for clients that set none and providers that cache only what is marked. Marked content costs more the first time and less later, so it
// must be read again to pay; the requests of the conversation so far tell whether it will be.

/** How often a request found again what the one before it left in the cache, or would have. */
export type CacheHabit = {
  /** Requests that another followed. */
  readonly followed: number;
  /** Of the last few, the fraction whose prefix was still cached when the next one came. */
  readonly kept: number;
};

export const noCacheHabit: CacheHabit = { followed: 0, kept: 0 };

/** About how many requests are looked back on: a user's pause is soon forgotten, and so is a habit. */
const memory = 4;

export function habitAfter({ followed, kept }: CacheHabit, wasKept: boolean): CacheHabit {
  const weight = 1 / Math.min(followed + 1, memory);
  return { followed: followed + 1, kept: kept + (Number(wasKept) - kept) * weight };
}

/**
 * A mark costs `write` - 1 now, and saves 1 - `read` if the next request finds what it marks. Where writing costs nothing extra the
 * provider caches by itself.
 */
function marksPay({ kept }: CacheHabit, { read, write }: Pick<Economy, 'read' | 'write'>): boolean {
  return write > 1 && kept * (1 - read) > write - 1;
}

/** Tokens. Models that nobody knows are taken to cache no prompt that is shorter than the longest known minimum. */
const longestLeast = 4_096;

export type MarkRequest = {
  /** Undefined where providers cache by themselves. */
  readonly marks: CacheMarks | undefined;
  /** Relative to a prompt token that is not cached; undefined where nobody knows, and then nothing is marked. */
  readonly prices: Pick<Economy, 'read' | 'write' | 'minCachedTokens'> | undefined;
  readonly habit: CacheHabit;
  /** Of the whole prompt. */
  readonly tokens: number;
  /** Messages as they are sent, and how many of them the request before was sent with. */
  readonly messages: number;
  readonly earlier: number | undefined;
};

/**
 * The messages to set a mark behind; undefined for none at all. The newest, for the next request; and the one that was newest in the
 * request before, for this one: providers look for what is cached only so far before a mark.
 */
export function messagesToMark(request: MarkRequest): readonly number[] | undefined {
  const { marks, prices, habit, tokens, messages, earlier } = request;
  if (!marks || !prices || !marksPay(habit, prices) || tokens < (prices.minCachedTokens ?? longestLeast))
    return undefined;
  return [...new Set([...(earlier ? [earlier] : []), messages])].map((count) => count - 1);
}

// The check that what was sent before is sent the same way again, except for folds. It only reports.

type Sent = Pick<SentRequest, 'messages' | 'preamble' | 'offers'>;

/**
 * The first message sent otherwise than in the request before, though the client's own are the same; undefined where there is none, or
 * where a fold explains it: one made now or, by another gateway, in between. A fold only ever adds edits to those there are. One right
 * behind the messages explains it, too: some formats make one content of two that it made neighbours. 0 where the recall tool went, or
 * came with nothing to recall: it stands ahead of all messages.
 */
export function unstableFrom(
  last: SentRequest,
  now: Sent,
  { edits, shrinks }: Pick<Draft, 'edits' | 'shrinks'>,
): number | undefined {
  const isNeeded = () => leavesOriginals(edits) || leavesOriginals(shrinks);
  // Where the client changed its tools or its model, all is written anew anyway.
  const isFlipped = last.offers !== now.offers && last.preamble === now.preamble;
  if (isFlipped && !(now.offers && isNeeded())) return 0;
  const common = commonMessages(last.messages, now.messages);
  if (common === last.messages.length) return undefined;
  const onThem = edits.filter((edit) => lastMessageOf(edit) <= last.length).length;
  return onThem > last.edits ? undefined : common;
}

// The last request of each conversation that this process sent, found by its prefix hashes: digests and counts, never content. It is only
// compared with the next request; after a restart it is empty.

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
  readonly habit: CacheHabit;
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
