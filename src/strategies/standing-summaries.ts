/**
 * The summaries that stand in a conversation: those that edits put in, and, where a program keeps its own messages and goes on from them
 * as they were folded, the messages that summaries became there. Pure.
 */
import { type Conversation, type Message, textOf, textsOf } from '../conversation/conversation.ts';
import { isSummary } from '../conversation/edit.ts';
import type { FoldView } from './strategy.ts';
import { readRecord, type SummaryRecord } from './summary-record.ts';
import { placesEdited } from './editable-texts.ts';

export type Standing = {
  /** The message it stands in front of, or is. */
  readonly before: number;
  readonly tokens: number;
  readonly record: SummaryRecord;
  /** Whether it is a message of the conversation. */
  readonly isMessage: boolean;
};

export function standingSummaries(view: FoldView): readonly Standing[] {
  const put = view.edits.filter(isSummary).flatMap(({ before, text }) => {
    const record = readRecord(text);
    return record ? [{ before, tokens: view.measure.text(text), record, isMessage: false }] : [];
  });
  if (!view.isHistoryKept) return put;
  const gone = placesEdited(view.edits).messages;
  const kept = view.conversation.messages.flatMap((message): readonly Standing[] => {
    const record = gone.has(message.index) ? undefined : readRecord(userText(view.conversation, message));
    if (record === undefined || !view.mayEdit(dropOf(message))) return [];
    return [{ before: message.index, tokens: view.measure.message(message.index), record, isMessage: true }];
  });
  return [...kept, ...put];
}

function dropOf({ index }: Message) {
  return { kind: 'drop-message', message: index, memory: undefined } as const;
}

/** Whether a message is what a fold put in: a summary, or a stub of messages. It was not said by the user. */
export function isFoldedHistory(conversation: Conversation, message: Message): boolean {
  const text = userText(conversation, message);
  return readRecord(text) !== undefined || /^\[Folded \d+ earlier messages of this conversation\b/.test(text);
}

/** Empty for what is not of the user, or more than one text. */
function userText({ body }: Conversation, message: Message): string {
  const [part] = message.parts;
  if (message.role !== 'user' || part?.type !== 'text' || message.parts.length !== 1) return '';
  const texts = textsOf(part);
  return texts.length === 1 ? textOf(body, message, texts[0]!) : '';
}
