/**
 * The untouched request: how long it would have been, and how much of it the provider would have read from its cache. A reckoning,
 * because nobody sent it. Its length is led on from request to request by what the provider counts, so that the counter's errors
 * weigh only on what is new. From the cache it is read as far as the untouched request before it went, in the share in which the
 * provider read what was really sent. Where that cannot be known the case is taken that makes it cheaper, so that what is told
 * to be saved is rather too little. Pure.
 */
import { LRUCache } from 'lru-cache';
import { addedUsage, noUsage, type Usage } from './usage.ts';

/** A request that was answered. */
export type AnsweredRequest = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** What the provider reported, round by round; none of them unknown. */
  readonly rounds: readonly [Usage, ...Usage[]];
  /** Undefined where it was sent as it came. */
  readonly difference: Difference | undefined;
  readonly earlier: EarlierRequest | undefined;
  /** Whether this request begins with all of the earlier one. Else the two only begin alike. */
  readonly continues: boolean;
};

/** How what was sent differs from what came. */
export type Difference = {
  /** Tokens of what came, by the counter alone. */
  readonly counted: number;
  /** Tokens of what came and of what was sent, corrected by earlier reports. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** What was edited, and how many recalls of earlier requests were put back. */
  readonly edits: number;
  readonly hiddenRecalls: number;
  /** Marks that were set for a client that sets none: without them nothing would have been cached. */
  readonly cacheMarks: number;
  /** Set where a fold was made in this request, or the recall tool came with it: tokens of what was sent that stand as they stood. */
  readonly tokensKept: number | undefined;
};

/** What is remembered of a request for the next one of its conversation. */
export type EarlierRequest = {
  readonly at: number;
  /** Tokens of the prompt that was sent, and of the untouched one, as the provider counts. */
  readonly prompt: number;
  readonly untouched: number;
  /** Those of its `difference`. */
  readonly counted: number | undefined;
  readonly edits: number;
  readonly hiddenRecalls: number;
  /** Whether the provider reported that it read from its cache, or wrote to it. */
  readonly cached: boolean;
  /** How long it keeps what is cached, in milliseconds. */
  readonly lifetimeMs: number;
};

/** The shortest that providers promise; those that promise more report it with what they write. */
const usualLifetimeMs = 5 * 60_000;
const longLifetimeMs = 60 * 60_000;

/** What the provider would have reported. What it would not have read, it would have written as it wrote what it did not read. */
export function untouchedUsageOf(request: AnsweredRequest): Usage {
  const [first] = request.rounds;
  const { input, couldBeRead } = untouchedPromptOf(request);
  // It would have been answered at once.
  const { output } = request.rounds.at(-1)!;
  if (request.difference?.cacheMarks) return { ...noUsage, input, output };
  const unread = first.input - first.cacheRead;
  const written = (tokens: number) =>
    unread > 0 ? Math.round(((input - couldBeRead) * tokens) / unread) : 0;
  const cacheWriteLong = written(first.cacheWriteLong ?? 0);
  return {
    input,
    cacheRead: couldBeRead,
    cacheWrite: written(first.cacheWrite),
    ...(cacheWriteLong > 0 ? { cacheWriteLong } : {}),
    output,
  };
}

/** The untouched prompt, and how much of it would have come from the cache, had it been marked as what was sent. Tokens. */
export function untouchedPromptOf(request: AnsweredRequest): {
  readonly input: number;
  readonly couldBeRead: number;
} {
  const input = Math.round(untouchedPrompt(request));
  return { input, couldBeRead: Math.round(untouchedRead(request, input)) };
}

export function asEarlier(request: AnsweredRequest): EarlierRequest {
  const { at, rounds, difference, earlier } = request;
  const { cacheRead, cacheWrite, cacheWriteLong = 0 } = rounds.reduce(addedUsage, noUsage);
  return {
    at,
    prompt: rounds[0].input,
    untouched: untouchedPrompt(request),
    counted: difference?.counted,
    edits: difference?.edits ?? 0,
    hiddenRecalls: difference?.hiddenRecalls ?? 0,
    cached: cacheRead + cacheWrite > 0,
    lifetimeMs: cacheWriteLong > 0 ? longLifetimeMs : (earlier?.lifetimeMs ?? usualLifetimeMs),
  };
}

function untouchedPrompt({ rounds: [{ input }], difference, earlier, continues }: AnsweredRequest): number {
  if (!difference) return input;
  const { counted, tokensBefore, tokensAfter, edits, hiddenRecalls, tokensKept } = difference;
  const saved = tokensBefore - tokensAfter;
  // Only longer, by the tool that was offered.
  if (edits === 0 && hiddenRecalls === 0) return Math.max(0, input + saved);
  if (earlier && continues) {
    const isSameFold =
      tokensKept === undefined && edits === earlier.edits && hiddenRecalls === earlier.hiddenRecalls;
    if (isSameFold) return Math.max(0, earlier.untouched + input - earlier.prompt);
    if (earlier.counted) return earlier.untouched * (counted / earlier.counted);
  }
  // A counter that counts too much must not save too much.
  return Math.max(0, input + saved * Math.min(1, input / tokensAfter));
}

function untouchedRead({ at, rounds, difference, earlier }: AnsweredRequest, prompt: number): number {
  const [{ input, cacheRead }] = rounds;
  const isFold = difference?.tokensKept !== undefined;
  if (!earlier) {
    // All that may have been read counts as read: the tail alone is new, and of a fold nobody can tell where that begins.
    const tail = isFold ? 0 : input - cacheRead;
    return cacheRead > 0 ? Math.max(0, prompt - tail) : 0;
  }
  if (!isFold) {
    // The provider says itself how much of the request before it still had.
    const { prompt: sent, untouched } = earlier;
    const read = cacheRead < sent ? (cacheRead / sent) * untouched : untouched + cacheRead - sent;
    return Math.min(prompt, Math.max(0, read));
  }
  // What it read says nothing of what the fold took away: the clock does.
  const isWarm = at - earlier.at <= earlier.lifetimeMs && (cacheRead > 0 || earlier.cached);
  return Math.min(prompt, isWarm ? earlier.untouched : cacheRead);
}

/** Where a request stands among others. */
type ConversationPosition = {
  readonly tenant: string;
  /** One link of the prefix chain for each message. */
  readonly links: readonly string[];
  /** The link that all requests of the conversation share. */
  readonly beginning: string | undefined;
};

type FoundRequest = {
  readonly earlier: EarlierRequest | undefined;
  /** True for one that this request begins with; false for one that only began alike, as where a client rewrote its history. */
  readonly continues: boolean;
};

interface EarlierRequests {
  /** The newest request that this one goes on from, or else the newest that began alike. */
  find(standing: ConversationPosition): FoundRequest;
  note(standing: ConversationPosition, request: EarlierRequest): void;
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
