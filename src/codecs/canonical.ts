/**
 * Cuts a message into the pieces that its canonical digest covers. Members that clients move between turns are left out, and a
 * text spelled as a string gives the same pieces as one text block. Two contents have the same pieces only if they have the same
 * parts, so an edit recorded for one names the same place in the other. Pieces are views of the body: nothing is copied here.
 */
import type { Span } from '../conversation/conversation.ts';
import { type Member, parseSpan, scanArray, scanObject } from '../conversation/json-scan.ts';

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
  return scanArray(bytes, content.start).elements.flatMap((element) => blockPieces(bytes, element, moving));
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
  const { members } = scanObject(bytes, span.start);
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
