/**
 * The last step before a request goes out: compares it with what was sent before in its conversation, and marks it for the provider's
 * cache where that pays. Changes no word of it.
 */
import type { Codec } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { FoldReport } from '../receipts/receipt.ts';
import type { Economy } from '../triggers/trigger.ts';
import { habitAfter, messagesToMark, noHabit } from './cache-marks.ts';
import {
  commonMessages,
  type Found,
  type LastSent,
  preambleOf,
  type SentRequest,
  sentMessages,
} from './last-sent.ts';
import type { Draft } from './plan.ts';
import { unstableFrom } from './stability.ts';

export type SenderOptions = {
  /** Whether clients that mark nothing get marks for their provider's cache, where they pay by `pricesFor`. Default true. */
  readonly cacheMarks?: boolean | undefined;
  /** Milliseconds; tells whether a cache can still be warm. Default: time stands still. */
  readonly clock?: (() => number) | undefined;
  readonly mode?: string | undefined;
};

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
  if (!found) return { ...now, earlier: undefined, habit: noHabit };
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
