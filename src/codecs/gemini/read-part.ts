/**
 * Reads one part of a content: text, thought, media, a call, a result, or an opaque part. Texts of a tool result are string
 * literals inside `functionResponse.response`: in its members (`output`, `result`, `content`, `error`, …), in nested objects, in
 * lists of strings and in content blocks as MCP spells them. Other lists are data. Only the shape decides, never a length: a
 * shorter text in its place is still a text.
 */
import type { Media, Part, Span } from '../../conversation/conversation.ts';
import { type Member, ScanError, scanArray, isRecord } from '../../conversation/json-scan.ts';
import { objectAt, startsWith, stringAt, textMember, isNull } from '../read-body.ts';

/** Members next to the data of a part that hold no content of their own. */
const besideData: ReadonlySet<string> = new Set([
  'thought',
  'thoughtSignature',
  'partMetadata',
  'videoMetadata',
  'mediaResolution',
]);

/** Ids are optional in this format. A call or result without an id gets one made from its name, which is never written into a body. */
function idOrName(id: string | undefined, name: string): string {
  return id === undefined || id === '' ? `${unnamed}${name}` : id;
}

/** Returns the name in an id that we made; undefined for other ids. */
export function nameInId(id: string): string | undefined {
  return id.startsWith(unnamed) ? id.slice(unnamed.length) : undefined;
}

const unnamed = '#';

export function parsePart(bytes: Uint8Array, span: Span): Part {
  if (!startsWith(bytes, span, '{')) throw new ScanError('a part is not an object');
  const { named, repeats } = byName(bytes, objectAt(bytes, span.start));
  const data = [...named.keys()].filter((name) => !besideData.has(name));
  const part = parseData(bytes, span, named, data.find((name) => paired.has(name)) ?? data[0]);
  // "oneof field 'data' is already set": the provider decides which of several counts.
  return repeats || data.length > 1 ? { ...part, stays: 'step' } : part;
}

/** Data that another part answers or asks for. */
const paired: ReadonlySet<string> = new Set(['functionCall', 'functionResponse']);

function parseData(bytes: Uint8Array, span: Span, named: NamedMembers, data: string | undefined): Part {
  switch (data) {
    case undefined:
      return holdsSignature(bytes, named) || isTrue(bytes, named.get('thought'))
        ? { type: 'reasoning', span, texts: [], ...signatureIn(bytes, named) }
        : { type: 'opaque', span, kind: 'unknown' };
    case 'functionCall':
      return parseCall(bytes, span, named.get('functionCall')!);
    case 'functionResponse':
      return parseResult(bytes, span, named.get('functionResponse')!);
    case 'inlineData':
    case 'fileData':
      return { type: 'media', span, media: parseMedia(bytes, span, named) };
    case 'text': {
      const text = textMember(bytes, named.get('text'));
      if (!text) return { type: 'opaque', span, kind: 'text' };
      const isThought = isTrue(bytes, named.get('thought'));
      return isThought
        ? { type: 'reasoning', span, texts: [text], ...signatureIn(bytes, named) }
        : { type: 'text', span, texts: [text] };
    }
    // Code that the provider ran, its own tools, and unknown parts.
    default:
      return { type: 'opaque', span, kind: data };
  }
}

/** True when the part at `span` has a signature. */
export function isSigned(bytes: Uint8Array, span: Span): boolean {
  const named = namedMembers(bytes, span);
  return named !== undefined && holdsSignature(bytes, named);
}

function holdsSignature(bytes: Uint8Array, named: NamedMembers): boolean {
  return signatureIn(bytes, named).signed;
}

function signatureIn(bytes: Uint8Array, named: NamedMembers) {
  const sealed = textMember(bytes, named.get('thoughtSignature'));
  return { signed: sealed !== undefined && sealed.end - sealed.start > 2, sealed };
}

function isTrue(bytes: Uint8Array, member: Member | undefined): boolean {
  return member !== undefined && bytes[member.value.start] === 't'.charCodeAt(0);
}

function parseCall(bytes: Uint8Array, span: Span, { value }: Member): Part {
  const named = namedMembers(bytes, value);
  const name = named && stringAt(bytes, named.get('name'));
  if (!named || name === undefined) throw new ScanError('a function call has no name');
  const args = named.get('args')?.value;
  if (args && !startsWith(bytes, args, '{')) throw new ScanError('the args of a function call are no object');
  // A call without arguments has no bytes for them.
  const input = args ?? { start: value.end - 1, end: value.end - 1 };
  const id = idOrName(stringAt(bytes, named.get('id')), name);
  const stays = repeatsName(bytes, value) ? ({ stays: 'step' } as const) : {};
  return { type: 'tool-call', span, id, name, input, ...stays };
}

function parseResult(bytes: Uint8Array, span: Span, { value }: Member): Part {
  const named = namedMembers(bytes, value);
  const name = named && stringAt(bytes, named.get('name'));
  const id = named && stringAt(bytes, named.get('id'));
  if (!named || (name === undefined && id === undefined))
    throw new ScanError('a function response has neither id nor name');
  const callId = idOrName(id, name ?? '');
  const response = named.get('response')?.value;
  // A response that is no object answers its call all the same. The provider refuses it, so it is never edited.
  const isBroken = response !== undefined && !startsWith(bytes, response, '{');
  const { texts, media } =
    response && !isBroken ? resultTexts(bytes, response, name) : { texts: [], media: [] };
  const repeats = repeatsName(bytes, value) || repeatsName(bytes, response);
  const stays = isBroken || repeats ? ({ stays: 'step' } as const) : {};
  return {
    ...stays,
    type: 'tool-result',
    span,
    callId,
    texts,
    media: [
      ...(isBroken ? [{ kind: 'other', span: response, data: undefined } as const] : media),
      ...partsOfResult(bytes, named.get('parts')?.value),
    ],
    isError: saysError(bytes, response) ? true : undefined,
  };
}

/** "Use "output" key to specify function output and "error" key to specify error details (if any)"; MCP says `isError`. */
function saysError(bytes: Uint8Array, response: Span | undefined): boolean {
  const named = namedMembers(bytes, response);
  const error = named?.get('error')?.value;
  const isEmpty = error && error.end - error.start === 2;
  return (error !== undefined && !isEmpty) || isTrue(bytes, named?.get('isError'));
}

/** Images and files of a result. */
function partsOfResult(bytes: Uint8Array, parts: Span | undefined): readonly Media[] {
  if (!parts || !startsWith(bytes, parts, '[')) return [];
  return scanArray(bytes, parts.start).elements.map((span) =>
    parseMedia(bytes, span, namedMembers(bytes, span) ?? new Map()),
  );
}

function parseMedia(bytes: Uint8Array, span: Span, named: NamedMembers): Media {
  const holder = namedMembers(bytes, named.get('inlineData')?.value ?? named.get('fileData')?.value);
  const data = textMember(bytes, holder?.get('data') ?? holder?.get('fileUri'));
  return { kind: mediaKind(stringAt(bytes, holder?.get('mimeType')) ?? ''), span, data };
}

type ResultContent = { readonly texts: readonly Span[]; readonly media: readonly Media[] };

/** Deeper values are data: no tool nests its text that deep, and a hostile body may nest endlessly. */
const maxDepth = 8;

const none: ResultContent = { texts: [], media: [] };

/** Returns the texts of the object at `response`, and its media. Some programs repeat the name of the function there, which is no result. */
function resultTexts(bytes: Uint8Array, response: Span, name: string | undefined): ResultContent {
  const members = objectAt(bytes, response.start).filter(
    (member) => member.key !== 'name' || name === undefined || stringAt(bytes, member) !== name,
  );
  return joined(members.map(({ value }) => textsOfValue(bytes, value, 1)));
}

function textsOfValue(bytes: Uint8Array, value: Span, depth: number): ResultContent {
  if (startsWith(bytes, value, '"')) return { texts: [value], media: [] };
  if (startsWith(bytes, value, '[')) return textsOfList(bytes, value);
  if (!startsWith(bytes, value, '{')) return none;
  if (depth > maxDepth) return asData(value);
  const members = objectAt(bytes, value.start);
  return joined(members.map((member) => textsOfValue(bytes, member.value, depth + 1)));
}

function textsOfList(bytes: Uint8Array, list: Span): ResultContent {
  const { elements } = scanArray(bytes, list.start);
  if (elements.length === 0) return none;
  if (elements.every((item) => startsWith(bytes, item, '"'))) return { texts: elements, media: [] };
  const blocks = elements.map((item) => contentBlock(bytes, item));
  return blocks.every((block) => block !== undefined) ? joined(blocks) : asData(list);
}

/** Reads a block of an MCP tool result: `{type: 'text', text}`, `{type: 'image', data, mimeType}`, and others. */
function contentBlock(bytes: Uint8Array, span: Span): ResultContent | undefined {
  const named = namedMembers(bytes, span);
  const type = named && stringAt(bytes, named.get('type'));
  if (!named || type === undefined) return undefined;
  const text = textMember(bytes, named.get('text'));
  if (type === 'text' && text) return { texts: [text], media: [] };
  if (type !== 'image' && type !== 'audio') return asData(span);
  const data = textMember(bytes, named.get('data'));
  const kind = mediaKind(stringAt(bytes, named.get('mimeType')) ?? `${type}/`);
  return { texts: [], media: [{ kind, span, data }] };
}

function asData(span: Span): ResultContent {
  return { texts: [], media: [{ kind: 'other', span, data: undefined }] };
}

function joined(found: readonly ResultContent[]): ResultContent {
  return { texts: found.flatMap(({ texts }) => texts), media: found.flatMap(({ media }) => media) };
}

/** Returns the kind of media that a MIME type names. */
function mediaKind(mimeType: string): Media['kind'] {
  if (mimeType.startsWith('image/')) return 'image';
  if (mimeType.startsWith('audio/')) return 'audio';
  return mimeType.startsWith('text/') || mimeType === 'application/pdf' ? 'document' : 'other';
}

// The two spellings of every name in this format: proto JSON takes `functionCall` and `function_call` alike. Members
// are looked up by the camelCase name; the bytes keep their spelling.

type NamedMembers = ReadonlyMap<string, Member>;

/** Spells `function_call` as `functionCall`. */
function camelCase(key: string): string {
  return key.includes('_') ? key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : key;
}

/** Returns both spellings of a camelCase name, which is one of the few that the format has. */
export function spellings(name: string): readonly [string, string] {
  const known = bothSpellings.get(name);
  if (known) return known;
  const both = [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] as const;
  bothSpellings.set(name, both);
  return both;
}

const bothSpellings = new Map<string, readonly [string, string]>();

/**
 * Returns the members by camelCase name, without those that are null (null means the same as absent). The last of several
 * with one name counts, as in `JSON.parse`; `repeats` says that there are several, in whatever spellings: the content of such an
 * object is never edited.
 */
export function byName(
  bytes: Uint8Array,
  members: readonly Member[],
): { readonly named: NamedMembers; readonly repeats: boolean } {
  const named = new Map(members.map((member) => [camelCase(member.key), member]));
  const repeats = named.size < members.length;
  for (const [name, member] of named) if (isNull(bytes, member.value)) named.delete(name);
  return { named, repeats };
}

/** Returns the members of the object at a place; undefined when there is no object. */
export function namedMembers(bytes: Uint8Array, span: Span | undefined): NamedMembers | undefined {
  return span && startsWith(bytes, span, '{') ? byName(bytes, objectAt(bytes, span.start)).named : undefined;
}

/** True for an object in which a name occurs twice. */
function repeatsName(bytes: Uint8Array, span: Span | undefined): boolean {
  return (
    span !== undefined && startsWith(bytes, span, '{') && byName(bytes, objectAt(bytes, span.start)).repeats
  );
}

/** Returns the value of a member of a parsed object, in either spelling. */
export function valueOf(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined;
  const [camel, snake] = spellings(name);
  return value[camel] ?? value[snake];
}

export function stringOf(value: unknown, name: string): string | undefined {
  const found = valueOf(value, name);
  return typeof found === 'string' ? found : undefined;
}

export function numberOf(value: unknown, name: string): number | undefined {
  const found = valueOf(value, name);
  return typeof found === 'number' ? found : undefined;
}
