/**
 * The interface of a wire format. Everything that differs between providers is a member here, never an `if` in shared code.
 * A codec is pure: bytes and values in, bytes and values out. One conformance suite (test/support/codec-suite) holds for all.
 */
import type { Block, Conversation, Part, Role } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import type { HiddenRecall, RecallAnswer, ToolCall, KeptReply } from '../conversation/hidden-recall.ts';
import type { Overflow } from './provider-errors.ts';
import type { SeenBodies } from './seen-bodies.ts';

export type { RecallAnswer, ToolCall } from '../conversation/hidden-recall.ts';

export interface Codec {
  readonly name: string;
  /** The model and the mode that the URL's path names, in formats that put them there. With the codec's name they make the same codec again. */
  readonly route?: { readonly model: string | undefined; readonly streaming: boolean };
  /** Reads a request body. Throws `not-this-format` for what is not a request of this format; then: pass it through. */
  read(body: Uint8Array, reading: ReadContext): Conversation;
  /**
   * The body with the edits (and the recall tool) spliced in; every byte that no edit names stays. The same array comes
   * back when there is nothing to do. Throws `bad-edit` when an edit names a place that is not there.
   */
  write(
    conversation: Conversation,
    edits: readonly Edit[],
    extra?: { readonly recallTool?: RecallTool },
  ): Uint8Array;
  readonly rules: FormatRules;
  /** Reads a complete (not streamed) successful response. Throws `bad-response`. */
  readResponse(body: Uint8Array, recallTool: string | undefined): ModelReply;
  /** True when the model stopped for its calls; one that was cut off or refused may have left half a call. */
  isWhole(reply: ModelReply): boolean;
  /** True when the model could not say all it had to: its reply was as long as it may be. */
  isCut(reply: ModelReply): boolean;
  /**
   * The response as the client may see it: without private calls, with what earlier rounds said in front and the usage of all.
   * `body` comes back itself when no round held a private call.
   */
  writeResponse(body: Uint8Array, earlier: readonly ModelReply[], reply: ModelReply): Uint8Array;
  /** Relays one streamed response (and its continuations) to the client. */
  openStream(options: StreamOptions): StreamRelay;
  /** The next request after a recall: the sent body with the model's reply and the answers at its end. */
  continueWith(sent: Uint8Array, reply: ModelReply, answers: readonly RecallAnswer[]): Uint8Array;
  /**
   * The body with private rounds put back, byte for byte as they were sent, where they stood in the client's copies of the replies.
   * Left out is what has no place there any more: a copy the client changed, or one of another reply.
   */
  insertHiddenRecalls(conversation: Conversation, hiddenRecalls: readonly PlacedHiddenRecall[]): Uint8Array;
  /**
   * The body of a request with `goesOnFrom` that goes on from another reply, with the answers owed in front of what the client says.
   * Only where providers keep replies; everywhere else a request has its whole history.
   */
  goOnFrom?(conversation: Pick<Conversation, 'body'>, kept: KeptReply): Uint8Array;
  /** A whole request of our own beside the conversation: no tools, not streamed. */
  promptBody(prompt: Prompt): Uint8Array;
  /** How a request says up to where its prompt is to be cached. Only where providers cache nothing that is not marked. */
  readonly cacheMarks?: CacheMarks;
  /** Our own errors in the provider's shape, as a JSON body. */
  errorBody(problem: GatewayProblem): Uint8Array;
  /** The overflow that a response reports in the provider's own wording; undefined for every other response. */
  overflowIn(status: number, body: string): Overflow | undefined;
  /** True when a response refuses reasoning for where it stands, and would take the request without any. */
  refusesReasoning(status: number, body: string): boolean;
  /** A provider's error with a sentence added to its message; the same array when it is not an error of this format. */
  explainError(body: Uint8Array, sentence: string): Uint8Array;
}

/** Marks of what a provider is to cache. Whether the client sets some itself says `Conversation.marked`. */
export type CacheMarks = {
  /** How long a prefix stays cached after it was read or written last, in milliseconds. */
  readonly keptMs: number;
  /**
   * The body with a mark behind its preamble and one behind each of these messages (at most three), or as near before its end as a mark
   * may stand; `count` says how many there are. For bodies without marks. `messages`: those of this body, where it was read before.
   */
  set(
    body: Uint8Array,
    behind: readonly number[],
    messages?: readonly Block[],
  ): { readonly body: Uint8Array; readonly count: number };
};

/** What reading needs from outside: a digest, and a place to remember blocks whose bytes were read before. */
export type ReadContext = {
  readonly digest: (bytes: Uint8Array) => string;
  readonly outlines: OutlineMemo;
  /** Where there is one, what a conversation repeats is not even looked at again. */
  readonly seen?: SeenBodies | undefined;
};

/** What is remembered of a block by the digest of its bytes (bounded by whoever made it). */
export type Outline = {
  /** The format and field it was read as, noted by whoever remembers it: the same bytes mean something else in another. */
  readonly of?: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly canonical: string;
  readonly markedForMs?: number | undefined;
};
export type OutlineMemo = {
  get(digest: string): Outline | undefined;
  set(digest: string, outline: Outline): unknown;
};

/** A broken rule of the wire format, found by reading a body. */
export type Problem = {
  readonly rule: string;
  readonly message: number;
  /** What is wrong, naming ids and indices, never content. */
  readonly detail: string;
};

export type FormatRules = {
  /** Every invariant of the format that a compressor could break. An empty list means: valid. */
  problems(conversation: Conversation): readonly Problem[];
  /**
   * The rules that a body breaks, one name for each time. Found with `JSON.parse` and nothing that reading or writing uses, so that what
   * these misread shows here. Too slow for every request: it is asked of bodies with a fold that was not sent before.
   */
  faults(body: Uint8Array): readonly string[];
  /** False for edits of what must stay verbatim: signed, encrypted and opaque parts, a turn the provider still checks. */
  mayEdit(conversation: Conversation, edit: Edit): boolean;
  /** True where what the model sealed in its replies is taken only behind the very prefix that it was made behind. */
  bindsPrefix(conversation: Conversation): boolean;
  /**
   * What must go together with these edits so that the provider takes the result (reasoning bound to the prefix, say), or
   * why they cannot be made now. Edits that need nothing come back as they are. `force`: the request does not fit without them, so
   * more may go with them than a wish is worth.
   */
  complete(
    conversation: Conversation,
    edits: readonly Edit[],
    force?: boolean,
  ):
    | { readonly status: 'ok'; readonly edits: readonly Edit[] }
    | { readonly status: 'refused'; readonly reason: string };
};

/** What we ask a model ourselves. */
export type Prompt = {
  /** Undefined where the URL names it. */
  readonly model: string | undefined;
  readonly system: string;
  readonly text: string;
  /** Tokens of the reply, reasoning included. */
  readonly maxOutputTokens: number;
};

/** A tool definition in terms every format can express. */
export type RecallTool = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
};

/** Tokens of one model call. `input` counts all prompt tokens, those read from and written to a cache included. */
export type ReplyUsage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Of `cacheWrite`, what is kept longer than usual and costs more; left out where there is none. */
  readonly cacheWriteLong?: number;
  readonly output: number;
  /**
   * Tokens of the prompt that was sent, where the provider ran rounds of its own within the call, so that `input` holds more (or less) than
   * that prompt. `unknown` where the report does not say; left out where it is all of `input`.
   */
  readonly sentPrompt?: number | 'unknown';
};

export type ModelReply = {
  readonly text: string;
  /** The model's calls of the recall tool, in order. */
  readonly recalls: readonly ToolCall[];
  /** The calls meant for the client. */
  readonly calls: readonly ToolCall[];
  readonly usage: ReplyUsage | undefined;
  /** The provider's own usage object, to be summed over rounds in its own terms. */
  readonly rawUsage: unknown;
  /** Why the model stopped, in the provider's word. */
  readonly finish: string | undefined;
  /** The assistant turn as the provider's own JSON bytes, to be sent back verbatim in a continuation. */
  readonly turn: Uint8Array;
  /**
   * The name under which the provider keeps this reply, if it does. Of several rounds a client knows one: the first of a stream, the
   * last of a complete response.
   */
  readonly keptAs?: string | undefined;
};

/** What may have been recalled for the reply whose copy begins at message `at`: newest first, of several replies to one request. */
export type PlacedHiddenRecall = { readonly at: number; readonly turns: readonly HiddenRecall[] };

export type StreamOptions = {
  /** Name of the recall tool in this request; undefined when it was not injected. */
  readonly recallTool: string | undefined;
};

/** One server-sent event as it came: the raw bytes with the blank line that ends it, and what they say. */
export type StreamEvent = {
  readonly raw: Uint8Array;
  readonly event: string | undefined;
  readonly data: string;
};

export interface StreamRelay {
  /** Takes the next event of the upstream response; returns what the client gets at once (often `event.raw` itself). */
  take(event: StreamEvent): readonly Uint8Array[];
  /**
   * Says what to do when the upstream response has ended. `recall`: answer the calls, send `continueWith`, and go on feeding
   * the events of the new response into this relay. `done`: send `tail` and close.
   */
  end(): RelayEnd;
  /** Closes the message cleanly when a pending recall will not be continued (rounds used up): the last bytes. */
  finish(): readonly Uint8Array[];
  /**
   * The last bytes for a client whose recall could not be continued: an error as this format tells it within a stream. `said` is the body
   * that the provider answered with: where it is an error, the client gets it with its own type and message in place of `problem`.
   */
  fail(problem: GatewayProblem, said?: Uint8Array): readonly Uint8Array[];
  /** Usage over all rounds so far. */
  usage(): ReplyUsage | undefined;
}

export type RelayEnd =
  /** `reply` is what the last round said; undefined when it broke off. It may hold recalls beside the client's calls. */
  | {
      readonly status: 'done';
      readonly tail: readonly Uint8Array[];
      readonly reply: ModelReply | undefined;
    }
  | { readonly status: 'recall'; readonly reply: ModelReply };

/** An error the gateway itself must tell a client. */
export type GatewayProblem = {
  /** An HTTP status: that of the gateway's response, or of the provider's where a stream has long begun. */
  readonly status: number;
  readonly message: string;
};

/** True when the model waits for memory alone: nothing is there for the client to run. */
export function awaitsRecall(reply: ModelReply): boolean {
  return reply.recalls.length > 0 && reply.calls.length === 0;
}

/** True when the model asked memory beside calls that the client runs. */
export function recallsBeside(reply: ModelReply): boolean {
  return reply.recalls.length > 0 && reply.calls.length > 0;
}
