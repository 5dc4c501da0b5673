/**
 * Defines the interface of a wire format. Every difference between providers is a member here, never an `if` in shared code. A codec is
 * pure: bytes and values in, bytes and values out. All codecs pass one conformance suite (test/support/codec-suite).
 */
import type {
  Block,
  Conversation,
  Message,
  Part,
  Role,
  Span,
  HiddenRecall,
  KeptReply,
  RecallAnswer,
  ToolCall,
  Usage,
} from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { JsonRecord, Member } from '../conversation/json-scan.ts';
import type { Steps } from '../conversation/steps.ts';
import type { PrivateTools } from '../conversation/turns.ts';

export type { RecallAnswer, ToolCall } from '../conversation/conversation.ts';

export interface Codec {
  readonly name: string;
  /** The provider and the operation, as the GenAI semantic conventions of OpenTelemetry name them. */
  readonly genAi: { readonly provider: string; readonly operation: string };
  /**
   * The model and the mode that the URL's path names, in formats that put them there. The codec's name and this route make the
   * same codec again.
   */
  readonly route?: { readonly model: string | undefined; readonly streaming: boolean };
  /** Reads a request body. Throws `not-this-format` for a body of another format; pass such a body through. */
  read(body: Uint8Array, reading: ReadContext): Conversation;
  /**
   * Splices the edits (and the recall tool) into the body; all other bytes stay. Returns the same array when there is nothing to
   * do. Throws `bad-edit` when an edit names a place that does not exist.
   */
  write(
    conversation: Conversation,
    edits: readonly Edit[],
    extra?: { readonly recallTool?: RecallTool },
  ): Uint8Array;
  readonly rules: FormatRules;
  /** Reads a complete (not streamed) successful response. Throws `bad-response`. */
  readResponse(body: Uint8Array, privateTools: PrivateTools): ModelReply;
  /** True when the model finished its reply or stopped for its calls. A reply that was cut off or refused may hold half a call. */
  isComplete(reply: ModelReply): boolean;
  /** True when the reply was cut off at its token limit. */
  isTruncated(reply: ModelReply): boolean;
  /**
   * Writes the response as the client may see it: without private calls, with the visible parts of earlier rounds first and the
   * usage of all rounds. Returns `body` itself when no round held a private call.
   */
  writeResponse(body: Uint8Array, earlier: readonly ModelReply[], reply: ModelReply): Uint8Array;
  /** Relays one streamed response (and its continuations) to the client. */
  openStream(options: StreamOptions): StreamRelay;
  /** Returns the next request after a recall: the sent body with the model's reply and the answers appended. */
  continueWith(sent: Uint8Array, reply: ModelReply, answers: readonly RecallAnswer[]): Uint8Array;
  /**
   * Puts private rounds back into the body, byte for byte as they were sent, at their places in the client's copies of the
   * replies. Leaves a round out when its copy was changed by the client or belongs to another reply.
   */
  insertHiddenRecalls(conversation: Conversation, hiddenRecalls: readonly PlacedHiddenRecall[]): Uint8Array;
  /**
   * Makes a request with `previousReplyId` continue another reply, with the pending answers ahead of the client's input. Only for
   * providers that keep replies; elsewhere a request holds its whole history.
   */
  continueReply?(conversation: Pick<Conversation, 'body'>, kept: KeptReply): Uint8Array;
  /** Says what it would mean to send the same request again. Throws for a body that is not a JSON object. */
  resending(body: Uint8Array): Resending;
  /** Returns a separate request of our own: no tools, not streamed. */
  promptBody(prompt: Prompt): Uint8Array;
  /** Sets cache marks in a request. Only for providers that cache nothing without a mark. */
  readonly cacheMarks?: CacheMarks;
  /** Returns one of our own errors in the provider's shape, as a JSON body. */
  errorBody(problem: GatewayProblem): Uint8Array;
  /** Returns the overflow that a response reports in the provider's own wording; undefined for every other response. */
  overflowIn(status: number, body: string): Overflow | undefined;
  /** True when a response refuses reasoning because of its position, and would accept the request without any reasoning. */
  refusesReasoning(status: number, body: string): boolean;
  /** Adds a sentence to the message of a provider's error. Returns the same array when the body is not an error of this format. */
  explainError(body: Uint8Array, sentence: string): Uint8Array;
}

/** Sets cache marks. `Conversation.marked` says whether the client sets some itself. */
export type CacheMarks = {
  /** Milliseconds for which a prefix stays cached after it was last read or written. */
  readonly keptMs: number;
  /**
   * Sets one mark after the preamble and one after each of these messages (at most three), or at the nearest earlier place
   * where a mark is allowed. `count` says how many were set. The body must not hold marks yet. `messages` are those of this body, or of one
   * with the same bytes from the list of messages on, if it was read before.
   */
  set(
    body: Uint8Array,
    after: readonly number[],
    messages?: readonly Block[],
  ): { readonly body: Uint8Array; readonly count: number };
};

/** The consequences of sending a request again. */
export type Resending = {
  /** Names an effect at the provider that it would have, such as a tool that the provider runs; undefined when it has none. */
  readonly effect: string | undefined;
  /** The tokens of the longest reply that the request allows; undefined when it names none. */
  readonly maxOutputTokens: number | undefined;
  /** The number of replies that the request asks for; undefined for one. */
  readonly replies?: number | undefined;
};

/** Everything that reading needs from outside: a digest, and a memo of blocks that were read before. */
export type ReadContext = {
  readonly digest: (bytes: Uint8Array) => string;
  readonly blocks: BlockMemo;
  /** When given, messages that a conversation repeats are not scanned again. */
  readonly seen?: SeenBodies | undefined;
};

/** The top-level members of a body by key. */
export type BodyFields = {
  readonly format: string;
  readonly body: Uint8Array;
  readonly members: readonly Member[];
  /** The spans of the messages. */
  readonly messages: readonly Span[];
  /** The messages that are known from an earlier request. */
  readonly seen?: SeenList | undefined;
  /** Everything but the messages, as it was read: blocks by key, and all other fields. Undefined where nothing is remembered. */
  readonly frame?:
    | {
        readonly blocks: Map<string, { readonly digest: string; readonly block: ReadBlock }>;
        others?: Readonly<Record<string, unknown>>;
      }
    | undefined;
  get(key: string): Span | undefined;
};

/** The memo of one block, by the digest of its bytes (bounded by the owner of the memo). */
export type ReadBlock = {
  /** The format and field that the block was read as: the same bytes mean something else in another one. */
  readonly of?: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly canonical: string;
  readonly markedForMs?: number | undefined;
};
export type BlockMemo = {
  get(digest: string): ReadBlock | undefined;
  set(digest: string, block: ReadBlock): unknown;
};

/** Remembers lists of messages with their bytes; made by `createSeenBodies`. */
export interface SeenBodies {
  /** Returns what is known of the list that begins at `start` of this body. `of` distinguishes formats. */
  look(of: string, body: Uint8Array, start: number): SeenList;
  /** Returns how many bytes two arrays have in common from the first one on. It may be quicker if these are `likely`, or a few more. */
  commonLength(one: Uint8Array, other: Uint8Array, likely?: number): number;
}

export type SeenList = {
  /** The first messages of the list: those with the same bytes at the same places as before. */
  readonly messages: readonly Message[];
  /** Returns the message that was read before from the bytes of this span. */
  unchanged?(span: Span): Message | undefined;
  /** Remembers how the whole list was read. */
  keep(messages: readonly Message[]): void;
};

/** A broken rule of the wire format, found by reading a body. */
export type Problem = {
  readonly rule: string;
  readonly message: number;
  /** Says what is wrong, with ids and indices, never with content. */
  readonly detail: string;
};

export type FormatRules = {
  /** Returns every broken invariant of the format that a compressor could break. An empty list means: valid. */
  problems(conversation: Conversation): readonly Problem[];
  /**
   * Returns the names of the rules that a body breaks, once for each breach. It uses `JSON.parse` and no code of the reader or
   * writer, so it finds what these misread. It is too slow for every request, so it only checks bodies with a new fold.
   */
  faults(body: Uint8Array): readonly string[];
  /**
   * False for edits of content that must stay verbatim: signed, encrypted and opaque parts, and a turn that the provider still
   * checks.
   */
  mayEdit(conversation: Conversation, edit: Edit): boolean;
  /** Finds ahead, in steps, what `mayEdit` otherwise finds in the whole conversation when it is first called. */
  ahead?(conversation: Conversation): Steps<unknown>;
  /** True when the provider accepts the model's signed reasoning only after exactly the prefix that it was made for. */
  bindsPrefix(conversation: Conversation): boolean;
  /**
   * Adds the edits that must go together with these for the provider to accept the result (reasoning bound to the prefix, for
   * example), or says why they cannot be made now. Edits that need nothing come back unchanged. `force` says that the request
   * does not fit without them, so more may be removed than for a fold that is only a wish.
   */
  complete(
    conversation: Conversation,
    edits: readonly Edit[],
    force?: boolean,
  ):
    | { readonly status: 'ok'; readonly edits: readonly Edit[] }
    | { readonly status: 'refused'; readonly reason: string };
};

/** A prompt that we send to a model ourselves. */
export type Prompt = {
  /** Undefined when the URL names it. */
  readonly model: string | undefined;
  readonly system: string;
  readonly text: string;
  /** Tokens of the reply, reasoning included. */
  readonly maxOutputTokens: number;
};

/** A tool definition in terms that every format can express. */
export type RecallTool = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The tool for notes that is offered after this one, if the settings ask for it. */
  readonly notes?: RecallTool;
};

export type ModelReply = {
  readonly text: string;
  /** The model's calls of the recall tool, in order. */
  readonly recalls: readonly ToolCall[];
  /** The calls meant for the client. */
  readonly calls: readonly ToolCall[];
  readonly usage: Usage | undefined;
  /** The provider's own usage object, to be summed over rounds in its own terms. */
  readonly rawUsage: unknown;
  /** Why the model stopped, in the provider's word. */
  readonly finish: string | undefined;
  /** The assistant turn as the provider's own JSON bytes, to be sent back verbatim in a continuation. */
  readonly turn: Uint8Array;
  /** True when the client is not shown the texts: it asks for structured output, and the model continues after a recall. */
  readonly hidesText?: true | undefined;
  /**
   * The id under which the provider keeps this reply, if it does. A client knows only one id of several rounds: that of the first
   * round of a stream, or of the last round of a complete response.
   */
  readonly replyId?: string | undefined;
};

/**
 * The candidates for hidden recalls of the reply whose copy begins at message `at`, newest first: several replies to one request
 * may have been recorded.
 */
export type PlacedHiddenRecall = { readonly at: number; readonly candidates: readonly HiddenRecall[] };

export type StreamOptions = {
  readonly privateTools: PrivateTools;
};

/** One server-sent event: its raw bytes including the blank line that ends it, and its fields. */
export type StreamEvent = {
  readonly raw: Uint8Array;
  readonly event: string | undefined;
  readonly data: string;
};

export interface StreamRelay {
  /** Takes the next event of the upstream response. Returns the bytes that the client gets at once (often `event.raw` itself). */
  take(event: StreamEvent): readonly Uint8Array[];
  /**
   * Returns the end of the event that begins at `from`, if it need not be read because it equals an earlier text delta but for its text:
   * the client gets its bytes unchanged. Otherwise returns `from`, and the event must be taken. The bytes are those of the next event.
   */
  skip(bytes: Uint8Array, from: number): number;
  /**
   * Says what to do when the upstream response has ended. `recall`: answer the calls, send `continueWith`, and feed the events of
   * the new response into this relay. `done`: send `tail` and close.
   */
  end(): RelayEnd;
  /** Closes the message cleanly when a pending recall will not be continued (no rounds left). Returns the last bytes. */
  finish(): readonly Uint8Array[];
  /**
   * Returns the last bytes for a client whose recall could not be continued: an error as this format spells it within a stream.
   * `providerBody` is the body that the provider answered with: if it is an error, the client gets its type and message instead of
   * `problem`.
   */
  fail(problem: GatewayProblem, providerBody?: Uint8Array): readonly Uint8Array[];
  /** Returns the usage of all rounds so far. */
  usage(): Usage | undefined;
  /** Reads what an event adds to the reply. */
  contentOf(data: JsonRecord): EventContent;
  /** Leaves out the texts of this round that were not taken yet. The round ends with a recall. */
  hideText(): void;
  /** Returns the bytes that were held back when the upstream response has ended, before `end`. Undefined for a relay that holds nothing back. */
  release?(): readonly Uint8Array[];
}

/** `text`: the text that an event adds, empty if one only begins; undefined without one. `calls`: the names of calls that begin. */
export type EventContent = { readonly text: string | undefined; readonly calls: readonly string[] };

export type RelayEnd =
  /** `reply` is the reply of the last round; undefined when it broke off. It may hold recalls and calls of the client's. */
  | {
      readonly status: 'done';
      readonly tail: readonly Uint8Array[];
      readonly reply: ModelReply | undefined;
    }
  | { readonly status: 'recall'; readonly reply: ModelReply };

/** An error that the gateway itself reports to a client. */
export type GatewayProblem = {
  /** An HTTP status: of the gateway's response, or of the provider's when a stream has already begun. */
  readonly status: number;
  readonly message: string;
};

/** A provider's refusal of a request that is too long. */
export type Overflow =
  /** The body or a file in it is too large. Folding helps, but the sizes say nothing about the context window. */
  | { readonly unit: 'bytes' }
  | {
      readonly unit: 'tokens';
      /**
       * The longest prompt, or prompt with reply, that the provider accepts for this model, in tokens; undefined when it does not
       * say.
       */
      readonly limit: number | undefined;
      /** The length of the refused prompt as the provider counted it, in tokens; undefined when it does not say. */
      readonly prompt: number | undefined;
    };
