/**
 * Where to mark a prompt for a provider that caches only what is marked, if the client marks nothing itself. What is marked costs more the
 * first time and much less from then on, so it must be read again: that is judged by the requests of the conversation so far.
 */
import type { CacheMarks } from '../codecs/codec.ts';
import type { Economy } from '../triggers/trigger.ts';

/** How often a request found again what the one before it left in the cache, or would have. */
export type Habit = {
  /** Requests that another followed. */
  readonly followed: number;
  /** Of the last few, the fraction whose prefix was still cached when the next one came. */
  readonly kept: number;
};

export const noHabit: Habit = { followed: 0, kept: 0 };

/** About how many requests are looked back on: a user's pause is soon forgotten, and so is a habit. */
const memory = 4;

export function habitAfter({ followed, kept }: Habit, wasKept: boolean): Habit {
  const weight = 1 / Math.min(followed + 1, memory);
  return { followed: followed + 1, kept: kept + (Number(wasKept) - kept) * weight };
}

/**
 * A mark costs `write` - 1 now, and saves 1 - `read` if the next request finds what it marks. Where writing costs nothing extra the
 * provider caches by itself.
 */
function marksPay({ kept }: Habit, { read, write }: Pick<Economy, 'read' | 'write'>): boolean {
  return write > 1 && kept * (1 - read) > write - 1;
}

/** Tokens. Models that nobody knows are taken to cache no prompt that is shorter than the longest known minimum. */
const longestLeast = 4_096;

export type MarkRequest = {
  /** Undefined where providers cache by themselves. */
  readonly marks: CacheMarks | undefined;
  /** Relative to a prompt token that is not cached; undefined where nobody knows, and then nothing is marked. */
  readonly prices: Pick<Economy, 'read' | 'write' | 'minCachedTokens'> | undefined;
  readonly habit: Habit;
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
