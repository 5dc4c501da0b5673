/**
 * Counts tokens of images, documents and sounds in a request body. Images are counted by the provider's rule for their size,
 * which is read from the first bytes of PNG, JPEG, GIF and WebP; the rest is estimated from the amount of data. Pure. The base64
 * text itself is never counted as text: that would be a hundred times too much.
 */
import type { Block, Media } from '../conversation/conversation.ts';
import { bytesOf, textOf } from '../conversation/messages.ts';
import type { ImageSize, TokenCounter } from './token-counter.ts';

export function countMedia(counter: TokenCounter, body: Uint8Array, block: Block, media: Media): number {
  const { kind, data, span } = media;
  if (kind === 'image') return counter.image(data && imageSizeOf(bytesOf(body, block, data)));
  if (data === undefined) {
    return Math.max(MIN_TOKENS[kind], Math.ceil((span.end - span.start) / JSON_BYTES_PER_TOKEN));
  }
  const literal = bytesOf(body, block, data);
  // A plain-text document is text like any other.
  if (kind === 'document' && !isEncoded(literal)) return counter.count(textOf(body, block, data));
  return Math.max(MIN_TOKENS[kind], Math.ceil(literal.length / BYTES_PER_TOKEN[kind]));
}

/**
 * Bytes of base64 for a token. Usual values: a page of a document has some 60 kB and 1,500 tokens, a second of sound some 20 kB
 * and 25 tokens, a second of film 250 kB and 300 tokens.
 */
const BYTES_PER_TOKEN = { document: 40, audio: 800, other: 800 } as const;

/** Also the estimate for media given by reference. `other` may be a short reference. */
const MIN_TOKENS = { document: 1_500, audio: 250, other: 0 } as const;

/** For items that hold their content as unknown JSON. */
const JSON_BYTES_PER_TOKEN = 4;

const decoder = new TextDecoder();

/** True for base64, data URLs and other URLs: no blank, no line end, nothing beyond ASCII in the first bytes. */
function isEncoded(literal: Uint8Array): boolean {
  const head = decoder.decode(literal.subarray(1, 200)).replace(/"$/, '');
  return /^(?:[a-z]+:[!-~]*|(?:[A-Za-z0-9+/=_-]|\\\/|\\[rn]){32,})$/.test(head);
}

/** Returns a byte of the image; undefined past its end. */
type ByteAt = (at: number) => number | undefined;

/**
 * Returns the size of an image in a JSON string literal (quotes included) that holds base64 or a data URL. Decodes only the bytes
 * that say it. Undefined for other URLs, unknown formats and broken data; never throws.
 */
export function imageSizeOf(literal: Uint8Array): ImageSize | undefined {
  const base64 = base64Of(literal);
  if (base64 === undefined) return undefined;
  const byteAt = base64Reader(base64);
  const size = readPng(byteAt) ?? readGif(byteAt) ?? readWebp(byteAt) ?? readJpeg(byteAt);
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bytes. The type in a data URL is shorter than this. */
const MAX_PREAMBLE_BYTES = 200;
/** Bytes. A literal with escapes is unescaped only up to here. */
const MAX_UNESCAPED_BYTES = 262_144;

/** Returns the bytes that hold base64, without quotes, data URL preamble and escapes. */
function base64Of(literal: Uint8Array): Uint8Array | undefined {
  const start = literal[0] === QUOTE ? 1 : 0;
  const end = literal.at(-1) === QUOTE ? literal.length - 1 : literal.length;
  const body = literal.subarray(start, end);
  const plain = body.includes(BACKSLASH) ? unescaped(body.subarray(0, MAX_UNESCAPED_BYTES)) : body;
  const preamble = ascii(plain.subarray(0, MAX_PREAMBLE_BYTES));
  if (!/^[a-z][a-z+.-]*:/i.test(preamble)) return plain;
  const marker = /^data:[^,]*;base64,/i.exec(preamble);
  return marker === null ? undefined : plain.subarray(marker[0].length);
}

/** Some clients escape the slashes of base64, some break it into lines. */
function unescaped(body: Uint8Array): Uint8Array {
  const plain = ascii(body)
    .replace(/\\[nrt]/g, '')
    .replace(/\\(.)/g, '$1');
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

const latin1 = new TextDecoder('latin1');

function ascii(bytes: Uint8Array): string {
  return latin1.decode(bytes);
}

/** Value of each base64 digit by its byte. The last two have the values of the two before them: the URL-safe alphabet. */
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_';
const digits = new Map(
  Array.from({ length: alphabet.length }, (_, k) => [alphabet.charCodeAt(k), k < 64 ? k : k - 2]),
);

/** Decodes single bytes: three bytes are always four digits. */
function base64Reader(base64: Uint8Array): ByteAt {
  return (at) => {
    const group = Math.floor(at / 3) * 4 + (at % 3);
    const left = digits.get(base64[group] ?? 0);
    const right = digits.get(base64[group + 1] ?? 0);
    if (left === undefined || right === undefined) return undefined;
    const shift = 4 - (at % 3) * 2;
    return ((left << (6 - shift)) | (right >> shift)) & 0xff;
  };
}

function startsWith(byteAt: ByteAt, at: number, text: string): boolean {
  for (let k = 0; k < text.length; k++) if (byteAt(at + k) !== text.charCodeAt(k)) return false;
  return true;
}

/** Reads a little-endian number; undefined when the data end before. */
function little(byteAt: ByteAt, at: number, bytes: number): number | undefined {
  let value = 0;
  for (let k = bytes - 1; k >= 0; k--) {
    const byte = byteAt(at + k);
    if (byte === undefined) return undefined;
    value = value * 256 + byte;
  }
  return value;
}

function big(byteAt: ByteAt, at: number, bytes: number): number | undefined {
  return little((k) => byteAt(2 * at + bytes - 1 - k), at, bytes);
}

function sized(width: number | undefined, height: number | undefined): ImageSize | undefined {
  return width === undefined || height === undefined ? undefined : { width, height };
}

function readPng(byteAt: ByteAt): ImageSize | undefined {
  if (!startsWith(byteAt, 0, '\u0089PNG\r\n\u001a\n')) return undefined;
  return sized(big(byteAt, 16, 4), big(byteAt, 20, 4));
}

function readGif(byteAt: ByteAt): ImageSize | undefined {
  if (!startsWith(byteAt, 0, 'GIF8')) return undefined;
  return sized(little(byteAt, 6, 2), little(byteAt, 8, 2));
}

function readWebp(byteAt: ByteAt): ImageSize | undefined {
  if (!startsWith(byteAt, 0, 'RIFF') || !startsWith(byteAt, 8, 'WEBP')) return undefined;
  if (startsWith(byteAt, 12, 'VP8X')) {
    const width = little(byteAt, 24, 3);
    const height = little(byteAt, 27, 3);
    return sized(width === undefined ? width : width + 1, height === undefined ? height : height + 1);
  }
  if (startsWith(byteAt, 12, 'VP8L')) {
    // Fourteen bits each, minus one.
    const bits = little(byteAt, 21, 4);
    return bits === undefined
      ? undefined
      : { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (!startsWith(byteAt, 12, 'VP8 ')) return undefined;
  const width = little(byteAt, 26, 2);
  const height = little(byteAt, 28, 2);
  return width === undefined || height === undefined
    ? undefined
    : { width: width & 0x3fff, height: height & 0x3fff };
}

/** More segments than a camera's file has before its frame header; hostile data end here. */
const MAX_SEGMENTS = 1_000;

function readJpeg(byteAt: ByteAt): ImageSize | undefined {
  if (!startsWith(byteAt, 0, '\u00ff\u00d8')) return undefined;
  let at = 2;
  for (let segment = 0; segment < MAX_SEGMENTS; segment++) {
    if (byteAt(at) !== 0xff) return undefined;
    const marker = byteAt(at + 1);
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker !== undefined && isFrameHeader(marker))
      return sized(big(byteAt, at + 7, 2), big(byteAt, at + 5, 2));
    const length = big(byteAt, at + 2, 2);
    if (length === undefined || length < 2) return undefined;
    at += 2 + length;
  }
  return undefined;
}

/** True for SOF0 to SOF15, without the three markers among them that mean something else. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** Describes media in words, for the text that replaces it. Reads only the first bytes of the data. */
export function describeMedia(
  body: Uint8Array,
  block: Block,
  { kind, data }: Media,
): { readonly name: string; readonly size: string } {
  const literal = data && bytesOf(body, block, data);
  const size = kind === 'image' && literal ? imageSizeOf(literal) : undefined;
  const head = literal ? ascii(literal.subarray(1, MAX_PREAMBLE_BYTES)).replace(/".*$/s, '') : '';
  const isAddress = /^(?!data:)[a-z][a-z+.-]*:/i.test(head);
  const isPdf = /^(?:data:application\/pdf|JVBERi0)/.test(head);
  return {
    name: isPdf ? 'PDF' : mediaNames[kind],
    size: size
      ? `${size.width}×${size.height} pixels`
      : isAddress
        ? `at ${JSON.stringify(head.slice(0, MAX_SHOWN_ADDRESS))}`
        : literal
          ? `about ${Math.ceil((literal.length * 3) / 4 / 1_000)} kB`
          : 'given by reference',
  };
}

/** UTF-16 units. */
const MAX_SHOWN_ADDRESS = 120;

const mediaNames = { image: 'Image', document: 'Document', audio: 'Sound', other: 'File' } as const;
