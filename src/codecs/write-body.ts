/**
 * What every codec does when it writes: orders the edits, refuses what names no place, and turns drops and insertions of messages
 * into splices. How a part is dropped or a message is spelled is the codec's own.
 */
import type { Conversation, Message, Part, Place, Span } from '../conversation/conversation.ts';
import { textsOf } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Insertion, listSplices, literalBytes, type Splice } from '../conversation/splice.ts';
import { LeporelloError } from '../errors.ts';

/** The edits of one message, in the order the codec needs them. */
export type MessageEdits = {
  readonly message: Message;
  /** Indices of dropped parts; never all of them. */
  readonly dropped: ReadonlySet<number>;
  readonly replaced: readonly { readonly at: Place; readonly stub: string }[];
};

/** What only a codec knows of writing messages. */
export type MessageWriter = {
  insertedMessage(role: 'user', text: string): Uint8Array;
  /** Splices that take parts out of a message which keeps others. */
  dropParts(edits: MessageEdits, body: Uint8Array): readonly Splice[];
};

/**
 * All splices of an edit set, and of messages that are added as they are. Throws `bad-edit` for an edit that names no place, and for
 * two texts in one place.
 */
export function messageSplices(
  conversation: Conversation,
  edits: readonly Edit[],
  writer: MessageWriter,
  added: readonly Insertion[] = [],
): readonly Splice[] {
  if (edits.length === 0 && added.length === 0) return [];
  const dropped = droppedMessages(conversation, edits);
  const perMessage = groupByMessage(conversation, edits, dropped);
  const insertions = edits.flatMap((edit) =>
    edit.kind === 'insert-message'
      ? [
          {
            before: messageAt(conversation, edit.before).index,
            bytes: writer.insertedMessage(edit.role, edit.text),
          },
        ]
      : [],
  );
  const spans = conversation.messages.map((message) => message.span);
  // An edit names a message that is there, so the list has elements and its closing bracket does not matter.
  return [
    ...listSplices(spans, spans.at(-1)?.end ?? 0, (index) => dropped.has(index), [...insertions, ...added]),
    ...perMessage.flatMap((group) => [
      ...group.replaced.map((edit) => replaceSplice(group.message, edit)),
      ...(group.dropped.size > 0 ? writer.dropParts(group, conversation.body) : []),
    ]),
  ];
}

/** Messages that go as a whole: named so, or left without a part. */
export function droppedMessages(conversation: Conversation, edits: readonly Edit[]): ReadonlySet<number> {
  const whole = new Set<number>();
  const parts = new Map<number, Set<number>>();
  for (const edit of edits) {
    if (edit.kind === 'drop-message') whole.add(messageAt(conversation, edit.message).index);
    if (edit.kind !== 'drop-part') continue;
    partAt(conversation, edit.message, edit.part);
    parts.set(edit.message, (parts.get(edit.message) ?? new Set<number>()).add(edit.part));
  }
  for (const [index, gone] of parts) {
    if (gone.size === messageAt(conversation, index).parts.length) whole.add(index);
  }
  return whole;
}

function groupByMessage(
  conversation: Conversation,
  edits: readonly Edit[],
  droppedWhole: ReadonlySet<number>,
): readonly MessageEdits[] {
  const groups = new Map<number, { dropped: Set<number>; replaced: { at: Place; stub: string }[] }>();
  const groupOf = (index: number) => {
    const group = groups.get(index) ?? { dropped: new Set<number>(), replaced: [] };
    groups.set(index, group);
    return group;
  };
  const replacedOnce = new Set<string>();
  for (const edit of edits) {
    if (edit.kind === 'drop-part' && !droppedWhole.has(edit.message))
      groupOf(edit.message).dropped.add(edit.part);
    if (edit.kind !== 'replace-text') continue;
    literalAt(conversation, edit.at);
    refuseSecond(replacedOnce, edit.at);
    if (!droppedWhole.has(edit.at.message)) groupOf(edit.at.message).replaced.push(edit);
  }
  return [...groups].map(([index, group]) => ({
    message: messageAt(conversation, index),
    dropped: group.dropped,
    replaced: group.replaced.filter((edit) => !group.dropped.has(edit.at.part)),
  }));
}

/** Dropping what is also replaced or dropped again has one outcome; two texts for one place have none. */
function refuseSecond(seen: Set<string>, at: Place): void {
  const key = `${at.message}.${at.part}.${at.text}`;
  if (seen.has(key))
    throw new LeporelloError(
      'bad-edit',
      `Two edits replace text ${at.text} of part ${at.part} of message ${at.message}.`,
    );
  seen.add(key);
}

function replaceSplice(message: Message, edit: { readonly at: Place; readonly stub: string }): Splice {
  const literal = textsOf(message.parts[edit.at.part]!)[edit.at.text]!;
  return { span: shift(literal, message.span.start), bytes: literalBytes(edit.stub) };
}

/** A span relative to a block as a span of the body. */
export function shift(span: Span, by: number): Span {
  return { start: span.start + by, end: span.end + by };
}

function messageAt(conversation: Conversation, index: number): Message {
  const message = conversation.messages[index];
  if (message) return message;
  throw new LeporelloError('bad-edit', `An edit names message ${index} of ${conversation.messages.length}.`);
}

function partAt(conversation: Conversation, message: number, part: number): Part {
  const found = messageAt(conversation, message).parts[part];
  if (found) return found;
  throw new LeporelloError(
    'bad-edit',
    `An edit names part ${part} of message ${message}, which has no such part.`,
  );
}

function literalAt(conversation: Conversation, at: Place): Span {
  const found = textsOf(partAt(conversation, at.message, at.part))[at.text];
  if (found) return found;
  throw new LeporelloError(
    'bad-edit',
    `An edit names text ${at.text} of part ${at.part} of message ${at.message}, which has none.`,
  );
}
