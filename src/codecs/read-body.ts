/**
 * The shared part of every codec's reader: finds the top-level fields and the blocks of a body, and reuses what is remembered of
 * a block's bytes. Only new bytes are parsed, in full, so a body that was read is known to be JSON.
 */
import type { Block, Message, Part, Span } from '../conversation/conversation.ts';
import { type Member, parseSpan, ScanError, scanObject, skipSpace } from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import type { BodyFields, ReadBlock, ReadContext } from './codec.ts';
import type { SeenList } from './seen-bodies.ts';

export type { BodyFields } from './codec.ts';

/** Reads without remembering anything, for bytes outside any conversation. */
export const unremembered: ReadContext = {
  digest: () => '',
  blocks: { get: () => undefined, set: () => undefined },
};

/** Reads one block of a format from its bytes, which are known to be JSON. */
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
    return read(reading.slice?.paused?.fields ?? scanFields(format, body, list, reading));
  } catch (cause) {
    if (!(cause instanceof ScanError)) throw cause;
    throw new LeporelloError('not-this-format', `The body is not a ${format} request: ${cause.message}.`, {
      cause,
    });
  }
}

function scanFields(format: string, body: Uint8Array, list: string, reading: ReadContext): BodyFields {
  let seen: SeenList | undefined;
  const known = (start: number): readonly Span[] => {
    seen = reading.seen?.look(format, body, start);
    return (seen?.messages ?? []).map((message) => message.span);
  };
  const { members, span } = scanObject(body, skipSpace(body, 0), new Set([list]), known);
  if (skipSpace(body, span.end) !== body.length)
    throw new ScanError(`more bytes after the object, at ${span.end}`);
  const byKey = uniqueMembers(members);
  if (!byKey) throw new ScanError('a top-level key occurs twice');
  const messages = byKey.get(list)?.elements;
  if (!messages) throw new ScanError(`'${list}' is missing or not an array`);
  return { format, body, members, messages, seen, get: (key) => byKey.get(key)?.value };
}

/** Parses, and so checks, every field that is not read as a block. */
export function parseOtherFields(
  fields: BodyFields,
  blocks: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  const others = fields.members.filter((member) => !blocks.has(member.key));
  return Object.fromEntries(others.map((member) => [member.key, parseSpan(fields.body, member.value)]));
}

/** Thrown by `read` when a slice is over: see `ReadSlice`. */
export class ReadingPaused extends Error {}

/** Returns the messages in order. */
export function readMessages(
  fields: BodyFields,
  reading: ReadContext,
  readBlock: BlockReader,
): readonly Message[] {
  const of = `${fields.format}/messages`;
  const { slice } = reading;
  const messages = slice?.paused?.messages ?? [...(fields.seen?.messages ?? [])];
  const first = messages.length;
  for (let index = first; index < fields.messages.length; index++) {
    if (index > first && slice?.isOver()) {
      slice.paused = { fields, messages };
      throw new ReadingPaused();
    }
    const span = fields.messages[index]!;
    const { digest, block } = blockOf(fields, span, of, reading, readBlock);
    const { role, parts, canonical, markedForMs } = block;
    messages.push({ span, digest, parts, index, role, canonical, markedForMs });
  }
  fields.seen?.keep(messages);
  return messages;
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
  const { digest, block } = blockOf(fields, span, `${fields.format}/${key}`, reading, readBlock);
  return { span, digest, parts: block.parts, markedForMs: block.markedForMs };
}

function blockOf(fields: BodyFields, span: Span, of: string, reading: ReadContext, readBlock: BlockReader) {
  const bytes = fields.body.subarray(span.start, span.end);
  const digest = reading.digest(bytes);
  const known = reading.blocks.get(digest);
  if (known?.of === of) return { digest, block: known };
  parseSpan(bytes, { start: 0, end: bytes.length });
  const block: ReadBlock = { ...readBlock(bytes, reading), of };
  reading.blocks.set(digest, block);
  return { digest, block };
}

/** Returns members by key; undefined when a key occurs twice. */
export function uniqueMembers(members: readonly Member[]): ReadonlyMap<string, Member> | undefined {
  const { byKey, repeats } = lastMembers(members);
  return repeats ? undefined : byKey;
}

/**
 * The members of an object by key. Of several with one key the last counts, as in `JSON.parse`, in the parsers of Python and Go,
 * and so at the providers. `repeats` says that there are several: the content of such an object is never edited.
 */
export type LastMembers = { readonly byKey: ReadonlyMap<string, Member>; readonly repeats: boolean };

export function lastMembers(members: readonly Member[]): LastMembers {
  const byKey = new Map(members.map((member) => [member.key, member]));
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
  if (!member) return undefined;
  const value = startsWith(bytes, member.value, '"') ? parseSpan(bytes, member.value) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Returns the names of the tools a block defines; built-in ones have none. */
export function toolNamesOf(tools: Block | undefined): readonly string[] {
  return (tools?.parts ?? []).flatMap((part) =>
    part.type === 'tool-definition' && part.name !== undefined ? [part.name] : [],
  );
}
