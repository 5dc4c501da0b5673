/** Reads the content of a message or an output: texts, media, and opaque parts. */
import type { Media, Part, Span, Stays } from '../../conversation/conversation.ts';
import { type Member, ScanError, scanArray, scanObject } from '../../conversation/json-scan.ts';
import { isNull, lastMembers, startsWith, stringAt, textMember } from '../read-body.ts';

/** Reads a text or a list of parts. An empty text is still content: a message could hold nothing else. */
export function parseContent(bytes: Uint8Array, content: Span): readonly Part[] {
  if (startsWith(bytes, content, '"')) return [{ type: 'text', span: content, texts: [content] }];
  if (!startsWith(bytes, content, '[')) throw new ScanError('content is neither a string nor an array');
  return scanArray(bytes, content.start).elements.map((span): Part => {
    const { kind, text, media, stays } = parseElement(bytes, span);
    const kept = stays && { stays };
    if (text) return { type: 'text', span, texts: [text], ...kept };
    return media ? { type: 'media', span, media, ...kept } : { type: 'opaque', span, kind, ...kept };
  });
}

/** Reads an output: a text, a list of parts or of command results, or one screenshot. */
export function parseOutput(
  bytes: Uint8Array,
  output: Span,
): {
  readonly texts: readonly Span[];
  readonly media: readonly Media[];
  readonly stays: Stays | undefined;
} {
  if (startsWith(bytes, output, '"')) return { texts: [output], media: [], stays: undefined };
  const isList = startsWith(bytes, output, '[');
  if (!isList && !startsWith(bytes, output, '{')) return { texts: [], media: [], stays: undefined };
  const elements = isList ? scanArray(bytes, output.start).elements : [output];
  const items = elements.map((span) => ({ span, ...parseElement(bytes, span) }));
  return {
    texts: items.flatMap(({ text, printed }) => text ?? printed),
    media: items.flatMap(({ span, text, media, printed }) =>
      text || printed.length > 0 ? [] : [media ?? { kind: 'other', span, data: undefined }],
    ),
    stays: items.find(({ stays }) => stays)?.stays,
  };
}

type Element = {
  readonly kind: string;
  readonly text: Span | undefined;
  readonly media: Media | undefined;
  /** The output of a command. */
  readonly printed: readonly Span[];
  readonly stays: Stays | undefined;
};

function parseElement(bytes: Uint8Array, span: Span): Element {
  if (!startsWith(bytes, span, '{')) throw new ScanError('a content part is not an object');
  const { byKey, repeats } = lastMembers(scanObject(bytes, span.start).members);
  const kind = stringAt(bytes, byKey.get('type')) ?? 'unknown';
  const holder = Object.hasOwn(mediaHolders, kind) ? mediaHolders[kind] : undefined;
  const data = holder?.data
    .map((key) => textMember(bytes, byKey.get(key)))
    .find((value) => value !== undefined);
  return {
    kind,
    text: texts.has(kind) && !isAnnotated(bytes, byKey) ? textMember(bytes, byKey.get('text')) : undefined,
    media: holder && { kind: holder.kind, span, data },
    printed: byKey.has('type') ? [] : printedBy(bytes, byKey),
    stays: repeats ? 'step' : undefined,
  };
}

const texts: ReadonlySet<string> = new Set(['input_text', 'output_text', 'text']);

/** True for a text with annotations, which name positions of exactly this text: it is never edited. */
function isAnnotated(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>): boolean {
  const list = byKey.get('annotations')?.value;
  if (!list || isNull(bytes, list)) return false;
  return !startsWith(bytes, list, '[') || scanArray(bytes, list.start).elements.length > 0;
}

function printedBy(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>): readonly Span[] {
  return ['stdout', 'stderr'].flatMap((key) => textMember(bytes, byKey.get(key)) ?? []);
}

const mediaHolders: Readonly<Record<string, { data: readonly string[]; kind: Media['kind'] } | undefined>> = {
  input_image: { data: ['image_url'], kind: 'image' },
  computer_screenshot: { data: ['image_url'], kind: 'image' },
  input_file: { data: ['file_data', 'file_url'], kind: 'document' },
  input_audio: { data: ['data'], kind: 'audio' },
};
