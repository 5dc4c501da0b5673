/**
 * Drops the oldest messages, calls always together with their results, and leaves one stub in their place, by which the model can read the
 * exact messages again. System messages, the newest user message and the newest tool batch always stay.
 */
import { textOf, textsOf, type Conversation, type Message } from '../conversation/conversation.ts';
import { type Edit, originalOfMessages } from '../conversation/edit.ts';
import { placesEdited, freeUnits, remainingTokens } from './lib/editable-texts.ts';
import { keyValues } from './lib/tool-calls.ts';
import { messagesStub, quote } from './lib/stub.ts';
import type { FoldView, Strategy } from './strategy.ts';

export const dropOldest: Strategy = { name: 'drop-oldest', reach: 'history', propose };

function propose(view: FoldView): readonly Edit[] {
  const gone = placesEdited(view.edits);
  const remaining = remainingTokens(view);
  const room = maxValueCharacters(view, gone.messages, remaining);
  const dropped: number[] = [];
  // The stub costs tokens, too; in messages it counts as one.
  let saved = view.excess.unit === 'tokens' ? -stubTokens(view) : -1;
  let bytes = 0;
  // A token has at least three characters.
  const savedWithValues = () => saved - (view.excess.unit === 'tokens' ? room(bytes) / 3 : 0);
  for (const open of freeUnits(view)) {
    if (savedWithValues() >= view.excess.amount) break;
    dropped.push(...open.map((message) => message.index));
    bytes += open.reduce((sum, { span }) => sum + span.end - span.start, 0);
    saved +=
      view.excess.unit === 'messages'
        ? open.length
        : open.reduce((sum, message) => sum + remaining(message.index), 0);
  }
  if (dropped.length === 0 || saved <= 0) return [];
  // Values are left out of the stub if space is tight.
  const left = savedWithValues();
  const isTight = left <= 0 || (Number.isFinite(view.excess.amount) && left < view.excess.amount);
  return editsFor(view, dropped, isTight ? 0 : room(bytes));
}

function editsFor(view: FoldView, dropped: readonly number[], room: number): readonly Edit[] {
  const { conversation } = view;
  const memory = view.idOf(originalOfMessages(conversation, dropped));
  const messages = dropped.map((index) => conversation.messages[index]!);
  const values = keyValues(conversation, messages, { max: room, known: stubsIn(view.edits) });
  const left = room - sizeOf(values);
  const text = messagesStub({
    messages: dropped.length,
    calls: callsIn(conversation, dropped),
    values,
    said: repliesBegin(conversation, messages, left),
    memory,
    recallTool: view.recallTool,
  });
  return [
    { kind: 'insert-message', before: dropped[0]!, role: 'user', text },
    ...dropped.map((message): Edit => ({ kind: 'drop-message', message, memory })),
  ];
}

/**
 * Returns how many characters of values a stub may name, by the bytes it replaces: a tenth of them, about 2,000 tokens at most. All such stubs
 * together may take at most a quarter of the folded request (about half of the current one), because they stay.
 */
function maxValueCharacters(
  view: FoldView,
  gone: ReadonlySet<number>,
  remaining: (index: number) => number,
): (bytes: number) => number {
  const tokens = view.conversation.messages.reduce(
    (sum, { index }) => sum + (gone.has(index) ? 0 : remaining(index)),
    0,
  );
  const charactersThen = (tokens / 2) * 4;
  const left = charactersThen / 4 - stubsIn(view.edits).length;
  return (bytes) => Math.max(0, Math.floor(Math.min(8_000, bytes / 10, left)));
}

/** Returns the number of characters, separators included. */
function sizeOf(spelled: readonly string[]): number {
  return spelled.reduce((sum, { length }) => sum + length + 2, 0);
}

/** Returns the texts of the stubs of earlier drops. */
function stubsIn(edits: readonly Edit[]): string {
  return edits.map((edit) => (edit.kind === 'insert-message' ? edit.text : '')).join('\n');
}

function callsIn(conversation: Conversation, dropped: readonly number[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const index of dropped) {
    for (const part of conversation.messages[index]!.parts) {
      if (part.type === 'tool-call') counts.set(part.name, (counts.get(part.name) ?? 0) + 1);
    }
  }
  // Many tools make a long stub; the most used ones say enough.
  return new Map([...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, 8));
}

function stubTokens(view: FoldView): number {
  const stub = messagesStub({
    messages: 1000,
    calls: new Map(),
    values: [],
    said: [],
    memory: 'mem_0000000000000000',
    recallTool: view.recallTool,
  });
  return view.measure.text(stub) + 40;
}

/** Maximum characters of one beginning. */
const longest = 120;

/**
 * Returns the beginnings of replies without calls, in order; the newest ones if not all fit in `max` characters. They keep the thread of a long
 * conversation.
 */
export function repliesBegin(
  conversation: Conversation,
  messages: readonly Message[],
  max: number,
): readonly string[] {
  const chosen: string[] = [];
  let left = max;
  for (const message of messages.toReversed()) {
    if (message.role !== 'assistant' || message.parts.some(({ type }) => type === 'tool-call')) continue;
    const text = textIn(conversation, message);
    const spelled = quote(text, longest);
    if (text === '' || spelled.length + 2 > left) continue;
    chosen.push(spelled);
    left -= spelled.length + 2;
  }
  return chosen.toReversed();
}

/** Returns the first text of a message on one line. */
function textIn({ body }: Conversation, message: Message): string {
  const [first] = message.parts.flatMap((part) => (part.type === 'text' ? textsOf(part) : []));
  return first === undefined ? '' : textOf(body, message, first).replaceAll(/\s+/g, ' ').trim();
}
