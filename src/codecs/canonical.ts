/**
 * What a message says, as bytes for its canonical digest: without the members clients move about between turns, and with a text
 * spelled as a string the same as one text block. Two contents have the same pieces only where they have the same parts, so that
 * an edit recorded for one names the same place in the other.
 */
import type { Span } from '../conversation/conversation.ts';
import { type Member, parseSpan, scanArray, scanObject } from '../conversation/json-scan.ts';
import { significantBytes } from '../conversation/prefix.ts';
import { concatBytes } from '../conversation/splice.ts';

const encoder = new TextEncoder();
const comma = encoder.encode(',');
const contentStart = encoder.encode('"content":[');
const contentEnd = encoder.encode('],');
const textStart = encoder.encode('"type":"text","text":');

/** The pieces of a content that is a string or an array of blocks; any other value is one piece as it stands. */
export function contentPieces(
  bytes: Uint8Array,
  content: Span,
  moving: ReadonlySet<string>,
): readonly Uint8Array[] {
  if (isText(bytes, content)) return [textPiece(bytes, content)];
  if (bytes[content.start] !== '['.charCodeAt(0)) return [bytes.subarray(content.start, content.end)];
  return scanArray(bytes, content.start).elements.map((element) => blockPiece(bytes, element, moving));
}

/** The members of an object as one piece, its `content` read as content. */
export function memberPiece(
  bytes: Uint8Array,
  members: readonly Member[],
  moving: ReadonlySet<string>,
): Uint8Array {
  const pieces = members.map((member) =>
    member.key === 'content'
      ? concatBytes([contentStart, ...contentPieces(bytes, member.value, moving), contentEnd])
      : significantBytes(bytes, [member], moving),
  );
  return concatBytes(pieces);
}

function blockPiece(bytes: Uint8Array, span: Span, moving: ReadonlySet<string>): Uint8Array {
  if (bytes[span.start] !== '{'.charCodeAt(0)) return bytes.subarray(span.start, span.end);
  const { members } = scanObject(bytes, span.start);
  const still = members.filter((member) => !moving.has(member.key));
  const type = still.find((member) => member.key === 'type');
  const kind = type && parseSpan(bytes, type.value);
  if (kind === 'tool_result') return memberPiece(bytes, still, moving);
  const text = still.find((member) => member.key === 'text');
  const plain = kind === 'text' && text && still.length === 2 && isText(bytes, text.value);
  return plain ? textPiece(bytes, text.value) : significantBytes(bytes, still, moving);
}

function textPiece(bytes: Uint8Array, literal: Span): Uint8Array {
  return concatBytes([textStart, bytes.subarray(literal.start, literal.end), comma]);
}

/** The empty string stands apart: some formats read it as no content at all. */
function isText(bytes: Uint8Array, span: Span): boolean {
  return bytes[span.start] === '"'.charCodeAt(0) && span.end - span.start > 2;
}
