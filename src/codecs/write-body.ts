/**
 * The shared part of every codec's writer: orders the edits, refuses those that name no place, and turns drops and insertions
 * of messages into splices. How a part is dropped or a message is spelled is the codec's own.
 */
import { type Notes, openNotes } from '../caches.ts';
import type {
  Conversation,
  MediaPlace,
  Message,
  Part,
  TextPlace,
  Span,
} from '../conversation/conversation.ts';
import { memoized, piecesOfText, textsOf } from '../conversation/messages.ts';
import { type Edit, lastMessageOf, mediaAt } from '../conversation/edit.ts';
import {
  type Insertion,
  type Splice,
  applySplices,
  concatBytes,
  listSplices,
  literalBytes,
  literalContent,
  scanObject,
  skipSpace,
} from '../conversation/json-scan.ts';
import { LeporelloError } from '../errors.ts';
import { inSteps, oneStep, runAtOnce } from '../conversation/steps.ts';

const encoder = new TextEncoder();

/** The edits of one message. */
export type MessageEdits = {
  readonly message: Message;
  /** Indices of dropped parts; never all of them. */
  readonly dropped: ReadonlySet<number>;
  /** Splices that replace texts and arguments. */
  readonly replaced: readonly Splice[];
  /** Stubs in place of images, documents and sounds. */
  readonly media: readonly MediaStub[];
};

/** A stub in place of an image, document or sound. `span` is its place in the body. */
export type MediaStub = { readonly edit: MediaEdit; readonly span: Span };
type MediaEdit = Edit & { readonly kind: 'replace-media' };

/** Everything about writing messages that only a codec knows. */
export type MessageWriter = {
  insertedMessage(role: 'user', text: string): Uint8Array;
  /** Returns the splices that take parts out of a message which keeps others. */
  dropParts(edits: MessageEdits, body: Uint8Array): readonly Splice[];
  /** Returns the splices that put stubs in the place of media. `dropped`: the messages that are removed as a whole. */
  replaceMedia(
    edits: MessageEdits,
    conversation: Conversation,
    dropped: ReadonlySet<number>,
  ): readonly Splice[];
};

/** Returns splices that put content parts with the stubs in the place of the media. */
export function mediaSplices(
  media: readonly MediaStub[],
  spell: (stub: string, span: Span) => Uint8Array,
): readonly Splice[] {
  return media.map(({ edit, span }) => ({ span, bytes: once(literals, edit, () => spell(edit.stub, span)) }));
}

/**
 * Returns all splices of an edit set, and of messages that are added as they are. Throws `bad-edit` for an edit that names no
 * place, and for two edits that replace the same text.
 */
export function messageSplices(
  conversation: Conversation,
  edits: readonly Edit[],
  writer: MessageWriter,
  added: readonly Insertion[] = [],
): readonly Splice[] {
  if (edits.length === 0 && added.length === 0) return [];
  const dropped = droppedMessages(conversation, edits);
  spellReplaced(conversation, edits);
  const perMessage = groupByMessage(conversation, edits, dropped);
  const insertions: Insertion[] = [];
  for (const edit of edits) {
    if (edit.kind !== 'insert-message') continue;
    const before = messageAt(conversation, edit.before).index;
    insertions.push({ before, bytes: insertedOnce(writer, edit) });
  }
  insertions.push(...added);
  const splices: Splice[] = [];
  if (dropped.size > 0 || insertions.length > 0) {
    const found = oneStep(() => {
      const spans = conversation.messages.map(({ span }) => span);
      // An edit names an existing message, so the list has elements, and its end does not matter.
      return listSplices(spans, spans.at(-1)?.end ?? 0, (index) => dropped.has(index), insertions);
    });
    for (const splice of found) splices.push(splice);
  }
  const ofMessages = inSteps(inParts(perMessage), (part) =>
    runAtOnce(() =>
      part.flatMap((group) => [
        ...group.replaced,
        ...(group.dropped.size > 0 ? writer.dropParts(group, conversation.body) : []),
        ...(group.media.length > 0 ? writer.replaceMedia(group, conversation, dropped) : []),
      ]),
    ),
  );
  for (const part of ofMessages) for (const splice of part) splices.push(splice);
  return splices;
}

/** The bytes of inserted messages, by edit. Codecs spell them differently. */
const inserted = openNotes<Edit, { readonly writer: MessageWriter; readonly bytes: Uint8Array }>('text');

function insertedOnce(writer: MessageWriter, edit: Edit & { readonly kind: 'insert-message' }): Uint8Array {
  const known = inserted.get(edit);
  if (known?.writer === writer) return known.bytes;
  const bytes = writer.insertedMessage(edit.role, edit.text);
  inserted.set(edit, { writer, bytes });
  return bytes;
}

/** Returns the messages that are removed as a whole: by an edit, or because no part is left. */
export function droppedMessages(conversation: Conversation, edits: readonly Edit[]): ReadonlySet<number> {
  const whole = oneStep(() => new Set<number>());
  const parts = oneStep(() => new Map<number, Set<number>>());
  const add = (edit: Edit): void => {
    if (edit.kind === 'drop-message') whole.add(messageAt(conversation, edit.message).index);
    if (edit.kind !== 'drop-part') return;
    partAt(conversation, edit.message, edit.part);
    parts.set(edit.message, (parts.get(edit.message) ?? new Set<number>()).add(edit.part));
  };
  inSteps(inParts(edits), (part) => part.forEach(add));
  oneStep(() => {
    for (const [index, gone] of parts)
      if (gone.size === messageAt(conversation, index).parts.length) whole.add(index);
  });
  return whole;
}

function groupByMessage(
  conversation: Conversation,
  edits: readonly Edit[],
  droppedWhole: ReadonlySet<number>,
): readonly MessageEdits[] {
  // The steps add to this map, so it must outlast a pause.
  const groups = oneStep(() => new Map<number, EditGroup>());
  const groupOf = (index: number): EditGroup => {
    const known = groups.get(index);
    if (known) return known;
    const group: EditGroup = { dropped: undefined, replaced: [], media: [] };
    groups.set(index, group);
    return group;
  };
  const add = (edit: Edit): void => {
    if (edit.kind === 'drop-part' && !droppedWhole.has(edit.message)) {
      const group = groupOf(edit.message);
      group.dropped = (group.dropped ?? new Set()).add(edit.part);
    }
    if (edit.kind === 'replace-media')
      groupOf(edit.message).media.push({ edit, span: mediaSpan(conversation, edit) });
    if (edit.kind !== 'replace-text' && edit.kind !== 'replace-input') return;
    const replaced = replacedBy(conversation, edit);
    const group = groupOf(lastMessageOf(edit));
    if (isReplaced(group, replaced.splice.span.start)) throw replacedTwice(edit);
    group.replaced.push(replaced);
  };
  inSteps(inParts(edits), (part) => runAtOnce(() => part.forEach(add)));
  return oneStep(() => editsOfGroups(conversation, groups, droppedWhole));
}

function editsOfGroups(
  conversation: Conversation,
  groups: ReadonlyMap<number, EditGroup>,
  droppedWhole: ReadonlySet<number>,
): readonly MessageEdits[] {
  const result: MessageEdits[] = [];
  for (const [index, { dropped = noParts, replaced, media: all }] of groups) {
    if (droppedWhole.has(index)) continue;
    const splices: Splice[] = [];
    for (const { part, splice } of replaced) if (!dropped.has(part)) splices.push(splice);
    const media = all.length === 0 ? all : all.filter(({ edit }) => !dropped.has(edit.part));
    const starts = new Set<number>();
    for (const { edit, span } of media)
      if (starts.size === starts.add(span.start).size) throw replacedTwice(edit);
    result.push({ message: messageAt(conversation, index), dropped, replaced: splices, media });
  }
  return result;
}

/** The edits of one message. There is one for each message with an edit, in every request, so it is small. */
type EditGroup = {
  dropped: Set<number> | undefined;
  readonly replaced: Replaced[];
  readonly media: MediaStub[];
  /** The places of `replaced`, when they are many. */
  starts?: Set<number>;
};

/** Tells whether the group already replaces what begins at `start`, and notes the place. */
function isReplaced(group: EditGroup, start: number): boolean {
  if (group.replaced.length < manyReplaced)
    return group.replaced.some(({ splice }) => splice.span.start === start);
  group.starts ??= new Set(group.replaced.map(({ splice }) => splice.span.start));
  if (group.starts.has(start)) return true;
  group.starts.add(start);
  return false;
}

const manyReplaced = 8;

const noParts: ReadonlySet<number> = new Set();

/** The replacement of a text or of the arguments of a part. */
type Replaced = { readonly message: Message; readonly part: number; readonly splice: Splice };

type Replacement = Edit & { readonly kind: 'replace-text' | 'replace-input' };

/** Replacements by edit. A message that was read before is the same object, in the same place. */
const replacements = openNotes<Replacement, Replaced>('text');

function replacedBy(conversation: Conversation, edit: Replacement): Replaced {
  const known = replacements.get(edit);
  if (known && known.message === conversation.messages[lastMessageOf(edit)]) return known;
  const made =
    edit.kind === 'replace-text' ? replacedText(conversation, edit) : replacedInput(conversation, edit);
  replacements.set(edit, made);
  return made;
}

function replacedText(conversation: Conversation, edit: Edit & { kind: 'replace-text' }): Replaced {
  const { at } = edit;
  const literal = literalAt(conversation, at);
  const message = messageAt(conversation, at.message);
  return {
    message,
    part: at.part,
    splice: {
      span: shift(literal, message.span.start),
      bytes: once(literals, edit, () => literalBytes(edit.stub)),
    },
  };
}

/** Bytes by edit: the same edits are written again with every request. */
const literals = openNotes<Edit, Uint8Array>('text');
const texts = openNotes<Edit, Uint8Array>('text');

/** Makes the splices of all replacements ahead, in steps, very long texts first. They are remembered by edit. */
function spellReplaced(conversation: Conversation, edits: readonly Edit[]): void {
  const long = oneStep(() =>
    edits.filter(
      (edit) => edit.kind === 'replace-text' && edit.stub.length > minLongText && !literals.has(edit),
    ),
  );
  inSteps(long, (edit) => {
    if (edit.kind === 'replace-text') literals.set(edit, longLiteral(edit.stub));
  });
  inSteps(inParts(edits), (part) => {
    for (const edit of part)
      if (edit.kind === 'replace-text' || edit.kind === 'replace-input') replacedBy(conversation, edit);
  });
}

/** Divides edits or messages into the parts that are handled in one step each. */
function inParts<T>(all: readonly T[]): readonly (readonly T[])[] {
  return oneStep(() => {
    if (all.length <= perStep) return all.length === 0 ? [] : [all];
    const starts = Array.from({ length: Math.ceil(all.length / perStep) }, (_, at) => at * perStep);
    return starts.map((start) => all.slice(start, start + perStep));
  });
}

function longLiteral(text: string): Uint8Array {
  const pieces = inSteps(piecesOfText(text, minLongText), literalContent);
  return concatBytes([quote, ...pieces, quote]);
}

const perStep = 1_000;

/** UTF-16 units. */
const minLongText = 262_144;

const quote = encoder.encode('"');

function once(known: Notes<Edit, Uint8Array>, edit: Edit, spell: () => Uint8Array): Uint8Array {
  const bytes = known.get(edit) ?? spell();
  known.set(edit, bytes);
  return bytes;
}

/** Arguments that were a string literal stay one, with the JSON text as content. */
function replacedInput(conversation: Conversation, edit: Edit & { kind: 'replace-input' }): Replaced {
  const message = messageAt(conversation, edit.message);
  const span = shift(inputAt(conversation, edit), message.span.start);
  const isLiteral = conversation.body[span.start] === quote[0];
  return {
    message,
    part: edit.part,
    splice: {
      span,
      bytes: isLiteral
        ? once(literals, edit, () => literalBytes(edit.input))
        : once(texts, edit, () => encoder.encode(edit.input)),
    },
  };
}

/** Dropping something that is also replaced or dropped again has one outcome; two texts for one place have none. */
function replacedTwice(edit: Replacement | MediaEdit): LeporelloError {
  return new LeporelloError('bad-edit', `Two edits replace ${wordsOfPlace(edit)}.`);
}

/** Describes the place of an edit. */
export function wordsOfPlace(edit: Edit): string {
  if (edit.kind === 'replace-text')
    return `text ${edit.at.text} of part ${edit.at.part} of message ${edit.at.message}`;
  if (!('part' in edit)) return `message ${lastMessageOf(edit)}`;
  const part = `part ${edit.part} of message ${edit.message}`;
  if (edit.kind === 'replace-media') return `media ${edit.media} of ${part}`;
  return edit.kind === 'replace-input' ? `the arguments of ${part}` : part;
}

/** Turns a span relative to a block into a span of the body. */
export function shift(span: Span, by: number): Span {
  return { start: span.start + by, end: span.end + by };
}

function messageAt(conversation: Conversation, index: number): Message {
  const message = conversation.messages[index];
  if (message) return message;
  throw missing(`message ${index} of ${conversation.messages.length}`);
}

function missing(place: string): LeporelloError {
  return new LeporelloError('bad-edit', `An edit names ${place}.`);
}

function partAt(conversation: Conversation, message: number, part: number): Part {
  const found = messageAt(conversation, message).parts[part];
  if (found) return found;
  throw missing(`part ${part} of message ${message}, which has no such part`);
}

function literalAt(conversation: Conversation, at: TextPlace): Span {
  const found = textsOf(partAt(conversation, at.message, at.part))[at.text];
  if (found) return found;
  throw missing(`text ${at.text} of part ${at.part} of message ${at.message}, which has none`);
}

function mediaSpan(conversation: Conversation, at: MediaPlace): Span {
  const found = mediaAt(conversation, at);
  if (found) return shift(found.span, conversation.messages[at.message]!.span.start);
  throw missing(`media ${at.media} of part ${at.part} of message ${at.message}, which has none`);
}

/** A call without arguments has no place for others. */
function inputAt(conversation: Conversation, at: { readonly message: number; readonly part: number }): Span {
  const part = partAt(conversation, at.message, at.part);
  if (part.type === 'tool-call' && part.input.end > part.input.start) return part.input;
  throw missing(`the arguments of part ${at.part} of message ${at.message}, which has none`);
}

/** Adds messages at the end of the array field `key`, without reading its elements. */
export function appendMessages(body: Uint8Array, key: string, messages: readonly Uint8Array[]): Uint8Array {
  const field = scanObject(body, skipSpace(body, 0)).members.find((member) => member.key === key);
  if (!field) throw new LeporelloError('not-this-format', `The body has no '${key}' to append to.`);
  const close = field.value.end - 1;
  const last = lastElement(body, field.value);
  const splices = listSplices(
    last ? [last] : [],
    close,
    () => false,
    messages.map((bytes) => ({ before: last ? 1 : 0, bytes })),
  );
  return applySplices(body, splices);
}

/** Finds the end of the last element (its start does not matter): white space before the bracket stays after the added messages. */
function lastElement(body: Uint8Array, array: Span): Span | undefined {
  let end = array.end - 1;
  while (' \n\r\t'.includes(String.fromCharCode(body[end - 1]!))) end--;
  return end === array.start + 1 ? undefined : { start: array.start + 1, end };
}

/** Returns a splice that adds a tool definition after the client's own. The conversation must offer at least one tool. */
export function appendTool({ preamble }: Conversation, definition: Uint8Array): Splice {
  for (const { parts, span } of preamble) {
    const last = parts.findLast((part) => part.type === 'tool-definition');
    if (!last) continue;
    const end = span.start + last.span.end;
    return { span: { start: end, end }, bytes: withComma(definition) };
  }
  throw new LeporelloError('bad-edit', 'The recall tool cannot be added: the request offers no tools.');
}

const withComma = memoized((definition: Uint8Array) => concatBytes([Uint8Array.of(0x2c), definition]));
