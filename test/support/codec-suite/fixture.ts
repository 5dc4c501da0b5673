/**
 * The answers of a wire format to the cases of the codec suite. Every member is an answer to a case and none is optional, so a new codec does
 * not compile until it has answered each; a case that a format cannot have is answered with the reason. This file describes the
 * cases in format-neutral terms.
 */
import type { Codec, ToolCall, Overflow } from '../../../src/codecs/codec.ts';
import type { Usage } from '../../../src/conversation/conversation.ts';

export interface CodecFixture extends RequestFixture, ResponseFixture, StreamFixture, ErrorFixture {
  readonly usage: UsageFixture;
}

/** A case that this format cannot have: the reason is shown in the report of every run. */
export type Absent = { readonly absent: string };

export type RequestFixture = {
  /** A request body in the format's usual spelling. */
  body(request: NeutralRequest): Uint8Array;
  /** The model that `body` asks for. */
  readonly model: string;
  /** The place where a request names its model and whether it streams. A URL leaves nothing in the body: the codec is made for its route. */
  readonly route:
    | { readonly in: 'body' }
    | {
        readonly in: 'url';
        codecFor(route: { readonly model: string; readonly streaming: boolean }): Codec;
      };
  /** The member of a body that lists its messages. */
  readonly messagesKey: string;
  /** Whether the user may speak twice in a row, or which rule that breaks. */
  readonly userTwiceInARow: 'allowed' | { readonly breaks: string };
  /**
   * The outcome for messages of one side when nothing is left between them, or when one is inserted next to them: they stay
   * apart, or may be joined; `standIn` is what the model is made to say between user messages that must not be joined.
   */
  readonly newNeighbours: 'stay apart' | { readonly standIn: string };
  /** The form of a reply's turn in the next request: with the very bytes, or as the elements of the list that it is. */
  readonly turnInRequest: 'whole' | 'without its brackets';
  /** Bodies whose bytes a careless reader would change, written by hand. */
  readonly oddBodies: Readonly<Record<OddSpelling, string>>;
  /** Bodies that are not of this format. */
  readonly refused: Readonly<Record<RefusedBody, string | Absent>>;
  /** Bodies in the shape that real clients send, by name; all are valid. */
  readonly recorded: Readonly<Record<string, Uint8Array>>;
  /** Bodies that break a rule which no neutral request can break, by the rule's name. */
  readonly broken: Readonly<Record<string, Uint8Array>>;
  /** Pairs of bodies that mean the same: all of their prefix hashes are equal. */
  readonly sameMeaning: readonly (readonly [why: string, one: Uint8Array, other: Uint8Array])[] | Absent;
  /** Keys of members that clients change between turns; they do not change the meaning. */
  readonly movingKeys: ReadonlySet<string>;
};

export type ResponseFixture = {
  /** A complete response. */
  response(turn: ScriptedTurn): Uint8Array;
  /** Reads a complete response strictly, as a careful client would; throws for anything but one well-formed message. */
  clientResponse(body: Uint8Array): ClientView;
  /** Complete responses that cannot be read. */
  readonly badResponses: Readonly<Record<string, string>>;
  /**
   * The reasoning in a complete response of several rounds. Streams show all of it, because what it leads to is not known while
   * it arrives.
   */
  readonly reasoningShown: {
    readonly ofEarlierRounds: 'kept' | 'left out';
    readonly whereOnlyRecallsFollow: 'kept' | 'left out';
  };
};

export type StreamFixture = {
  /** A streamed response as SSE text, one event for each piece; `number` distinguishes the responses of one test. */
  stream(turn: ScriptedTurn, number: number): string;
  /** An error of the provider in the middle of a stream, as SSE text. */
  readonly streamError: string;
  /** Reads a stream strictly: one start, gapless indices, matching starts and stops, one end. Throws for anything else. */
  client(sse: string): ClientView;
  /** Returns what the official client accumulates from a stream; rejects when the client throws. */
  readonly official: { readonly client: string; read(sse: string): Promise<OfficialView> } | Absent;
  /**
   * Returns what a stream has said so far, piece by piece and without checks: texts, reasoning, and arguments of calls, except
   * those of the named tool.
   */
  heard(sse: string, except: string): readonly string[];
  /** Streams in the shape that real servers send, with parts that no scripted turn has. */
  readonly exchanges: Readonly<Record<ExchangeName, Exchange | Absent>>;
};

export type ErrorFixture = {
  /** Returns the official client's reading of an error response. */
  parseError(status: number, body: Uint8Array): { readonly message: string; readonly isTyped: boolean };
  /** Bodies of error responses by whether they say that the request is too long; keys quote the sentence. */
  readonly overflows: Readonly<Record<string, ErrorResponse & { readonly means: Overflow }>>;
  readonly otherErrors: Readonly<Record<string, ErrorResponse>>;
};

/** Usage in the provider's own terms. */
export type UsageFixture = {
  /** The reports of the provider for responses to requests of one exchange, as completely as it can; three or more. */
  readonly rounds: readonly { readonly said: unknown; readonly means: Usage }[];
  /** The report for all of them as one. */
  readonly total: unknown;
  /** A response with this usage; without any if it is undefined, as some servers send it. */
  response(turn: ScriptedTurn, said: unknown): Uint8Array;
  /** The same as a stream, in the provider's way: of running totals also those before the last. */
  stream(turn: ScriptedTurn, number: number, said: unknown): string;
  /** Returns the usage that a complete response reports. */
  inResponse(body: Uint8Array): unknown;
  /** Returns the usage that a stream reports over time, each time everything known so far. */
  inStream(sse: string): readonly unknown[];
};

export type ErrorResponse = { readonly status: number; readonly body: string };

export type OddSpelling =
  | 'big integers'
  | 'key order'
  | 'unicode escapes'
  | 'duplicate keys'
  | 'unknown fields'
  | 'lone surrogates'
  | 'white space'
  | 'messages first and last'
  | 'numbers spelled oddly';

export type RefusedBody =
  | 'messages that are no list'
  | 'messages of null'
  | 'a message that is no object'
  | 'a message without a role'
  | 'a message of an unknown role'
  | 'a message of a role that means something to JavaScript'
  | 'messages twice';

export type NeutralRequest = {
  readonly turns: readonly NeutralTurn[];
  readonly tools: readonly string[];
  readonly stream?: boolean;
};

export type NeutralTurn =
  | { readonly say: 'system' | 'user'; readonly text: string }
  /** Holds at least one text or call; reasoning comes ahead of both. */
  | {
      readonly say: 'assistant';
      readonly reasoning?: string;
      readonly text?: string;
      readonly calls: readonly ToolCall[];
    }
  | { readonly say: 'results'; readonly results: readonly { readonly id: string; readonly text: string }[] };

/** The answer of a scripted model. Pieces are what the model streams one by one. */
export type ScriptedTurn = {
  readonly parts: readonly ScriptedPart[];
  /** `calls`: it waits for results. `length`: its token limit cut it off, in the middle of the last part. */
  readonly finish: 'stop' | 'calls' | 'length';
  readonly usage: Usage;
};

export type ScriptedPart =
  | { readonly type: 'reasoning'; readonly pieces: readonly string[] }
  | { readonly type: 'text'; readonly pieces: readonly string[] }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly pieces: readonly string[] };

/** A client's reading of a response. */
export type ClientView = {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Undefined for a stream that ended in an error. */
  readonly finish: ScriptedTurn['finish'] | undefined;
  readonly usage: Usage | undefined;
  readonly error: string | undefined;
};

/** Official clients differ in what they keep of reasoning. */
export type OfficialView = Pick<ClientView, 'text' | 'calls' | 'finish' | 'usage'>;

export type ExchangeName =
  | 'words around a recall'
  | 'sealed reasoning before two recalls'
  | 'a recall among calls of the client'
  | 'tools that the provider runs';

/**
 * The responses to a request and its continuations as SSE text (each but the last ends in recalls), and what the client gets of
 * all.
 */
export type Exchange = { readonly responses: readonly string[]; readonly client: ClientView };
