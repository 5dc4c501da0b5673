/**
 * Defines the read-only view of a request body: messages and their parts, each with its place in the bytes it was read from. No content
 * is copied: a codec builds the view, and text is decoded only where it is needed (messages.ts). Also defines hidden recalls, which
 * the client does not see.
 */

/** A range of bytes, `end` exclusive. */
export type Span = { readonly start: number; readonly end: number };

/** The speaker of a message. `tool` is a message with nothing but tool results, whatever the wire format calls it. */
export type Role = 'system' | 'user' | 'assistant' | 'tool';

/**
 * One part of a message or of the preamble. All spans are relative to the first byte of the part's block, so that parts read once
 * serve every later body with the same bytes. `texts` are JSON string literals, quotes included.
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
      /** Whether the call failed, as the format itself says; undefined in formats without such a field. */
      readonly isError: boolean | undefined;
    }
  | {
      readonly type: 'reasoning';
      readonly span: Span;
      readonly texts: readonly Span[];
      /** True for reasoning that the provider checks: its signature or encrypted content must go back verbatim. */
      readonly signed: boolean;
      /** The literal of the complete reasoning, which only the provider can read. */
      readonly sealed?: Span | undefined;
    }
  | { readonly type: 'media'; readonly span: Span; readonly media: Media }
  | {
      readonly type: 'tool-definition';
      readonly span: Span;
      readonly name: string | undefined;
      /** The definition stays out of the prompt until the model searches for the tool. */
      readonly isDeferred?: boolean;
    }
  | {
      readonly type: 'opaque';
      readonly span: Span;
      readonly kind: string;
      /** Base64 of a sound or a film within it, which is not text. */
      readonly data?: Span;
    }
) & {
  /**
   * Set on a part that no fold may touch, whatever the trigger. It says what else stays: `pair`, the call with its result;
   * `step`, every part of the messages of its step.
   */
  readonly stays?: Stays;
};

export type Stays = 'pair' | 'step';

/** An image, document or sound. `data` is the JSON string literal with base64 bytes, a data URL or a URL, if there is one. */
export type Media = {
  readonly kind: 'image' | 'document' | 'audio' | 'other';
  /** The content part that holds it. */
  readonly span: Span;
  readonly data: Span | undefined;
  /** True when nothing else may stand in its place, because of the format or because other content refers to it. */
  readonly isFixed?: boolean;
};

/** A range of the body that was read as parts. */
export type Block = {
  readonly span: Span;
  /** Digest of exactly these bytes: the key of everything remembered about the block. */
  readonly digest: string;
  readonly parts: readonly Part[];
  /**
   * Milliseconds for which the client asks its provider to cache a prompt up to this block: the longest of several marks;
   * undefined without a mark.
   */
  readonly markedForMs?: number | undefined;
};

/**
 * A message object belongs to the list it was read into: the objects before it are the same in every conversation that holds it.
 * So a value computed from a prefix of messages can be remembered by the last of them.
 */
export type Message = Block & {
  readonly index: number;
  readonly role: Role;
  /** Digest of what the message says, without the members that clients change between turns. The prefix hashes are made from these. */
  readonly canonical: string;
};

export type Conversation = {
  readonly body: Uint8Array;
  readonly model: string | undefined;
  readonly streaming: boolean;
  /** How many alternative replies the client asks for; recalls can be answered privately only for one reply. */
  readonly replies: number;
  /** Tokens the client reserves for the reply; undefined when it does not say. */
  readonly maxOutputTokens: number | undefined;
  /** Names of the tools the client offers; empty when it offers none. */
  readonly toolNames: readonly string[];
  /** System text and tool definitions outside the messages: counted, never edited. */
  readonly preamble: readonly Block[];
  readonly messages: readonly Message[];
  /** True when the client asks for structured output in a reply that may hold calls: it reads all text of the reply as one value, mostly JSON. */
  readonly wantsJson?: boolean | undefined;
  /** True when the client forbids calls in the reply, or names those that are allowed: the model cannot recall in it. */
  readonly forbidsRecall?: boolean | undefined;
  /** True when the client itself marks what its provider should cache. */
  readonly marked?: boolean | undefined;
  /** Milliseconds for which the client asks its provider to keep any of the prompt cached; undefined when it does not say. */
  readonly keptMs?: number | undefined;
  /** True when the requested caching costs more to write, because it lasts for an hour. */
  readonly writesLong?: boolean | undefined;
  /** The id of the reply or conversation that this request continues, when the provider keeps its history: the history is there, not in the body. */
  readonly previousReplyId?: string | undefined;
  /** The client's name for its session, from the body. Receipts are grouped by it; nothing else may depend on it. */
  readonly sessionKey?: string | undefined;
};

/** The place of a text: `text` counts the literals in the part's `texts`. */
export type TextPlace = { readonly message: number; readonly part: number; readonly text: number };

/** The place of an image, document or sound: `media` counts those of the part. */
export type MediaPlace = { readonly message: number; readonly part: number; readonly media: number };

// Hidden recalls. A hidden recall is the private recalls of the model while it made one reply. The client saw one message; the hidden recall
// holds the rounds it was made of, so that later requests can include the private calls and answers at their place. The store
// keeps it, codecs write it.

export type HiddenRecall = {
  /** The rounds in which the model recalled, in order; each ends in recalls. The last one may also hold calls of the client's. */
  readonly rounds: readonly RecallRound[];
  /**
   * The model's final words, as the provider's own JSON: they distinguish the client's copy from another reply to the same
   * request. Undefined when the last round was the end, and when the end is unknown because the client disconnected.
   */
  readonly closing: Uint8Array | undefined;
};

/** The model's turn as the provider's own JSON bytes, and the answers to its recalls. */
export type RecallRound = {
  readonly turn: Uint8Array;
  readonly answers: readonly RecallAnswer[];
  /** True when the client was not shown the texts of the turn. */
  readonly hidesText?: true | undefined;
};

export type ToolCall = { readonly id: string; readonly name: string; readonly argumentsJson: string };

export type RecallAnswer = {
  readonly call: ToolCall;
  readonly text: string;
  /** Images and documents that the answer gives back besides its text. */
  readonly media?: readonly RecalledMedia[];
};

/** An image or document that a fold took out, and that the model recalled. */
export type RecalledMedia = {
  /** The content part as the client sent it: JSON of this format. */
  readonly json: string;
  /** True when it was part of a tool result; false when it was in a message of the user. */
  readonly inResult: boolean;
};

export type KeptReply = {
  /** The provider's id of the reply. */
  readonly name: string;
  /** Answers of private calls at the end of the reply: the provider refuses a request that continues it without them. */
  readonly pendingAnswers: readonly RecallAnswer[];
};

/** Tokens of one model call. `input` counts all prompt tokens, including those read from and written to a cache. */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that is kept longer than usual and costs more; absent when there is none. */
  readonly cacheWriteLong?: number;
  readonly output: number;
  /**
   * Tokens of the prompt that we sent, when the provider ran rounds of its own within the call and `input` therefore counts more
   * (or less) than that prompt. `unknown` when the report does not say; absent when it is all of `input`.
   */
  readonly sentPrompt?: number | 'unknown';
};
