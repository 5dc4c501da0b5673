/**
 * Implements the shared part of every codec's reader: finds the top-level fields and the blocks of a body, and reuses what is remembered of
 * a block's bytes. Only new bytes are parsed, in full, so a body that was read is known to be JSON.
 */
import type { BodyFields, Codec, ReadBlock, ReadContext, SeenBodies } from './codec.ts';
import type { Block, Conversation, Message, Part, Span } from '../conversation/conversation.ts';
import {
  type Member,
  ScanError,
  parseSpan,
  scanArray,
  scanObject,
  skipSpace,
} from '../conversation/json-scan.ts';
import { type Slices, checkJson, inSteps, oneStep, runAtOnce, runInPauses } from '../conversation/steps.ts';
import { checkBlock, joinedPieces } from '../conversation/messages.ts';
import { LeporelloError } from '../errors.ts';
import { listWritten } from './earlier-bodies.ts';
import { type KnownList, elementsInSteps, maxScannedBytes } from './read-beginning.ts';

export type { BodyFields } from './codec.ts';

/** Reads without remembering anything, for bytes outside any conversation. */
export const unremembered: ReadContext = {
  digest: () => '',
  blocks: { get: () => undefined, set: () => undefined },
};

/** Reads one block of a format from its bytes. A small block is checked to be JSON afterwards, a large one before. */
export type BlockReader = (bytes: Uint8Array, reading: ReadContext) => ReadBlock;

/**
 * Runs `read` over the top-level fields. `list` names the field that holds the messages. Throws `not-this-format` for anything
 * but one JSON object, for a duplicate field (providers differ in which they take), and for anything that `read` refuses.
 */
export function readFields<T>(
  format: string,
  body: Uint8Array,
  list: string,
  reading: ReadContext,
  read: (fields: BodyFields) => T,
): T {
  try {
    return read(scanFields(format, body, list, reading));
  } catch (cause) {
    if (!(cause instanceof ScanError)) throw cause;
    const says = `The body is not ${/^[AEIO]/.test(format) ? 'an' : 'a'} ${format} request: ${cause.message}.`;
    throw new LeporelloError('not-this-format', says, { cause });
  }
}

function scanFields(format: string, body: Uint8Array, list: string, reading: ReadContext): BodyFields {
  const lists: ReadonlySet<string> = new Set([list]);
  const look = (start: number): KnownList => {
    const seen = reading.seen && (listWritten(body, format) ?? reading.seen.look(format, body, start));
    return { start, seen, elements: (seen?.messages ?? []).slice(-1).map((message) => message.span) };
  };
  const begun = body.length > maxScannedBytes ? elementsInSteps(body, lists, look) : undefined;
  let found = begun;
  const { frame, members, span, seen } = oneStep(() => {
    const known = (start: number): readonly Span[] => {
      if (found?.start !== start) found = look(start);
      return found.elements;
    };
    const scanned =
      scanInFrame(format, body, reading, known) ?? scanObject(body, skipSpace(body, 0), lists, known);
    return { frame: undefined, ...scanned, seen: found?.seen };
  });
  if (!frame && skipSpace(body, span.end) !== body.length)
    throw new ScanError(`more bytes after the object, at ${span.end}`);
  // Each step runs only once, even if the function is run again after a pause, so the steps can fill one map.
  const [byKey, groups] = oneStep(() => [new Map<string, Member>(), groupsOf(members)] as const);
  inSteps(groups, (group) => {
    for (const member of group) byKey.set(member.key, member);
  });
  if (byKey.size < members.length) throw new ScanError('a top-level key occurs twice');
  const messages = byKey.get(list)?.elements;
  if (!messages) throw new ScanError(`'${list}' is missing or not an array`);
  const get = (key: string) => byKey.get(key)?.value;
  const fields = { format, body, members, messages, seen, get };
  return { ...fields, frame: frame ?? oneStep(() => newFrame(fields, byKey.get(list)!, reading)) };
}

/** Everything of a body but its messages: the turns of a conversation repeat it, so it is read once. `members`: as they stood there, with the list. */
type Frame = NonNullable<BodyFields['frame']> & {
  readonly format: string;
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly members: readonly Member[];
  readonly list: Member;
};

/** Frames by the memory of earlier bodies that they belong to, the newest first. */
const framesOf = new WeakMap<SeenBodies, readonly Frame[]>();
const [maxFrames, maxFrameBytes] = [16, 262_144];

/** Finds the members of a body whose frame is known. */
function scanInFrame(
  format: string,
  body: Uint8Array,
  { seen }: ReadContext,
  known: (start: number) => readonly Span[],
): { readonly members: readonly Member[]; readonly span: Span; readonly frame: Frame } | undefined {
  const isSame = (one: Uint8Array, other: Uint8Array) =>
    seen?.commonLength(one, other, one.length) === one.length;
  for (const frame of (seen && framesOf.get(seen)) ?? []) {
    const { head, tail, list } = frame;
    if (frame.format !== format || body.length < head.length + tail.length || !isSame(head, body)) continue;
    if (!isSame(tail, body.subarray(body.length - tail.length))) continue;
    const { start } = list.value;
    const { elements, span } = scanArray(body, start, known(start));
    if (span.end !== body.length - tail.length) return undefined;
    const moved = span.end - list.value.end;
    const members = frame.members.map((member): Member => {
      if (member === list)
        return { ...member, span: { start: member.span.start, end: span.end }, value: span, elements };
      return member.span.start < start
        ? member
        : { ...member, span: movedBy(member.span, moved), value: movedBy(member.value, moved) };
    });
    return { members, span, frame };
  }
  return undefined;
}

const movedBy = ({ start, end }: Span, by: number): Span => ({ start: start + by, end: end + by });

/** Remembers the frame of a body, unless it is large. */
function newFrame(
  { format, body, members }: Pick<BodyFields, 'format' | 'body' | 'members'>,
  list: Member,
  { seen }: ReadContext,
): Frame | undefined {
  const [from, to] = [list.value.start, list.value.end];
  if (!seen || from + body.length - to > maxFrameBytes) return undefined;
  const frame = { format, members, list, head: body.slice(0, from), tail: body.slice(to), blocks: new Map() };
  framesOf.set(seen, [frame, ...(framesOf.get(seen) ?? [])].slice(0, maxFrames));
  return frame;
}

/** Divides members into groups that take about as long. */
function groupsOf(members: readonly Member[]): readonly (readonly Member[])[] {
  const groups: Member[][] = [];
  let room = 0;
  for (const member of members) {
    const bytes = member.span.end - member.span.start + 100;
    if (bytes > room) {
      groups.push([]);
      room = maxGroupBytes;
    }
    groups.at(-1)!.push(member);
    room -= bytes;
  }
  return groups;
}

/** Bytes of members that are handled in one step, with 100 for each. */
const maxGroupBytes = 131_072;

/** Parses, and so checks, every field that is not read as a block. */
export function parseOtherFields(
  fields: BodyFields,
  blocks: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  const known = oneStep(() => fields.frame?.others);
  if (known) return known;
  const parsed = oneStep(() => ({}));
  const groups = oneStep(() => groupsOf(fields.members.filter((member) => !blocks.has(member.key))));
  inSteps(groups, (group) => {
    for (const { key, value } of group)
      Object.defineProperty(parsed, key, {
        value: parseSpan(fields.body, value),
        enumerable: true,
        configurable: true,
        writable: true,
      });
  });
  if (fields.frame) fields.frame.others = parsed;
  return parsed;
}

/** Returns the messages in order. */
export function readMessages(
  fields: BodyFields,
  reading: ReadContext,
  readBlock: BlockReader,
): readonly Message[] {
  const of = `${fields.format}/messages`;
  const known = fields.seen?.messages ?? [];
  const unknown = oneStep(() => (known.length > 0 ? fields.messages.slice(1) : fields.messages));
  const added = inSteps(unknown, (span, at): Message => {
    const index = known.length + at;
    const before = fields.seen?.unchanged?.(span);
    if (before) return { ...before, span, index };
    const { digest, block } = blockOf(fields, span, of, reading, readBlock);
    const { role, parts, canonical, markedForMs } = block;
    return { span, digest, parts, index, role, canonical, markedForMs };
  });
  return oneStep(() => {
    const messages = known.length > 0 ? [...known, ...added] : added;
    fields.seen?.keep(messages);
    return messages;
  });
}

/** Reads a field other than the messages (system, tools) as a block; undefined when the body does not have it, or has null. */
export function readPreamble(
  fields: BodyFields,
  key: string,
  reading: ReadContext,
  readBlock: BlockReader,
): Block | undefined {
  const span = fields.get(key);
  if (!span || (isNull(fields.body, span) && parseSpan(fields.body, span) === null)) return undefined;
  const { digest, block } = oneStep(() => {
    const read =
      fields.frame?.blocks.get(key) ?? blockOf(fields, span, `${fields.format}/${key}`, reading, readBlock);
    fields.frame?.blocks.set(key, read);
    return read;
  });
  return { span, digest, parts: block.parts, markedForMs: block.markedForMs };
}

function blockOf(fields: BodyFields, span: Span, of: string, reading: ReadContext, readBlock: BlockReader) {
  const bytes = fields.body.subarray(span.start, span.end);
  const isSmall = bytes.length < minPausableBytes;
  const read = () => {
    const { digest, known } = oneStep(() => {
      const own = reading.digest(bytes);
      return { digest: own, known: reading.blocks.get(own) };
    });
    if (known?.of === of) return { digest, block: known };
    if (!isSmall) checkJson(bytes);
    const block: ReadBlock = { ...readBlock(bytes, reading), of };
    if (isSmall) checkBlock(bytes, block.parts);
    reading.blocks.set(digest, block);
    return { digest, block };
  };
  scanned = { bytes, found: new Map() };
  try {
    return isSmall ? runAtOnce(read) : read();
  } finally {
    scanned = undefined;
  }
}

/** The block that is being read, and what was found in it by place: its parts, its digest and its cache marks need the same objects. */
let scanned: { readonly bytes: Uint8Array; readonly found: Map<number, unknown> } | undefined;

function scannedOnce<T>(bytes: Uint8Array, start: number, scan: () => T): T {
  if (scanned?.bytes !== bytes) return scan();
  const found = (scanned.found.get(start) as T | undefined) ?? scan();
  scanned.found.set(start, found);
  return found;
}

/** Returns the members of the object that starts at `start`, in order, duplicates included. */
export function objectAt(bytes: Uint8Array, start: number): readonly Member[] {
  return scannedOnce(bytes, start, () => scanObject(bytes, start).members);
}

/** Bytes of the shortest block that is read in steps. */
const minPausableBytes = 32_768;

/** Returns members by key; undefined when a key occurs twice. */
export function uniqueMembers(members: readonly Member[]): ReadonlyMap<string, Member> | undefined {
  const { byKey, repeats } = lastMembers(members);
  return repeats ? undefined : byKey;
}

/**
 * The members of an object by key. The last of several with one key counts, as in `JSON.parse`, in the parsers of Python and Go,
 * and so at the providers. `repeats` says that there are several: the content of such an object is never edited.
 */
export type LastMembers = { readonly byKey: ReadonlyMap<string, Member>; readonly repeats: boolean };

export function lastMembers(members: readonly Member[]): LastMembers {
  const byKey = new Map<string, Member>();
  for (const member of members) byKey.set(member.key, member);
  return { byKey, repeats: byKey.size < members.length };
}

/** Returns the parts of an object or list with a duplicate key, marked so that nothing in their step may be edited. */
export function keptWithStep(parts: readonly Part[], whole: Span): readonly Part[] {
  if (parts.length === 0) return [{ type: 'opaque', span: whole, kind: 'duplicate-keys', stays: 'step' }];
  return parts.map((part) => ({ ...part, stays: 'step' }));
}

/** True when the value at `span` starts with this byte: a quote, a brace, a bracket, or the first letter of `true`. */
export function startsWith(bytes: Uint8Array, span: Span, character: '"' | '{' | '[' | 't'): boolean {
  return bytes[span.start] === character.charCodeAt(0);
}

/** True when the value at `span`, which is known to be JSON, is null. */
export function isNull(bytes: Uint8Array, span: Span): boolean {
  return bytes[span.start] === 'n'.charCodeAt(0);
}

/** Returns the place of a member's string literal; undefined when it is of another type or absent. */
export function textMember(bytes: Uint8Array, member: Member | undefined): Span | undefined {
  return member && startsWith(bytes, member.value, '"') ? member.value : undefined;
}

/** Returns a member's string; undefined when it is of another type or absent. */
export function stringAt(bytes: Uint8Array, member: Member | undefined): string | undefined {
  const span = textMember(bytes, member);
  return span && (parseSpan(bytes, span) as string);
}

/** Returns the names of the tools a block defines; built-in ones have none. */
export function toolNamesOf(tools: Block | undefined): readonly string[] {
  const names: string[] = [];
  for (const part of tools?.parts ?? [])
    if (part.type === 'tool-definition' && part.name !== undefined) names.push(part.name);
  return names;
}

// Pieces of a message that its canonical digest covers. Members that clients move between turns are left out, and a text spelled as a
// string gives the same pieces as one text block. Two contents have the same pieces only if they have the same parts, so an
// edit recorded for one names the same place in the other. Pieces are views of the body: nothing is copied here.

type Pieces = readonly Uint8Array[];

const [comma, open, close, contentStart, contentEnd, textStart] = [
  ',',
  '{',
  '},',
  '"content":[',
  '],',
  '"type":"text","text":',
].map((text) => new TextEncoder().encode(text)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
];

/** Returns the pieces of a content that is a string or an array of blocks; any other value is one piece. */
export function contentPieces(bytes: Uint8Array, content: Span, moving: ReadonlySet<string>): Pieces {
  if (isText(bytes, content)) return textPieces(bytes, content);
  if (bytes[content.start] !== '['.charCodeAt(0)) return [bytesAt(bytes, content)];
  // Pieces are joined as `canonicalDigest` joins them.
  return inSteps(elementsAt(bytes, content), (element) => joinedPieces(blockPieces(bytes, element, moving)));
}

/** Returns the elements of a list, in one step. */
export function elementsAt(bytes: Uint8Array, list: Span): readonly Span[] {
  return oneStep(() => scannedOnce(bytes, list.start, () => scanArray(bytes, list.start).elements));
}

/** Returns the members of an object in their order, with `content` cut into pieces. */
export function memberPieces(
  bytes: Uint8Array,
  members: readonly Member[],
  moving: ReadonlySet<string>,
): Pieces {
  return members.flatMap((member) => {
    if (moving.has(member.key)) return [];
    if (member.key !== 'content') return [bytesAt(bytes, member.span), comma];
    return [contentStart, ...contentPieces(bytes, member.value, moving), contentEnd];
  });
}

function blockPieces(bytes: Uint8Array, span: Span, moving: ReadonlySet<string>): Pieces {
  if (bytes[span.start] !== '{'.charCodeAt(0)) return [bytesAt(bytes, span), comma];
  const members = objectAt(bytes, span.start);
  const still = members.filter((member) => !moving.has(member.key));
  const type = still.find((member) => member.key === 'type');
  const kind = type && parseSpan(bytes, type.value);
  if (kind === 'tool_result') return [open, ...memberPieces(bytes, still, moving), close];
  const text = still.find((member) => member.key === 'text');
  if (kind === 'text' && text && still.length === 2 && isText(bytes, text.value))
    return textPieces(bytes, text.value);
  return [open, ...still.flatMap((member) => [bytesAt(bytes, member.span), comma]), close];
}

function textPieces(bytes: Uint8Array, literal: Span): Pieces {
  return [open, textStart, bytesAt(bytes, literal), close];
}

function bytesAt(bytes: Uint8Array, span: Span): Uint8Array {
  return bytes.subarray(span.start, span.end);
}

/** True for a non-empty string. The empty string is different: some formats read it as no content at all. */
function isText(bytes: Uint8Array, span: Span): boolean {
  return bytes[span.start] === '"'.charCodeAt(0) && span.end - span.start > 2;
}

/** Reads a body as `codec.read` does. Throws or rejects with what that throws. */
export function readInSlices(
  codec: Codec,
  body: Uint8Array,
  reading: ReadContext,
  slices: Slices | undefined,
): Conversation | Promise<Conversation> {
  return runInPauses(slices, () => codec.read(body, reading));
}
