/**
 * Remembers lists of messages with their bytes. A conversation that continues repeats all of them at the same places, turn after
 * turn: messages in equal bytes are reused, and neither scanned nor digested again. Pure except for its memo, which is bounded
 * and holds copies: changing a body later changes nothing here.
 */
import { LRUCache } from 'lru-cache';
import type { Message } from '../conversation/conversation.ts';

export interface SeenBodies {
  /** Returns what is known of the list that begins at `start` of this body. `of` distinguishes formats. */
  look(of: string, body: Uint8Array, start: number): SeenList;
}

export type SeenList = {
  /** The first messages of the list: those with the same bytes at the same places as before. */
  readonly messages: readonly Message[];
  /** Remembers how the whole list was read. */
  keep(messages: readonly Message[]): void;
};

export type SeenBodiesOptions = {
  readonly digest: (bytes: Uint8Array) => string;
  /** Returns how many bytes two arrays have in common from the first one on. */
  readonly commonLength: (one: Uint8Array, other: Uint8Array) => number;
  /** Bytes to keep at most. Default 64 MiB. */
  readonly maxBytes?: number;
};

/** Bytes. Shorter lists are read as fast as they are compared. */
const minBytes = 32 * 1024;
/**
 * Bytes. Lists are looked up by their first bytes, which many sessions of one client may share; more are distinguished by
 * comparing.
 */
const keyBytes = 16 * 1024;
/** A conversation is read as received and as sent, perhaps also with hidden recalls; and it may branch. */
const maxAlike = 4;

/** `bytes` may be longer than the list, so that it need not grow each turn. */
type SeenBody = { bytes: Uint8Array; length: number; messages: readonly Message[] };

export function createSeenBodies(options: SeenBodiesOptions): SeenBodies {
  const { digest, commonLength, maxBytes = 64 * 1024 * 1024 } = options;
  const lists = new LRUCache<string, readonly SeenBody[]>({
    maxSize: maxBytes,
    sizeCalculation: (alike) => alike.reduce((sum, { bytes }) => sum + bytes.length, 1),
  });

  return {
    look(of, body, start) {
      const bytes = body.subarray(start);
      if (bytes.length < minBytes) return { messages: [], keep: () => undefined };
      const key = `${of} ${start} ${digest(bytes.subarray(0, keyBytes))}`;
      const alike = lists.get(key) ?? [];
      const [best] = alike
        .map((held) => ({ held, common: commonLength(held.bytes.subarray(0, held.length), bytes) }))
        .toSorted((a, b) => b.common - a.common);
      return {
        messages: best ? within(best.held.messages, start + best.common, body) : [],
        keep(messages) {
          const length = (messages.at(-1)?.span.end ?? start) - start;
          // A list with little in common is another conversation, or the same in another form: both may come again.
          const isSame = best && best.common * 2 >= best.held.length;
          const held = isSame ? best.held : { bytes: new Uint8Array(0), length: 0, messages };
          copyInto(held, bytes.subarray(0, length), isSame ? best.common : 0);
          held.messages = messages;
          lists.set(key, [held, ...alike.filter((other) => other !== held)].slice(0, maxAlike));
        },
      };
    },
  };
}

/** Returns the messages that end by `end`. One that ends right there must be an object: a number, for example, might continue behind it. */
function within(messages: readonly Message[], end: number, body: Uint8Array): readonly Message[] {
  let count = messages.length;
  while (count > 0 && messages[count - 1]!.span.end > end) count--;
  if (messages[count - 1]?.span.end === end && body[end - 1] !== closingBrace) count--;
  return messages.slice(0, count);
}

const closingBrace = '}'.charCodeAt(0);

/** Copies the list; the first `same` bytes are already there. */
function copyInto(held: SeenBody, bytes: Uint8Array, same: number): void {
  if (held.bytes.length < bytes.length) {
    const grown = new Uint8Array(Math.ceil(bytes.length * 1.25));
    grown.set(held.bytes.subarray(0, same));
    held.bytes = grown;
  }
  held.bytes.set(bytes.subarray(Math.min(same, bytes.length)), Math.min(same, bytes.length));
  held.length = bytes.length;
}
