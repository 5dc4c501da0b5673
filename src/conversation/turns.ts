/** Where turns begin and which messages are the newest: what a fold leaves alone. */
import type { Conversation, Message } from './conversation.ts';

/**
 * Index of the message that begins the running turn: the newest of the user's that answers no call, nor is what `isOther` says was not
 * said by the user; undefined without one. Clients put reminders of their own beside results, so words there need not be the user's.
 */
export function turnStart(
  conversation: Conversation,
  isOther: (message: Message) => boolean = () => false,
): number | undefined {
  return lastUser(conversation, (message) => holdsResult(message) || isOther(message));
}

/** Index of the newest message that says more than results: the user may have spoken beside them. Undefined without one. */
export function lastUser(
  conversation: Conversation,
  isOther: (message: Message) => boolean = () => false,
): number | undefined {
  return last(conversation, (index) => {
    const message = conversation.messages[index];
    return message?.role === 'user' && !isOther(message);
  });
}

/** Index of the newest assistant message; undefined without one. */
export function lastAssistant(conversation: Conversation): number | undefined {
  return last(conversation, (index) => conversation.messages[index]?.role === 'assistant');
}

/** Messages of the newest tool batch: the run of messages with tool results that ends last. Empty when no tool was used. */
export function newestBatch(conversation: Conversation): ReadonlySet<number> {
  const isResult = (index: number) => holdsResult(conversation.messages[index]);
  const batch = new Set<number>();
  const end = last(conversation, isResult);
  for (let index = end ?? -1; index >= 0 && isResult(index); index--) batch.add(index);
  return batch;
}

/**
 * What goes together: neighbouring assistant messages, which are one turn, with the messages that answer their calls; any other
 * message by itself. Some formats give reasoning and each of several calls a message of its own.
 */
export function unitsOf(conversation: Conversation): readonly (readonly Message[])[] {
  const units: Message[][] = [];
  for (const message of conversation.messages) {
    const answers = holdsResult(message);
    const unit = units.at(-1);
    const goesOn = message.role === 'assistant' && unit?.at(-1)?.role === 'assistant';
    if ((answers || goesOn) && unit) unit.push(message);
    else units.push([message]);
  }
  return units;
}

function holdsResult(message: Message | undefined): boolean {
  return message?.parts.some((part) => part.type === 'tool-result') ?? false;
}

function last(conversation: Conversation, matches: (index: number) => boolean): number | undefined {
  for (let index = conversation.messages.length - 1; index >= 0; index--) {
    if (matches(index)) return index;
  }
  return undefined;
}
