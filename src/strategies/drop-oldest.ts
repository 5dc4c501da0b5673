/**
 * Drops the oldest messages, calls always together with their results, and leaves one stub where they stood: by it the model can
 * read the messages again, exactly as they were. System, the newest user message and the newest tool batch are never among them.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalOfMessages } from '../conversation/original.ts';
import type { FoldView, Strategy } from './strategy.ts';
import { messagesStub } from './stub.ts';
import { touched } from './text-slots.ts';

export const dropOldest: Strategy = { name: 'drop-oldest', lastResort: false, propose };

function propose(view: FoldView): readonly Edit[] {
  const gone = touched(view.edits);
  const remaining = remainingTokens(view);
  const dropped: number[] = [];
  // In tokens the stub has a price too; in messages it is one more.
  let saved = view.excess.unit === 'tokens' ? -stubTokens(view) : -1;
  for (const unit of unitsOf(view.conversation)) {
    if (saved >= view.excess.amount) break;
    const open = unit.filter((message) => !gone.messages.has(message.index));
    if (open.length === 0 || !open.every((message) => isFree(view, message))) continue;
    dropped.push(...open.map((message) => message.index));
    saved +=
      view.excess.unit === 'messages'
        ? open.length
        : open.reduce((sum, message) => sum + remaining(message.index), 0);
  }
  return dropped.length === 0 || saved <= 0 ? [] : editsFor(view, dropped);
}

function editsFor(view: FoldView, dropped: readonly number[]): readonly Edit[] {
  const memory = view.idOf(originalOfMessages(view.conversation, dropped));
  const text = messagesStub({
    messages: dropped.length,
    calls: callsIn(view.conversation, dropped),
    memory,
    recallTool: view.recallTool,
  });
  return [
    { kind: 'insert-message', before: dropped[0]!, role: 'user', text },
    ...dropped.map((message): Edit => ({ kind: 'drop-message', message, memory })),
  ];
}

/**
 * What goes together: neighbouring assistant messages, which are one turn, with the messages that answer their calls; any other
 * message by itself. Some formats give reasoning and each of several calls a message of its own.
 */
function unitsOf(conversation: Conversation): readonly (readonly Message[])[] {
  const units: Message[][] = [];
  for (const message of conversation.messages) {
    const answers = message.parts.some((part) => part.type === 'tool-result');
    const unit = units.at(-1);
    const goesOn = message.role === 'assistant' && unit?.at(-1)?.role === 'assistant';
    if ((answers || goesOn) && unit) unit.push(message);
    else units.push([message]);
  }
  return units;
}

function isFree(view: FoldView, message: Message): boolean {
  return (
    message.role !== 'system' &&
    !view.protects.message(message.index) &&
    message.parts.every((_, part) => !view.protects.part(message.index, part)) &&
    view.mayEdit({ kind: 'drop-message', message: message.index, memory: undefined })
  );
}

/** Tokens a message still has under the edits made so far. */
function remainingTokens(view: FoldView): (index: number) => number {
  const replaced = new Map<number, number>();
  for (const edit of view.edits) {
    if (edit.kind !== 'replace-text' && edit.kind !== 'replace-input') continue;
    const {
      message: index,
      part,
      stub,
    } = edit.kind === 'replace-text' ? { ...edit.at, stub: edit.stub } : { ...edit, stub: edit.input };
    const message = view.conversation.messages[index]!;
    const saved = view.measure.part(message, message.parts[part]!) - view.measure.text(stub);
    replaced.set(message.index, (replaced.get(message.index) ?? 0) + saved);
  }
  return (index) => Math.max(0, view.measure.message(index) - (replaced.get(index) ?? 0));
}

function callsIn(conversation: Conversation, dropped: readonly number[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const index of dropped) {
    for (const part of conversation.messages[index]!.parts) {
      if (part.type === 'tool-call') counts.set(part.name, (counts.get(part.name) ?? 0) + 1);
    }
  }
  // Many tools make a long stub; the most used say enough.
  return new Map([...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, 8));
}

function stubTokens(view: FoldView): number {
  const stub = messagesStub({
    messages: 1000,
    calls: new Map(),
    memory: 'mem_0000000000000000',
    recallTool: view.recallTool,
  });
  return view.measure.text(stub) + 40;
}
