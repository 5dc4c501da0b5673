/**
 * What every codec does when it reads: finds the top-level fields and the blocks of a body, and brings what is remembered of a
 * block's bytes. Only bytes never seen before are parsed, in full, so that a body that was read is known to be JSON.
 */
import type { Block, Message, Part, Span } from '../conversation/conversation.ts';
import { type Member, parseSpan, ScanError, scanObject, skipSpace } from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import type { Fields, Outline, ReadContext } from './codec.ts';
import type { SeenList } from './seen-bodies.ts';

export type { Fields } from './codec.ts';

/** Reads without remembering anything, for what is read apart from any conversation. */
export const unremembered: ReadContext = {
  digest: () => '',
  outlines: { get: () => undefined, set: () => undefined },
};

/** How a codec reads one block: the bytes of the block alone, known to be JSON. */
export type Outliner = (bytes: Uint8Array, reading: ReadContext) => Outline;

/**
 * Runs `read` over the top-level fields. `list` names the field that holds the messages. Throws `not-this-format` for what is not
 * one JSON object, for a field that stands twice (providers differ in which they take), and for whatever `read` refuses.
 */
export function readFields<T>(
  format: string,
  body: Uint8Array,
  list: string,
  reading: ReadContext,
  read: (fields: Fields) => T,
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

function scanFields(format: string, body: Uint8Array, list: string, reading: ReadContext): Fields {
  let seen: SeenList | undefined;
  const known = (start: number): readonly Span[] => {
    seen = reading.seen?.look(format, body, start);
    return (seen?.messages ?? []).map((message) => message.span);
  };
  const { members, span } = scanObject(body, skipSpace(body, 0), new Set([list]), known);
  if (skipSpace(body, span.end) !== body.length)
    throw new ScanError(`more bytes after the object, at ${span.end}`);
  const byKey = uniqueMembers(members);
  if (!byKey) throw new ScanError('a top-level key stands twice');
  const messages = byKey.get(list)?.elements;
  if (!messages) throw new ScanError(`'${list}' is missing or not an array`);
  return { format, body, members, messages, seen, get: (key) => byKey.get(key)?.value };
}

/** Parses, and thereby checks, every field that no block stands for. */
export function parseOtherFields(
  fields: Fields,
  blocks: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  const others = fields.members.filter((member) => !blocks.has(member.key));
  return Object.fromEntries(others.map((member) => [member.key, parseSpan(fields.body, member.value)]));
}

/** Thrown by `read` when a slice is over: see `ReadSlice`. */
export class ReadingPaused extends Error {}

/** The messages, in their order. */
export function readMessages(fields: Fields, reading: ReadContext, outliner: Outliner): readonly Message[] {
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
    const { digest, outline } = outlineOf(fields, span, of, reading, outliner);
    const { role, parts, canonical, markedForMs } = outline;
    messages.push({ span, digest, parts, index, role, canonical, markedForMs });
  }
  fields.seen?.keep(messages);
  return messages;
}

/** A field beside the messages (system, tools) as a block; undefined when the body does not have it, or has null. */
export function readPreamble(
  fields: Fields,
  key: string,
  reading: ReadContext,
  outliner: Outliner,
): Block | undefined {
  const span = fields.get(key);
  if (!span || (isNull(fields.body, span) && parseSpan(fields.body, span) === null)) return undefined;
  const { digest, outline } = outlineOf(fields, span, `${fields.format}/${key}`, reading, outliner);
  return { span, digest, parts: outline.parts, markedForMs: outline.markedForMs };
}

function outlineOf(fields: Fields, span: Span, of: string, reading: ReadContext, outliner: Outliner) {
  const bytes = fields.body.subarray(span.start, span.end);
  const digest = reading.digest(bytes);
  const known = reading.outlines.get(digest);
  if (known?.of === of) return { digest, outline: known };
  parseSpan(bytes, { start: 0, end: bytes.length });
  const outline: Outline = { ...outliner(bytes, reading), of };
  reading.outlines.set(digest, outline);
  return { digest, outline };
}

/** Members by key, or undefined when one stands twice. */
export function uniqueMembers(members: readonly Member[]): ReadonlyMap<string, Member> | undefined {
  const { byKey, repeats } = lastMembers(members);
  return repeats ? undefined : byKey;
}

/**
 * The members of an object by key. Of several with one key the last counts, as in `JSON.parse`, in the parsers of Python and Go, and so
 * at the providers. `repeats` says that there are several: what is read of such an object is carried as it came.
 */
export type LastMembers = { readonly byKey: ReadonlyMap<string, Member>; readonly repeats: boolean };

export function lastMembers(members: readonly Member[]): LastMembers {
  const byKey = new Map(members.map((member) => [member.key, member]));
  return { byKey, repeats: byKey.size < members.length };
}

/** The parts of an object or list in which a key stands twice: nothing of the step they belong to may be touched. */
export function carriedWithStep(parts: readonly Part[], whole: Span): readonly Part[] {
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

/** Where the string literal of a member stands, or undefined when it is another type or not there. */
export function textMember(bytes: Uint8Array, member: Member | undefined): Span | undefined {
  return member && startsWith(bytes, member.value, '"') ? member.value : undefined;
}

/** The string that stands at a member, or undefined when it is another type or not there. */
export function stringAt(bytes: Uint8Array, member: Member | undefined): string | undefined {
  if (!member) return undefined;
  const value = startsWith(bytes, member.value, '"') ? parseSpan(bytes, member.value) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** The names of the tools a block defines; built-in ones have none. */
export function toolNamesOf(tools: Block | undefined): readonly string[] {
  return (tools?.parts ?? []).flatMap((part) =>
    part.type === 'tool-definition' && part.name !== undefined ? [part.name] : [],
  );
}
