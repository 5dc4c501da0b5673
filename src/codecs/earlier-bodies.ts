/**
 * Remembers bodies that were read and written, for conversations that continue: only their new messages are read, spliced, and read again as they
 * are sent. The memory of bodies that were read is bounded; everything about those that were written lives as long as the client's messages.
 */
import { type Caches, createCaches, openNotes } from '../caches.ts';
import type { Conversation, Message } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { type Splice, applySplices, concatBytes, inOrder } from '../conversation/json-scan.ts';
import { memoized, rememberAt } from '../conversation/messages.ts';
import { oneStep } from '../conversation/steps.ts';
import type { Codec, RecallTool, SeenBodies, SeenList } from './codec.ts';
import { type MessageWriter, appendTool, messageSplices } from './write-body.ts';

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
    const own = inOrder(added);
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
  /** How many bodies were written. Two may be of the same messages, with different edits. */
  version: number;
};

const writtenBy = openNotes<Message, readonly Written[]>('message');

/** A request is written in several ways while a fold is planned. */
const maxForms = 4;

/** How far the last message of `written` that this conversation has, and everything before it, was written the same way. */
type Start = {
  readonly written: Written;
  readonly version: number;
  readonly last: Message;
  /** The number of edits and of splices up to its end. */
  readonly edits: number;
  readonly splices: number;
};

/** Finds the newest message up to which the conversation was written with the same edits. */
function startOf({ messages }: Conversation, edits: readonly Edit[]): Start | undefined {
  if (edits.length === 0) return undefined;
  let tries = maxTries;
  for (let at = messages.length - 1; at >= 0; at--) {
    const last = messages[at]!;
    for (const written of writtenBy.get(last) ?? []) {
      if (written.messages[at] !== last) continue;
      const start = startAt(written, last, at, edits);
      if (start) return start;
      if (--tries === 0) return undefined;
    }
  }
  return undefined;
}

/** Each try compares all edits. After a new fold, none succeeds. */
const maxTries = 16;

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
    for (const edit of list.slice(common))
      if (edit.kind !== 'replace-text' || edit.at.message <= at) return undefined;
  const { end } = last.span;
  let splices = written.splices.length;
  while (splices > 0 && written.splices[splices - 1]!.span.end > end) splices--;
  const next = written.splices[splices];
  if (next && next.span.start < end) return undefined;
  const newest = written.splices[splices - 1];
  // A message that is removed may be removed together with the next one.
  if (newest && newest.span.end === end && newest.span.start <= last.span.start) return undefined;
  return { written, version: written.version, last, edits: common, splices };
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
  // While this request was paused, another one may have written a branch.
  const before = start?.written.version === start?.version ? start?.written : undefined;
  const sent = before?.ahead === ahead ? sentUpTo(start!) : [];
  let written: Written;
  if (start && before?.edits.length === start.edits && before.splices.length === start.splices) {
    for (let index = start.edits; index < edits.length; index++) before.edits.push(edits[index]!);
    for (const splice of own) before.splices.push(splice);
    written = before;
    Object.assign(written, { messages, ahead, sent, version: before.version + 1 });
  } else {
    written = { messages, edits: [...edits], splices: [...splices], ahead, sent, version: 1 };
  }
  const others = (writtenBy.get(messages.at(-1)!) ?? []).filter((one) => one !== written);
  rememberAt(writtenBy, messages, 0, [written, ...others].slice(0, maxForms));
  listsWritten.set(out, {
    format,
    written,
    version: written.version,
    messages,
    start: sent.length > 0 ? start : undefined,
  });
}

/** The list of messages of a body that was written and not read yet. */
type ListWritten = {
  readonly format: string;
  readonly written: Written;
  readonly version: number;
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
  const { written, version } = made;
  // Another request may have written a branch meanwhile.
  if (written.version !== version) return undefined;
  const unchanged = unchangedMessages(made);
  return {
    messages: written.sent,
    unchanged({ start, end }) {
      const message = unchanged.get(start);
      return message && message.span.end - message.span.start === end - start ? message : undefined;
    },
    keep(sent) {
      if (written.version === version) written.sent = sent;
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
  return splices.reduce((growth, { span, bytes }) => growth + bytes.length - (span.end - span.start), 0);
}

/** Returns the messages that were read from the body that was sent, up to the end of the last message that is the same. */
function sentUpTo({ written, last, splices }: Start): readonly Message[] {
  const { sent, ahead } = written;
  const end = last.span.end + ahead + growthOf(written.splices.slice(0, splices));
  let count = sent.length;
  while (count > 0 && sent[count - 1]!.span.end > end) count--;
  return sent[count - 1]?.span.end === end ? sent.slice(0, count) : [];
}

// Lists of messages that were read before. A conversation that continues repeats all of them at the same places, turn after turn:
// messages in equal bytes are reused, and neither scanned nor digested again. The memo is bounded and holds copies: changing a
// body after it was read changes nothing here.

/** Bytes of the shortest list that is remembered: shorter ones are read quickly, and hold few bytes to look them up by. */
const minBytes = 16 * 1024;
/** Lists are looked up by some bytes at two places: hashing all of their beginning takes as long as comparing it. Those found are compared completely. */
const keyPlaces = [0, 15 * 1024] as const;
const keyBytes = 1024;

function keyOf(bytes: Uint8Array): number {
  let key = 0;
  for (const from of keyPlaces)
    for (let at = from; at < from + keyBytes; at += 3) key = Math.imul(key ^ bytes[at]!, 0x01000193);
  return key;
}

/**
 * The number of lists with the same bytes there. A conversation is read as received, as sent, and perhaps with hidden recalls; it may branch;
 * and several agents of one project may begin alike.
 */
const maxAlike = 16;

/** Bytes of a message, with its splices and as it was sent. */
const bytesOfMessage = 450;

/** The bytes of a list. A branch shares its first bytes with the list that it left. */
type SeenBody = {
  /** Bytes of another list, which never change; empty for a list that is no branch. */
  trunk: Uint8Array;
  /** The bytes behind the trunk. The array may be longer than the list, so that it need not grow each turn. */
  bytes: Uint8Array;
  /** How many of `bytes` branches share. */
  shared: number;
  /** The number of all bytes. */
  length: number;
  messages: readonly Message[];
};

const noBytes = new Uint8Array(0);

export function createSeenBodies({
  commonLength,
  caches = createCaches(),
}: Pick<SeenBodies, 'commonLength'> & { readonly caches?: Caches | undefined }): SeenBodies {
  const lists = caches<readonly SeenBody[]>('seen bodies', (alike) =>
    alike.reduce((sum, { messages }) => sum + bytesOfMessage * messages.length, bytesHeldBy(alike)),
  );
  const commonWith = ({ trunk, bytes: own, length }: SeenBody, bytes: Uint8Array, likely = 0): number => {
    const common = trunk.length > 0 ? commonLength(trunk, bytes, trunk.length) : 0;
    if (common < trunk.length) return common;
    return common + commonLength(own.subarray(0, length - common), bytes.subarray(common), likely - common);
  };

  /** Finds the list with the most bytes in common. The likely one is compared first, and ends the search if only its newest message differs. */
  function mostAlike(alike: readonly SeenBody[], bytes: Uint8Array, start: number) {
    const likely = likelyOf(alike, bytes, start);
    let best = likely && { ...likely, common: commonWith(likely.held, bytes, likely.end) };
    if (best && best.common >= best.end) return best;
    for (const held of alike) {
      const common = held === likely?.held ? 0 : commonWith(held, bytes);
      if (!best || common > best.common) best = { held, end: 0, common };
    }
    return best;
  }

  return {
    commonLength,
    look(of, body, start) {
      const bytes = body.subarray(start);
      if (bytes.length < minBytes) return { messages: [], keep: () => undefined };
      const key = `${of} ${start} ${keyOf(bytes)}`;
      const alike = lists.get(key) ?? [];
      const best = mostAlike(alike, bytes, start);
      const before = best?.held.messages ?? [];
      const known = best ? within(before, start + best.common, body) : [];
      return {
        messages: known,
        keep(messages) {
          const length = (messages.at(-1)?.span.end ?? start) - start;
          // If more than the newest message differs, this is another branch, or another form of the conversation. Both may come again, so
          // the old list stays. Another request may have changed the list while this one was paused.
          const continues = best?.held.messages === before && known.length >= before.length - 1;
          const isBranch = best?.held.messages === before && !continues;
          const held = best && continues ? best.held : branchOf(isBranch ? best : undefined, length);
          copyInto(held, bytes.subarray(0, length), best && continues ? best.common : held.length);
          held.messages = messages;
          const others = (lists.get(key) ?? []).filter((other) => other !== held);
          lists.set(key, [held, ...others].slice(0, maxAlike));
        },
      };
    },
  };
}

function bytesHeldBy(alike: readonly SeenBody[]): number {
  const held: ArrayBufferLike[] = [];
  for (const { trunk, bytes } of alike)
    for (const { buffer } of [trunk, bytes]) if (!held.includes(buffer)) held.push(buffer);
  return held.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Returns the list of which the body seems to repeat the most: all, or all but the newest message. Only the bytes in front of that `end` are compared. */
function likelyOf(alike: readonly SeenBody[], bytes: Uint8Array, start: number) {
  let likely: { readonly held: SeenBody; readonly end: number } | undefined;
  for (const held of alike)
    for (const end of [held.length, (held.messages.at(-2)?.span.end ?? start) - start])
      if (end > (likely?.end ?? 0) && endsAlike(held, bytes, end)) likely = { held, end };
  return likely;
}

/** True if the bytes in front of `end` equal those of the list. */
function endsAlike({ trunk, bytes: own }: SeenBody, bytes: Uint8Array, end: number): boolean {
  if (end > bytes.length) return false;
  for (let at = end - 1; at >= Math.max(0, end - 64); at--) {
    const held = at < trunk.length ? trunk[at] : own[at - trunk.length];
    if (held !== bytes[at]) return false;
  }
  return true;
}

/** Starts a list of so many bytes. The bytes that it has in common with another list are shared, unless they are few. */
function branchOf(
  best: { readonly held: SeenBody; readonly common: number } | undefined,
  length: number,
): SeenBody {
  const branch = { trunk: noBytes, bytes: noBytes, shared: 0, length: 0, messages: [] };
  if (!best) return branch;
  const { held, common } = best;
  const isTrunk = held.trunk.length === 0;
  const trunk = isTrunk ? held.bytes.subarray(0, Math.min(common, length)) : held.trunk.subarray(0, common);
  if (trunk.length * 2 < length) return branch;
  if (isTrunk) held.shared = Math.max(held.shared, trunk.length);
  return { ...branch, trunk, length: trunk.length };
}

/** Returns the messages that end by `end`. One that ends right there must be an object: a number, for example, might continue after it. */
function within(messages: readonly Message[], end: number, body: Uint8Array): readonly Message[] {
  let count = messages.length;
  while (count > 0 && messages[count - 1]!.span.end > end) count--;
  if (messages[count - 1]?.span.end === end && body[end - 1] !== closingBrace) count--;
  return messages.slice(0, count);
}

const closingBrace = '}'.charCodeAt(0);

/** Copies the list; the first `same` bytes are already there. */
function copyInto(held: SeenBody, bytes: Uint8Array, same: number): void {
  if (same < held.trunk.length) Object.assign(held, { trunk: noBytes, bytes: noBytes, shared: 0 });
  const rest = bytes.subarray(held.trunk.length);
  const from = Math.min(held.bytes.length, rest.length, Math.max(0, same - held.trunk.length));
  if (held.bytes.length < rest.length || from < held.shared) {
    const grown = new Uint8Array(Math.ceil(rest.length * 1.25));
    grown.set(held.bytes.subarray(0, from));
    held.bytes = grown;
    held.shared = 0;
  }
  held.bytes.set(rest.subarray(from), from);
  held.length = bytes.length;
}
