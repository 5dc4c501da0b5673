/** Where turns begin and which messages are the newest: what a fold leaves alone. */
import type { Conversation, Message } from './conversation.ts';
import { userSpeaks } from './reminder.ts';

/**
 * Index of the message that begins the running turn: the newest in which the user speaks and that answers no call, nor is what `isOther`
 * says was not said by the user; where only reminders are left, the newest of them; undefined without one.
 */
export function turnStart(
  conversation: Conversation,
  isOther: (message: Message) => boolean = () => false,
): number | undefined {
  const isNone = (message: Message) => holdsResult(message) || isOther(message);
  return (
    lastUser(conversation, isNone) ??
    last(conversation, (message) => message.role === 'user' && !isNone(message))
  );
}

/** Index of the newest message in which the user speaks, be it beside results; undefined without one. */
export function lastUser(
  conversation: Conversation,
  isOther: (message: Message) => boolean = () => false,
): number | undefined {
  return last(conversation, (message) => userSpeaks(conversation, message) && !isOther(message));
}

/** Index of the newest assistant message; undefined without one. Asked for every edit, so it is remembered with the conversation. */
export function lastAssistant(conversation: Conversation): number | undefined {
  let index = newestAssistants.get(conversation);
  if (index === undefined) {
    index = conversation.messages.findLastIndex(({ role }) => role === 'assistant');
    newestAssistants.set(conversation, index);
  }
  return index < 0 ? undefined : index;
}

/** -1 for a conversation without one. */
const newestAssistants = new WeakMap<Conversation, number>();

/** Messages of the newest tool batch: the run of messages with tool results that ends last. Empty when no tool was used. */
export function newestBatch(conversation: Conversation): ReadonlySet<number> {
  const isResult = (index: number) => holdsResult(conversation.messages[index]);
  const batch = new Set<number>();
  const end = last(conversation, holdsResult);
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

function last({ messages }: Conversation, matches: (message: Message) => boolean): number | undefined {
  const found = messages.findLastIndex(matches);
  return found < 0 ? undefined : found;
}
