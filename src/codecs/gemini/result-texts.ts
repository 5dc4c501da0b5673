/**
 * Where the texts of a tool result stand. `functionResponse.response` is an object and stays one: its texts are string literals
 * inside it, in its members (`output`, `result`, `content`, `error`, …), in objects inside, in lists of strings and in content blocks
 * as MCP spells them. Other lists are data and stay as they are. Only the shape decides, never a length: a shorter text in its place
 * is still a text.
 */
import type { Media, Span } from '../../conversation/conversation.ts';
import { scanArray, scanObject } from '../../conversation/json-scan.ts';
import { startsWith, stringAt, textMember } from '../read-body.ts';
import { namedMembers } from './names.ts';

export type Found = { readonly texts: readonly Span[]; readonly media: readonly Media[] };

/** Deeper values are data: no tool nests its text so deep, and a hostile body may nest without end. */
const maxDepth = 8;

const none: Found = { texts: [], media: [] };

/** The texts of the object at `response`, and what of it is no text but costs tokens. */
export function resultTexts(bytes: Uint8Array, response: Span): Found {
  const { members } = scanObject(bytes, response.start);
  return joined(members.map(({ value }) => textsOfValue(bytes, value, 1)));
}

function textsOfValue(bytes: Uint8Array, value: Span, depth: number): Found {
  if (startsWith(bytes, value, '"')) return { texts: [value], media: [] };
  if (startsWith(bytes, value, '[')) return textsOfList(bytes, value);
  if (!startsWith(bytes, value, '{')) return none;
  if (depth > maxDepth) return asData(value);
  const { members } = scanObject(bytes, value.start);
  return joined(members.map((member) => textsOfValue(bytes, member.value, depth + 1)));
}

function textsOfList(bytes: Uint8Array, list: Span): Found {
  const { elements } = scanArray(bytes, list.start);
  if (elements.length === 0) return none;
  if (elements.every((item) => startsWith(bytes, item, '"'))) return { texts: elements, media: [] };
  const blocks = elements.map((item) => contentBlock(bytes, item));
  return blocks.every((block) => block !== undefined) ? joined(blocks) : asData(list);
}

/** A block of an MCP tool result: `{type: 'text', text}`, `{type: 'image', data, mimeType}`, and others. */
function contentBlock(bytes: Uint8Array, span: Span): Found | undefined {
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

function asData(span: Span): Found {
  return { texts: [], media: [{ kind: 'other', span, data: undefined }] };
}

function joined(found: readonly Found[]): Found {
  return { texts: found.flatMap(({ texts }) => texts), media: found.flatMap(({ media }) => media) };
}

/** What a MIME type says of media. */
export function mediaKind(mimeType: string): Media['kind'] {
  if (mimeType.startsWith('image/')) return 'image';
  if (mimeType.startsWith('audio/')) return 'audio';
  return mimeType.startsWith('text/') || mimeType === 'application/pdf' ? 'document' : 'other';
}
