/**
 * What an item says, as bytes for its canonical digest: without the cache marks clients move about between turns, and with a text
 * spelled as a string the same as one plain text part.
 */
import type { Role, Span } from '../../conversation/conversation.ts';
import { type Member, parseSpan, scanArray, scanObject } from '../../conversation/json-scan.ts';
import { significantBytes } from '../../conversation/prefix.ts';
import { concatBytes } from '../../conversation/splice.ts';
import { startsWith } from '../read-body.ts';

/** Marks where the provider should keep a prefix; the newest 80 count, so clients move them along. */
const moving: ReadonlySet<string> = new Set(['prompt_cache_breakpoint']);

const encoder = new TextEncoder();

export function itemPieces(bytes: Uint8Array, members: readonly Member[], role: Role): readonly Uint8Array[] {
  const plain = role === 'assistant' ? 'output_text' : 'input_text';
  return members
    .filter((member) => !moving.has(member.key))
    .map((member) =>
      member.key === 'content' || member.key === 'output'
        ? concatBytes([encoder.encode(`"${member.key}":[`), ...contentPieces(bytes, member.value, plain)])
        : significantBytes(bytes, [member], moving),
    );
}

function contentPieces(bytes: Uint8Array, content: Span, plain: string): readonly Uint8Array[] {
  if (isText(bytes, content)) return [textPiece(bytes, content)];
  if (!startsWith(bytes, content, '[')) return [bytes.subarray(content.start, content.end)];
  return scanArray(bytes, content.start).elements.map((element) => partPiece(bytes, element, plain));
}

function partPiece(bytes: Uint8Array, span: Span, plain: string): Uint8Array {
  if (!startsWith(bytes, span, '{')) return bytes.subarray(span.start, span.end);
  const still = scanObject(bytes, span.start).members.filter((member) => !moving.has(member.key));
  const type = still.find((member) => member.key === 'type');
  const text = still.find((member) => member.key === 'text');
  const isPlain =
    type && text && still.length === 2 && parseSpan(bytes, type.value) === plain && isText(bytes, text.value);
  return isPlain ? textPiece(bytes, text.value) : significantBytes(bytes, still, moving);
}

function textPiece(bytes: Uint8Array, literal: Span): Uint8Array {
  return concatBytes([
    encoder.encode('text:'),
    bytes.subarray(literal.start, literal.end),
    encoder.encode(','),
  ]);
}

/** The empty string stands apart: a list with one empty text is a part more than it. */
function isText(bytes: Uint8Array, span: Span): boolean {
  return startsWith(bytes, span, '"') && span.end - span.start > 2;
}
