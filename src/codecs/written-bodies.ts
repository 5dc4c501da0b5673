/**
 * Writes bodies of conversations that continue. The splices of a conversation that was written before are reused up to its new messages, and
 * so are the messages that were read from the body that was sent. Everything is kept with the client's messages, and lives as long as they do.
 */
import type { Conversation, Message } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { type Splice, applySplices, concatBytes, listSplices } from '../conversation/json-scan.ts';
import { memoized, rememberAt } from '../conversation/messages.ts';
import { oneStep } from '../conversation/steps.ts';
import { LeporelloError } from '../errors.ts';
import type { Codec, RecallTool, SeenList } from './codec.ts';
import { type MessageWriter, messageSplices, shift } from './write-body.ts';

/** Returns a splice that adds a tool definition after the client's own. The conversation must offer at least one tool. */
export function appendTool(conversation: Conversation, definition: Uint8Array): Splice {
  for (const block of conversation.preamble) {
    const tools = block.parts
      .filter((part) => part.type === 'tool-definition')
      .map((part) => shift(part.span, block.span.start));
    if (tools.length === 0) continue;
    const insertion = { before: tools.length, bytes: definition };
    const [splice] = listSplices(tools, block.span.end - 1, () => false, [insertion]);
    if (splice) return splice;
  }
  throw new LeporelloError('bad-edit', 'The recall tool cannot be added: the request offers no tools.');
}

const comma = new TextEncoder().encode(',');

/** Returns the definitions of the recall tool, and of the tool for notes if it comes with it, as elements of a list. */
export function definitionsOf(tool: RecallTool, define: (one: RecallTool) => Uint8Array): Uint8Array {
  return tool.notes ? concatBytes([define(tool), comma, define(tool.notes)]) : define(tool);
}

/** Creates the `write` of a codec with lists of messages and tools: it splices in edits and the recall tool, and keeps all other bytes. */
export function bodyWriter(
  format: string,
  writer: MessageWriter,
  toolDefinition: (tool: RecallTool) => Uint8Array,
): Codec['write'] {
  const definitionOf = memoized((tool: RecallTool) => definitionsOf(tool, toolDefinition));
  return function write(conversation, edits, extra = {}) {
    const { recallTool } = extra;
    return spliced(
      format,
      conversation,
      edits,
      writer,
      recallTool && (() => appendTool(conversation, definitionOf(recallTool))),
    );
  };
}

/** Splices edits into the messages of a body, and adds a tool. `format` is the name under which the body is read. */
export function spliced(
  format: string,
  conversation: Conversation,
  edits: readonly Edit[],
  writer: MessageWriter,
  toolSplice: (() => Splice) | undefined,
): Uint8Array {
  const { body } = conversation;
  const start = oneStep(() => startOf(conversation, edits));
  const rest = start ? oneStep(() => edits.slice(start.edits)) : edits;
  const added = messageSplices(conversation, rest, writer);
  return oneStep(() => {
    const tool = toolSplice?.();
    const own = added.toSorted((a, b) => a.span.start - b.span.start || a.span.end - b.span.end);
    const splices = start ? [...start.written.splices.slice(0, start.splices), ...own] : own;
    const out = applySplices(body, tool ? [...splices, tool] : splices);
    if (edits.length > 0 && out !== body)
      remember(conversation, edits, start, { format, splices, own, tool, out });
    return out;
  });
}

// Memory of bodies that were written. A message object stands for its bytes and for all bytes of the list in front of it, because only bodies
// with the same bytes share it. So the same messages with the same edits have the same splices, and are read as the same messages.

/** The newest of the bodies that were written of conversations that only append to each other. */
type Written = {
  messages: readonly Message[];
  /** The edits and their splices, in order. */
  readonly edits: Edit[];
  readonly splices: Splice[];
  /** Bytes added ahead of the messages. */
  ahead: number;
  /** The first messages of the body that was written, as far as they were read. */
  sent: readonly Message[];
};

const writtenBy = new WeakMap<Message, readonly Written[]>();

/** A request is written in several ways while a fold is planned. */
const maxForms = 4;

/** How far the last message of `written` that this conversation has, and everything before it, was written the same way. */
type Start = {
  readonly written: Written;
  readonly last: Message;
  /** The number of edits and of splices up to its end. */
  readonly edits: number;
  readonly splices: number;
};

/** Finds the newest message up to which the conversation was written with the same edits. */
function startOf({ messages }: Conversation, edits: readonly Edit[]): Start | undefined {
  if (edits.length === 0) return undefined;
  for (let at = messages.length - 1; at >= 0; at--) {
    const last = messages[at]!;
    for (const written of writtenBy.get(last) ?? []) {
      const start = written.messages[at] === last && startAt(written, last, at, edits);
      if (start) return start;
    }
  }
  return undefined;
}

function startAt(written: Written, last: Message, at: number, edits: readonly Edit[]): Start | undefined {
  let common = 0;
  while (
    common < edits.length &&
    edits[common] === written.edits[common] &&
    lastMessageOf(edits[common]!) <= at
  )
    common++;
  // All other edits only replace texts in later messages, so they move no bytes up to the end of this one.
  for (const list of [edits, written.edits])
    for (let index = common; index < list.length; index++) {
      const edit = list[index]!;
      if (edit.kind !== 'replace-text' || edit.at.message <= at) return undefined;
    }
  const { end } = last.span;
  let splices = written.splices.length;
  while (splices > 0 && written.splices[splices - 1]!.span.end > end) splices--;
  const next = written.splices[splices];
  if (next && next.span.start < end) return undefined;
  const newest = written.splices[splices - 1];
  // A message that is removed may be removed together with the next one.
  if (newest && newest.span.end === end && newest.span.start <= last.span.start) return undefined;
  return { written, last, edits: common, splices };
}

type MadeBody = {
  readonly format: string;
  /** All splices of the messages in order, and those among them that are new. */
  readonly splices: readonly Splice[];
  readonly own: readonly Splice[];
  readonly tool: Splice | undefined;
  readonly out: Uint8Array;
};

function remember(
  { messages }: Conversation,
  edits: readonly Edit[],
  start: Start | undefined,
  { format, splices, own, tool, out }: MadeBody,
): void {
  const first = messages[0]!.span.start;
  const ahead = tool && tool.span.start < first ? growthOf([tool]) : 0;
  const sent = start && start.written.ahead === ahead ? sentUpTo(start) : [];
  const before = start?.written;
  let written: Written;
  if (before && before.edits.length === start.edits && before.splices.length === start.splices) {
    for (let index = start.edits; index < edits.length; index++) before.edits.push(edits[index]!);
    before.splices.push(...own);
    written = before;
    Object.assign(written, { messages, ahead, sent });
  } else {
    written = { messages, edits: [...edits], splices: [...splices], ahead, sent };
  }
  const others = (writtenBy.get(messages.at(-1)!) ?? []).filter((one) => one !== written);
  rememberAt(writtenBy, messages, 0, [written, ...others].slice(0, maxForms));
  listsWritten.set(out, { format, written, messages, start: sent.length > 0 ? start : undefined });
}

/** The list of messages of a body that was written and not read yet. */
type ListWritten = {
  readonly format: string;
  readonly written: Written;
  readonly messages: readonly Message[];
  readonly start: Start | undefined;
};

const listsWritten = new WeakMap<Uint8Array, ListWritten>();

/** Returns what is known of the messages of a body that was just written. Undefined for all other bodies. */
export function listWritten(body: Uint8Array, format: string): SeenList | undefined {
  const made = listsWritten.get(body);
  if (made?.format !== format) return undefined;
  // The owner of a body may change its bytes later.
  listsWritten.delete(body);
  const { written, messages } = made;
  // Another request may have written a branch meanwhile.
  if (written.messages !== messages) return undefined;
  const unchanged = unchangedMessages(made);
  return {
    messages: written.sent,
    unchanged({ start, end }) {
      const message = unchanged.get(start);
      return message && message.span.end - message.span.start === end - start ? message : undefined;
    },
    keep(sent) {
      if (written.messages === messages) written.sent = sent;
    },
  };
}

/** Returns the messages after the start that no splice changes, by their place in the body that was written. */
function unchangedMessages({ written, messages, start }: ListWritten): ReadonlyMap<number, Message> {
  const { splices, ahead } = written;
  const unchanged = new Map<number, Message>();
  let next = start?.splices ?? 0;
  let moved = ahead + growthOf(splices.slice(0, next));
  for (let at = start ? start.last.index + 1 : 0; at < messages.length; at++) {
    const message = messages[at]!;
    for (; next < splices.length && splices[next]!.span.end <= message.span.start; next++)
      moved += growthOf([splices[next]!]);
    if (next === splices.length || splices[next]!.span.start >= message.span.end)
      unchanged.set(message.span.start + moved, message);
  }
  return unchanged;
}

function growthOf(splices: readonly Splice[]): number {
  let growth = 0;
  for (const { span, bytes } of splices) growth += bytes.length - (span.end - span.start);
  return growth;
}

/** Returns the messages that were read from the body that was sent, up to the end of the last message that is the same. */
function sentUpTo({ written, last, splices }: Start): readonly Message[] {
  const { sent, ahead } = written;
  const end = last.span.end + ahead + growthOf(written.splices.slice(0, splices));
  let count = sent.length;
  while (count > 0 && sent[count - 1]!.span.end > end) count--;
  return sent[count - 1]?.span.end === end ? sent.slice(0, count) : [];
}
