/**
 * Remembers one value for each message of a conversation. A conversation that continues has the message objects of the turn
 * before, so only the values of its new messages are computed.
 */
import type { Message } from './conversation.ts';

/** Returns the values of all messages, in their order. The list may be longer than the conversation: a later turn may have grown it. */
export type PerMessage<T> = (messages: readonly Message[], valueOf: (message: Message) => T) => readonly T[];

export function perMessage<T>(): PerMessage<T> {
  /** By the last message of a request. Conversations that only append share one list. */
  const lists = new WeakMap<Message, T[]>();
  return function valuesOf(messages, valueOf) {
    let known: T[] | undefined;
    let from = messages.length;
    while (from > 0 && (known = lists.get(messages[from - 1]!)) === undefined) from--;
    if (known && from === messages.length) return known;
    // Another branch may have continued from the same message.
    const values = known?.length === from ? known : (known?.slice(0, from) ?? []);
    for (let index = from; index < messages.length; index++) values.push(valueOf(messages[index]!));
    const last = messages.at(-1);
    if (last) lists.set(last, values);
    return values;
  };
}
