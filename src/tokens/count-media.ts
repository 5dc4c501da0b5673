/**
 * Tokens of images, documents and sounds in a request body. Images go by the provider's rule for their size; the rest is
 * guessed from how much there is. Pure. The base64 text itself is never counted: it would be a hundred times too much.
 */
import { type Block, bytesOf, type Media, textOf } from '../conversation/conversation.ts';
import { imageSizeOf } from './image-size.ts';
import type { TokenCounter } from './token-counter.ts';

export function countMedia(counter: TokenCounter, body: Uint8Array, block: Block, media: Media): number {
  const { kind, data, span } = media;
  if (kind === 'image') return counter.image(data && imageSizeOf(bytesOf(body, block, data)));
  if (data === undefined) {
    return Math.max(LEAST_TOKENS[kind], Math.ceil((span.end - span.start) / JSON_BYTES_PER_TOKEN));
  }
  const literal = bytesOf(body, block, data);
  // A plain-text document is text like any other.
  if (kind === 'document' && !isEncoded(literal)) return counter.count(textOf(body, block, data));
  return Math.max(LEAST_TOKENS[kind], Math.ceil(literal.length / BYTES_PER_TOKEN[kind]));
}

/**
 * Bytes of base64 for a token. Guesses by what is usual: a page of a document is some 60 kB and 1,500 tokens, a second of
 * sound some 20 kB and 25 tokens, a second of film 250 kB and 300 tokens.
 */
const BYTES_PER_TOKEN = { document: 40, audio: 800, other: 800 } as const;

/** Also the guess for media that stand elsewhere. `other` may be a short reference. */
const LEAST_TOKENS = { document: 1_500, audio: 250, other: 0 } as const;

/** For items that hold their content as JSON of a kind nobody here knows. */
const JSON_BYTES_PER_TOKEN = 4;

const decoder = new TextDecoder();

/** True for base64, data URLs and other URLs: no blank, no line end, nothing beyond ASCII in the first bytes. */
function isEncoded(literal: Uint8Array): boolean {
  const head = decoder.decode(literal.subarray(1, 200)).replace(/"$/, '');
  return /^(?:[a-z]+:[!-~]*|(?:[A-Za-z0-9+/=_-]|\\\/|\\[rn]){32,})$/.test(head);
}
