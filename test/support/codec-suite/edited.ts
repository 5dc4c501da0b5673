/** Computes what a body should say after edits, without any codec, and what a written body says, in the same terms. */
import type { Conversation, Message, Part } from '../../../src/conversation/conversation.ts';
import { bytesOf, inputOf, textOf, textsOf } from '../../../src/conversation/messages.ts';
import type { Edit } from '../../../src/conversation/edit.ts';
import type { RequestFixture } from './fixture.ts';
import { bytesOfBlock, shown } from './views.ts';

/** The content of one message; `bytes` only when nothing in it was to change. */
export type MessageModel = {
  /** Undefined when parts were dropped: a user message may then hold only results. */
  readonly role: string | undefined;
  readonly bytes: string | undefined;
  readonly parts: readonly PartModel[];
};
type PartModel = {
  readonly type: string;
  /** For a call with other arguments: the bytes ahead of them, the arguments, the bytes after. */
  readonly texts: readonly string[];
  readonly bytes: string | undefined;
};

/** An expected message, and its origin: the index it had, or undefined for an inserted message. */
type Expected = MessageModel & { readonly origin: number | undefined; readonly isAssistant: boolean };

/**
 * Returns what the written conversation says, and what it should say. They are equal when exactly the edits show. Both leave
 * open the same places.
 */
export function editedModels(
  conversation: Conversation,
  edits: readonly Edit[],
  written: Conversation,
  { newNeighbours }: Pick<RequestFixture, 'newNeighbours'>,
): { readonly found: readonly MessageModel[]; readonly expected: readonly MessageModel[] } {
  const apart = expectedAfter(conversation, edits);
  const expected = (
    newNeighbours === 'stay apart' ? apart : joinedLike(apart, written, newNeighbours.standIn)
  ).map(({ role, bytes, parts }) => ({ role, bytes, parts }));
  return { found: foundIn(written, expected), expected };
}

function expectedAfter(conversation: Conversation, edits: readonly Edit[]): readonly Expected[] {
  return conversation.messages.flatMap((message) => {
    const inserted = edits.flatMap((edit): readonly Expected[] => {
      if (edit.kind !== 'insert-message' || edit.before !== message.index) return [];
      const parts = [{ type: 'text', texts: [edit.text], bytes: undefined }];
      return [{ origin: undefined, isAssistant: false, role: edit.role, bytes: undefined, parts }];
    });
    const left = messageAfter(conversation, message, edits);
    return [...inserted, ...(left ? [left] : [])];
  });
}

function messageAfter(
  { body }: Conversation,
  message: Message,
  edits: readonly Edit[],
): Expected | undefined {
  const mine = edits.filter(
    (edit) =>
      (edit.kind === 'replace-text' && edit.at.message === message.index) ||
      ((edit.kind === 'replace-input' || edit.kind === 'drop-part' || edit.kind === 'drop-message') &&
        edit.message === message.index),
  );
  const dropped = new Set(mine.map((edit) => (edit.kind === 'drop-part' ? edit.part : undefined)));
  const parts = message.parts.flatMap((part, index): readonly PartModel[] => {
    if (dropped.has(index)) return [];
    const called = mine.find((edit) => edit.kind === 'replace-input' && edit.part === index);
    if (called?.kind === 'replace-input' && part.type === 'tool-call') {
      const [before, , after] = aroundInput(body, message, part);
      return [{ type: part.type, texts: [before, called.input, after], bytes: undefined }];
    }
    const stubs = new Map(
      mine.flatMap((edit) =>
        edit.kind === 'replace-text' && edit.at.part === index ? [[edit.at.text, edit.stub] as const] : [],
      ),
    );
    const texts = textsOf(part).map((text, at) => stubs.get(at) ?? textOf(body, message, text));
    const bytes = stubs.size > 0 ? undefined : shown(bytesOf(body, message, part.span));
    return [{ type: part.type, texts, bytes }];
  });
  const isGone = parts.length === 0 && message.parts.length > 0;
  if (isGone || mine.some((edit) => edit.kind === 'drop-message')) return undefined;
  return {
    origin: message.index,
    isAssistant: message.role === 'assistant',
    role: parts.length === message.parts.length ? message.role : undefined,
    bytes: mine.length === 0 ? bytesOfBlock(body, message) : undefined,
    parts,
  };
}

/**
 * Returns the expected messages, with neighbors joined where the written body joins them and may: those of one side that the
 * edits made neighbors. Whether they had to be joined is checked by the rules of the format.
 */
function joinedLike(apart: readonly Expected[], written: Conversation, standIn: string): readonly Expected[] {
  const left = [...apart];
  let before: Expected | undefined;
  return written.messages
    .flatMap((message): readonly Expected[] => {
      const isBetween = before?.isAssistant === false && left[0]?.isAssistant === false;
      if (isBetween && message.role === 'assistant' && isSaid(written, message, standIn)) {
        const parts = [{ type: 'text', texts: [standIn], bytes: undefined }];
        return [{ origin: undefined, isAssistant: true, role: message.role, bytes: undefined, parts }];
      }
      let whole = left.shift();
      if (!whole) return [];
      let last = whole;
      while (whole.parts.length < message.parts.length && left[0] && mayJoin(last, left[0])) {
        last = left.shift()!;
        const role: string | undefined = whole.role === last.role ? whole.role : undefined;
        whole = { ...whole, role, bytes: undefined, parts: [...whole.parts, ...last.parts] };
      }
      before = last;
      return [whole];
    })
    .concat(left);
}

function isSaid({ body }: Conversation, message: Message, text: string): boolean {
  const [part, ...more] = message.parts;
  return more.length === 0 && part?.type === 'text' && textOf(body, message, part.texts[0]!) === text;
}

function mayJoin(before: Expected, next: Expected): boolean {
  const wereNeighbours = before.origin !== undefined && next.origin === before.origin + 1;
  return !wereNeighbours && before.isAssistant === next.isAssistant;
}

/** Returns what the conversation says in the terms of the expected model; what that leaves open is left open. */
function foundIn(conversation: Conversation, like: readonly MessageModel[]): readonly MessageModel[] {
  const { body } = conversation;
  return conversation.messages.map((message, index) => ({
    role: like[index] && like[index].role === undefined ? undefined : message.role,
    bytes: like[index]?.bytes === undefined ? undefined : bytesOfBlock(body, message),
    parts: message.parts.map((part, at) => ({
      type: part.type,
      texts:
        part.type === 'tool-call' && isOpen(like[index]?.parts[at])
          ? aroundInput(body, message, part)
          : textsOf(part).map((text) => textOf(body, message, text)),
      bytes:
        like[index]?.parts[at]?.bytes === undefined ? undefined : shown(bytesOf(body, message, part.span)),
    })),
  }));
}

function isOpen(like: PartModel | undefined): boolean {
  return like !== undefined && like.bytes === undefined;
}

/** Returns the bytes of a call ahead of its arguments, the arguments as JSON text, and the bytes after. */
function aroundInput(
  body: Uint8Array,
  message: Message,
  call: Part & { readonly type: 'tool-call' },
): readonly [string, string, string] {
  const { span, input } = call;
  const at = (start: number, end: number) => shown(bytesOf(body, message, { start, end }));
  return [at(span.start, input.start), inputOf(body, message, call), at(input.end, span.end)];
}
