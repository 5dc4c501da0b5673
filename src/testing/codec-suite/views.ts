/** Looks at conversations from outside, for the cases of the suite: what they say, in which bytes, and what edits should leave. */
import type { Codec, Reading } from '../../codecs/codec.ts';
import {
  bytesOf,
  type Conversation,
  type Message,
  textOf,
  textsOf,
} from '../../conversation/conversation.ts';
import type { Edit } from '../../conversation/edit.ts';
import { scanObject, skipSpace } from '../../conversation/json-scan.ts';
import { sha256 } from '../../memory/digest.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A reading that remembers nothing of other tests. */
export function newReading(): Reading {
  return { digest: sha256, outlines: new Map() };
}

export function view(codec: Codec, body: Uint8Array | string): Conversation {
  return codec.read(typeof body === 'string' ? encoder.encode(body) : body, newReading());
}

/** Bytes as text. Throws where a code point was split. */
export function shown(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** All texts a body holds for the model, those beside the messages first. */
export function textsIn(conversation: Conversation): readonly string[] {
  const { body, preamble, messages } = conversation;
  return [...preamble, ...messages].flatMap((block) =>
    block.parts.flatMap((part) => textsOf(part).map((text) => textOf(body, block, text))),
  );
}

/** What one message says; `bytes` only where nothing of it was to change. */
export type MessageModel = {
  /** Open where parts were dropped: a user message may hold nothing but results then. */
  readonly role: string | undefined;
  readonly bytes: string | undefined;
  readonly parts: readonly PartModel[];
};
type PartModel = {
  readonly type: string;
  readonly texts: readonly string[];
  readonly bytes: string | undefined;
};

/** What the conversation should say after the edits, reckoned without any codec. */
export function modelAfter(conversation: Conversation, edits: readonly Edit[]): readonly MessageModel[] {
  const { messages } = conversation;
  const inserted = (before: number): readonly MessageModel[] =>
    edits.flatMap((edit) =>
      edit.kind === 'insert-message' && edit.before === before
        ? [
            {
              role: edit.role,
              bytes: undefined,
              parts: [{ type: 'text', texts: [edit.text], bytes: undefined }],
            },
          ]
        : [],
    );
  return messages.flatMap((message) => {
    const left = messageAfter(conversation, message, edits);
    return [...inserted(message.index), ...(left ? [left] : [])];
  });
}

function messageAfter(
  conversation: Conversation,
  message: Message,
  edits: readonly Edit[],
): MessageModel | undefined {
  const { body } = conversation;
  const mine = edits.filter(
    (edit) =>
      (edit.kind === 'replace-text' && edit.at.message === message.index) ||
      ((edit.kind === 'drop-part' || edit.kind === 'drop-message') && edit.message === message.index),
  );
  const dropped = new Set(mine.map((edit) => (edit.kind === 'drop-part' ? edit.part : undefined)));
  const parts = message.parts.flatMap((part, index): readonly PartModel[] => {
    if (dropped.has(index)) return [];
    const stubs = new Map(
      mine.flatMap((edit) =>
        edit.kind === 'replace-text' && edit.at.part === index ? [[edit.at.text, edit.stub] as const] : [],
      ),
    );
    const texts = textsOf(part).map((text, at) => stubs.get(at) ?? textOf(body, message, text));
    return [
      {
        type: part.type,
        texts,
        bytes: stubs.size > 0 ? undefined : shown(bytesOf(body, message, part.span)),
      },
    ];
  });
  const isGone = parts.length === 0 && message.parts.length > 0;
  if (isGone || mine.some((edit) => edit.kind === 'drop-message')) return undefined;
  const isWhole = parts.length === message.parts.length;
  return {
    role: isWhole ? message.role : undefined,
    bytes: mine.length === 0 ? bytesOfBlock(body, message) : undefined,
    parts,
  };
}

/** What the written body says, in the terms of the model it is held against: what that leaves open stays open. */
export function modelOf(conversation: Conversation, like: readonly MessageModel[]): readonly MessageModel[] {
  const { body } = conversation;
  return conversation.messages.map((message, index) => ({
    role: like[index] && like[index].role === undefined ? undefined : message.role,
    bytes: like[index]?.bytes === undefined ? undefined : bytesOfBlock(body, message),
    parts: message.parts.map((part, at) => ({
      type: part.type,
      texts: textsOf(part).map((text) => textOf(body, message, text)),
      bytes:
        like[index]?.parts[at]?.bytes === undefined ? undefined : shown(bytesOf(body, message, part.span)),
    })),
  }));
}

/** The bytes of every top-level member but the messages. */
export function otherMembers(conversation: Conversation): readonly string[] {
  const { body, messages } = conversation;
  const inside = messages[0]?.span.start ?? -1;
  return scanObject(body, skipSpace(body, 0))
    .members.filter(
      ({ value }) => !(value.start <= inside && inside < value.end) && !isEmptyList(body, value),
    )
    .map(({ span }) => shown(body.subarray(span.start, span.end)));
}

/** A message list that has lost all its messages. */
function isEmptyList(body: Uint8Array, value: { readonly start: number; readonly end: number }): boolean {
  return shown(body.subarray(value.start, value.end)).replaceAll(/\s/g, '') === '[]';
}

export function bytesOfBlock(
  body: Uint8Array,
  block: { readonly span: { readonly start: number; readonly end: number } },
): string {
  return shown(body.subarray(block.span.start, block.span.end));
}
