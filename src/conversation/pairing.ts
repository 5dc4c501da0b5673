/**
 * Finds which tool result answers which tool call. Call ids repeat within real conversations, so a pair is found by distance: a
 * result answers the call of its id in the nearest run of assistant messages before it; of several calls with one id there, the
 * first that is not answered yet.
 */
import type { Conversation, Role } from './conversation.ts';

export type PartPlace = { readonly message: number; readonly part: number };

export type Pair = {
  readonly name: string;
  readonly call: PartPlace;
  /** Undefined for a call that is not answered (yet). */
  readonly result: PartPlace | undefined;
};

export type Pairing = {
  readonly pairs: readonly Pair[];
  /** Results that answer no call before them. */
  readonly orphans: readonly PartPlace[];
};

type OpenPair = { readonly name: string; readonly call: PartPlace; result: PartPlace | undefined };

export function pairCalls(conversation: Conversation): Pairing {
  const pairing = known.get(conversation) ?? paired(conversation);
  known.set(conversation, pairing);
  return pairing;
}

/** By conversation, which never changes: several callers ask for every request. */
const known = new WeakMap<Conversation, Pairing>();

function paired(conversation: Conversation): Pairing {
  const pairs: OpenPair[] = [];
  const orphans: PartPlace[] = [];
  let open = new Map<string, { readonly pairs: OpenPair[]; answered: number }>();
  let speaker: Role | undefined;
  for (const message of conversation.messages) {
    // Only the calls of the assistant turn right before can be answered: every format here requires it.
    if (message.role === 'assistant' && speaker !== 'assistant' && open.size > 0) open = new Map();
    if (message.role !== 'system') speaker = message.role;
    message.parts.forEach((part, index) => {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') return;
      const place = { message: message.index, part: index };
      if (part.type === 'tool-call') {
        const pair: OpenPair = { name: part.name, call: place, result: undefined };
        pairs.push(pair);
        const same = open.get(part.id);
        if (same) same.pairs.push(pair);
        else open.set(part.id, { pairs: [pair], answered: 0 });
      } else {
        const same = open.get(part.callId);
        const pair = same?.pairs[same.answered];
        if (same && pair) {
          pair.result = place;
          same.answered++;
        } else orphans.push(place);
      }
    });
  }
  return { pairs, orphans };
}

/** Returns the key of a place for maps and sets. */
export function placeKey(place: PartPlace): string {
  return `${place.message}.${place.part}`;
}
