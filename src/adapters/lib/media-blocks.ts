/**
 * Writes what a framework has and the wire format counts in another way: bytes of images and documents, blocks of unknown types that no fold edits, and
 * the framework's own form of a reply. Bytes of an unknown block are base64 in its `source`, where the codec does not count them as text. Pure.
 */
import { type JsonRecord, isRecord, wordAt } from '../../conversation/json-scan.ts';
import { fromBase64, toBase64 } from '../../store/platform.ts';

/** Returns the source of an image or a document at an address, which may hold its bytes: `data:image/png;base64,…`. */
export function sourceAt(address: string): JsonRecord {
  const inline = /^data:([^;,]*);base64,(.*)$/s.exec(address);
  return inline ? { type: 'base64', media_type: inline[1], data: inline[2] } : { type: 'url', url: address };
}

/** Returns the address of a source. */
export function addressOf(source: JsonRecord): unknown {
  return source['type'] === 'url'
    ? source['url']
    : `data:${wordAt(source, 'media_type') ?? ''};base64,${wordAt(source, 'data') ?? ''}`;
}

/** Returns the source of bytes, which are base64 if they are a text. Undefined for anything else. */
export function sourceOfBytes(data: unknown, mediaType: unknown): JsonRecord | undefined {
  const text = data instanceof Uint8Array ? toBase64(data) : data;
  return typeof text === 'string' ? { type: 'base64', media_type: mediaType, data: text } : undefined;
}

/** Writes an image or a document, in any of the spellings of LangChain. */
export function langchainMedia(block: JsonRecord): JsonRecord | undefined {
  const { image_url: image, source, url, data, file } = block;
  const inFile = isRecord(file) ? wordAt(file, 'file_data') : undefined;
  const inName = inFile === undefined ? undefined : /^data:([^;,]*)/.exec(inFile)?.[1];
  const mimeType = wordAt(block, 'mimeType') ?? wordAt(block, 'mime_type') ?? inName ?? 'image/*';
  const type =
    block['type'] === 'image_url' || block['type'] === 'image'
      ? 'image'
      : block['type'] === 'document' || mimeType === 'application/pdf'
        ? 'document'
        : undefined;
  if (!type) return undefined;
  if (isRecord(source)) return { type, source };
  const address = inFile ?? wordAt(isRecord(image) ? image : { url: image ?? url }, 'url');
  if (address !== undefined) return { type, source: sourceAt(address) };
  const inBytes = sourceOfBytes(data, mimeType);
  return inBytes && { type, source: inBytes };
}

/** Returns a block of an unknown type that holds a part. */
export function unknownBlock(type: string, part: JsonRecord): JsonRecord {
  const found: string[] = [];
  const isMedia = /audio|video|image|file|media/.test(wordAt(part, 'type') ?? '');
  const plain = withBytes(part, (text, isText) => {
    if (isText && !(isMedia && isEncoded(text))) return text;
    found.push(text);
    return '';
  });
  return {
    type,
    part: plain,
    ...(found.length > 0 && { source: { type: 'base64', data: found.join(' ') } }),
  };
}

/** Returns a block of a reply with the framework's own form of it, which is not counted. The sealed copy of reasoning may be long, so it is there once. */
export function withOrigin(block: JsonRecord, origin: unknown): JsonRecord {
  const { signature } = block;
  return { ...block, origin: signature === undefined ? origin : replaced(origin, signature, sealedMark) };
}

/** Returns the framework's form that a block keeps; undefined if it keeps none. */
export function originOf({ origin, signature }: JsonRecord): unknown {
  return signature === undefined ? origin : replaced(origin, sealedMark, signature);
}

const sealedMark = 'leporello:sealed';

function replaced(value: unknown, from: unknown, to: unknown): unknown {
  if (value === from) return to;
  if (Array.isArray(value)) return value.map((item) => replaced(item, from, to));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replaced(inner, from, to)]));
}

/** Returns the sealed copy of reasoning as a member of its block, which is counted. Each provider has it under another name. */
export function sealedIn(options: unknown): { readonly signature?: string } {
  for (const [key, value] of isRecord(options) ? Object.entries(options) : []) {
    if (typeof value === 'string' && /signature|encrypted|redacted/i.test(key)) return { signature: value };
    const inner = sealedIn(value);
    if (inner.signature !== undefined) return inner;
  }
  return {};
}

/** Spells bytes and URLs within a part as texts, so that JSON can hold them. */
export function withoutBytes(part: JsonRecord): JsonRecord {
  return withBytes(part, (text) => text) as JsonRecord;
}

/** UTF-16 units of the shortest text that is taken for base64. */
const minEncoded = 1_000;

function isEncoded(text: string): boolean {
  return text.length >= minEncoded && /^(?:data:[^,\s]*,)?[\w+/=-]+$/.test(text);
}

/** Returns a copy of a value in which `spell` writes each text, and each array of bytes as base64. */
function withBytes(value: unknown, spell: (text: string, isText: boolean) => string): unknown {
  if (typeof value === 'string') return spell(value, true);
  if (value instanceof Uint8Array) return spell(toBase64(value), false);
  if (value instanceof URL) return value.href;
  if (Array.isArray(value)) return value.map((item) => withBytes(item, spell));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withBytes(inner, spell)]));
}

/** Marks bytes in JSON. */
const bytesKey = 'leporello:bytes';

/** Returns a value in which arrays of bytes are objects that JSON can hold. */
export function packBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return { [bytesKey]: toBase64(value) };
  if (Array.isArray(value)) return value.map(packBytes);
  // URLs and dates write themselves as JSON.
  if (!isRecord(value) || typeof value['toJSON'] === 'function') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, packBytes(inner)]));
}

/** Undoes `packBytes`. */
export function unpackBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpackBytes);
  if (!isRecord(value)) return value;
  const packed = value[bytesKey];
  if (typeof packed === 'string') return fromBase64(packed);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unpackBytes(inner)]));
}
