/**
 * Reads how long a client asks its provider to cache a prompt. The Messages API has marks,
 * `"cache_control":{"type":"ephemeral","ttl":"1h"}`; servers of Chat Completions that pass requests on to its models take these
 * marks too. Chat Completions and Responses have fields.
 */
import { type Member, isRecord, parseSpan, scanObject } from '../conversation/json-scan.ts';
import type { Block, Span } from '../conversation/conversation.ts';
import { inSteps } from './pausable.ts';
import { elementsAt, startsWith } from './read-body.ts';

export const markKey = 'cache_control';

/** A mark keeps the prompt cached for five minutes, in milliseconds, unless it asks for an hour. */
export const usualMarkMs = 5 * 60_000;
const longMarkMs = 60 * 60_000;

/** Members that hold further blocks: the content of a message or result, and the wrapper of a tool definition. */
const holders: ReadonlySet<string> = new Set(['content', 'function']);

/**
 * Returns for how many milliseconds the marks of a message, block or tool keep it cached, those on blocks inside included: the
 * longest of several; undefined without a mark.
 */
export function markedForMs(bytes: Uint8Array, members: readonly Member[], inside = 2): number | undefined {
  return longestOf(
    members.map((member) => {
      if (member.key === markKey) return markMs(parseSpan(bytes, member.value));
      return holders.has(member.key) && inside > 0
        ? blocksMarkedForMs(bytes, member.value, inside - 1)
        : undefined;
    }),
  );
}

/** Returns the same for a block, or for a list of blocks or tools. Any other value holds no mark. */
export function blocksMarkedForMs(bytes: Uint8Array, value: Span, inside = 1): number | undefined {
  if (startsWith(bytes, value, '{'))
    return markedForMs(bytes, scanObject(bytes, value.start).members, inside);
  if (!startsWith(bytes, value, '[')) return undefined;
  return longestOf(
    inSteps(elementsAt(bytes, value), (block) =>
      startsWith(bytes, block, '{')
        ? markedForMs(bytes, scanObject(bytes, block.start).members, inside)
        : undefined,
    ),
  );
}

/** Returns for how many milliseconds a mark keeps the prompt cached; undefined without a mark. */
export function markMs(control: unknown): number | undefined {
  if (control === undefined) return undefined;
  const isLong = typeof control === 'object' && control !== null && 'ttl' in control && control.ttl === '1h';
  return isLong ? longMarkMs : usualMarkMs;
}

/** True when marks that keep this long cost more to write: entries that are kept for an hour do. */
export function writesLong(keptMs: number | undefined): boolean {
  return keptMs !== undefined && keptMs >= longMarkMs;
}

const minuteMs = 60_000;

/** The documented values: `prompt_cache_options.ttl` is 30m or 12h, `prompt_cache_retention` is in_memory or 24h. */
const retentions: Readonly<Record<string, number | undefined>> = {
  '30m': 30 * minuteMs,
  '12h': 12 * 60 * minuteMs,
  '24h': 24 * 60 * minuteMs,
};

/**
 * Returns for how many milliseconds the fields of a Chat Completions or Responses request ask to keep its prompt; undefined
 * without such a field. Longer retention costs no more to write, according to the vendor's guide to prompt caching.
 */
export function retentionMs(fields: Readonly<Record<string, unknown>>): number | undefined {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = fields;
  const asked = [retention, isRecord(options) ? options['ttl'] : undefined];
  return longestOf(asked.map((value) => (typeof value === 'string' ? retentions[value] : undefined)));
}

export function longestOf(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (longest, time) => (longest === undefined || (time !== undefined && time > longest) ? time : longest),
    undefined,
  );
}

/** Returns the longest time for which the client marked any of these blocks, in milliseconds; undefined without a mark. */
export function longestMark(blocks: readonly Block[]): number | undefined {
  let longest: number | undefined;
  for (const { markedForMs: ms } of blocks)
    if (ms !== undefined && (longest === undefined || ms > longest)) longest = ms;
  return longest;
}
