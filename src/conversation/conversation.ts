/**
 * The read-only view of a request body: messages and their parts, each pointing back into the bytes it was read from.
 * Nothing here is a copy of content. A codec builds the view; whoever wants text decodes just that place.
 */

/** A stretch of bytes, `end` exclusive. */
export type Span = { readonly start: number; readonly end: number };

/** Who speaks. `tool` stands for a message that holds nothing but tool results, whatever the wire format calls it. */
export type Role = 'system' | 'user' | 'assistant' | 'tool';

/**
 * One part of a message or of the preamble. All spans are relative to the first byte of the block the part stands in, so
 * that parts read once serve every later body in which the same bytes stand. `texts` are JSON string literals, quotes included.
 */
export type Part = (
  | { readonly type: 'text'; readonly span: Span; readonly texts: readonly Span[] }
  | {
      readonly type: 'tool-call';
      readonly span: Span;
      readonly id: string;
      readonly name: string;
      /** The arguments: a JSON string literal in some formats, an object in others. */
      readonly input: Span;
    }
  | {
      readonly type: 'tool-result';
      readonly span: Span;
      readonly callId: string;
      readonly texts: readonly Span[];
      readonly media: readonly Media[];
      /** What the format itself says of success; formats without such a field leave it undefined. */
      readonly isError: boolean | undefined;
    }
  | {
      readonly type: 'reasoning';
      readonly span: Span;
      readonly texts: readonly Span[];
      /** True where the provider checks it: a signature or encrypted content that must go back verbatim. */
      readonly signed: boolean;
    }
  | { readonly type: 'media'; readonly span: Span; readonly media: Media }
  | {
      readonly type: 'tool-definition';
      readonly span: Span;
      readonly name: string | undefined;
      /** The definition stays out of the prompt until the model searches for the tool. */
      readonly isDeferred?: boolean;
    }
  | { readonly type: 'opaque'; readonly span: Span; readonly kind: string }
) & {
  /**
   * Set on a part that no fold may touch, whatever the trigger. It says what stays with the part: `pair`, the call that the result answers
   * or the other way around; `step`, every part of the messages that belong together around it.
   */
  readonly stays?: Stays;
};

export type Stays = 'pair' | 'step';

/** An image, document or sound. `data` is the JSON string literal with base64 bytes, a data URL or a URL, where there is one. */
export type Media = {
  readonly kind: 'image' | 'document' | 'audio' | 'other';
  readonly span: Span;
  readonly data: Span | undefined;
};

/** A stretch of the body that was read as parts. */
export type Block = {
  readonly span: Span;
  /** Digest of exactly these bytes: the key of everything remembered about the block. */
  readonly digest: string;
  readonly parts: readonly Part[];
  /** Where the client marked something in it for its provider's cache: for how long, in milliseconds; of several the longest. */
  readonly markedForMs?: number | undefined;
};

/**
 * A message object belongs to the list it was read into: the objects before it are the same in every conversation that holds it. So what is
 * computed from a prefix of messages can be remembered by the last of them.
 */
export type Message = Block & {
  readonly index: number;
  readonly role: Role;
  /** Digest of what the message says, without what clients move about between turns. Links of the prefix chain. */
  readonly canonical: string;
};

export type Conversation = {
  readonly body: Uint8Array;
  readonly model: string | undefined;
  readonly streaming: boolean;
  /** How many alternative replies the client asks for; recalls can be answered privately only for one. */
  readonly replies: number;
  /** Tokens the client reserves for the reply, where it says so. */
  readonly maxOutputTokens: number | undefined;
  /** Names of the tools the client offers; empty when it offers none. */
  readonly toolNames: readonly string[];
  /** System text and tool definitions that stand beside the messages: counted, never edited. */
  readonly preamble: readonly Block[];
  readonly messages: readonly Message[];
  /** True where the client itself says what its provider is to cache, in a format in which it can. */
  readonly marked?: boolean | undefined;
  /** For how long the client asks its provider to keep any of the prompt cached, in milliseconds; undefined where it does not say. */
  readonly keptMs?: number | undefined;
  /** True where what the client asks for costs more to write, because it is kept for an hour. */
  readonly writesLong?: boolean | undefined;
  /** The reply this request goes on from by the name the provider keeps it under: the history stands there, not in the body. */
  readonly previousReplyId?: string | undefined;
  /** What the client calls its session in the body. Receipts are grouped by it; nothing else may depend on it. */
  readonly sessionKey?: string | undefined;
};

/** Where a text stands: `text` counts the literals in the part's `texts`. */
export type TextPlace = { readonly message: number; readonly part: number; readonly text: number };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes of a span that is relative to a block. A view, not a copy. */
export function bytesOf(body: Uint8Array, block: { readonly span: Span }, span: Span): Uint8Array {
  return body.subarray(block.span.start + span.start, block.span.start + span.end);
}

/** Decodes a JSON string literal (quotes included) to the text it stands for. */
export function decodeLiteral(literal: Uint8Array): string {
  const text = decoder.decode(literal);
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}

/** The text of one literal of a block. */
export function textOf(body: Uint8Array, block: { readonly span: Span }, span: Span): string {
  return decodeLiteral(bytesOf(body, block, span));
}

/** The arguments of a call as JSON text, however the format carries them; empty where the call has none. */
export function inputOf(
  body: Uint8Array,
  block: { readonly span: Span },
  call: Part & { readonly type: 'tool-call' },
): string {
  const bytes = bytesOf(body, block, call.input);
  return bytes[0] === '"'.charCodeAt(0) ? decodeLiteral(bytes) : decoder.decode(bytes);
}

/** The literals of a part that hold text for the model; empty for parts that have none. */
export function textsOf(part: Part): readonly Span[] {
  switch (part.type) {
    case 'text':
    case 'tool-result':
    case 'reasoning':
      return part.texts;
    case 'tool-call':
    case 'media':
    case 'tool-definition':
    case 'opaque':
      return [];
  }
}
