/**
 * What a wire format must bring to the codec suite. Every member is an answer to a case, so a new codec does not compile until
 * it has answered each; what the cases are is said here in neutral words.
 */
import type { ToolCall, Usage } from '../../codecs/codec.ts';

export interface CodecFixture {
  /** A request body in the format's usual spelling. */
  body(request: NeutralRequest): Uint8Array;
  /** Bodies whose bytes a careless reader would change, written by hand. */
  readonly oddBodies: Readonly<Record<OddSpelling, string>>;
  /** Bodies in the shape that real clients send, by name; all are valid. */
  readonly recorded: Readonly<Record<string, Uint8Array>>;
  /** Bodies that break a rule which no neutral request can break, by the rule's name. */
  readonly broken: Readonly<Record<string, Uint8Array>>;
  /** Pairs of bodies that say the same: every link of their prefix chains is equal. Empty where the format has no such spellings. */
  readonly sameMeaning: readonly (readonly [why: string, one: Uint8Array, other: Uint8Array])[];
  /** Keys of members that clients move about between turns; changing one says nothing. */
  readonly movingKeys: ReadonlySet<string>;

  /** A complete response. */
  response(turn: ScriptedTurn): Uint8Array;
  /** Reads a complete response strictly, as a careful client would; throws for what is not one well-formed message. */
  clientResponse(body: Uint8Array): ClientView;
  /** A streamed response as SSE text, one event for each piece; `number` tells the responses of one test apart. */
  stream(turn: ScriptedTurn, number: number): string;
  /** An error of the provider in the middle of a stream, as SSE text. */
  readonly streamError: string;
  /** Reads a stream strictly: one start, gapless indices, matching starts and stops, one end. Throws for anything else. */
  client(sse: string): ClientView;
  /** What a stream has said by now, piece by piece, without checking: texts, reasoning, arguments of calls but of the named tool. */
  heard(sse: string, except: string): readonly string[];

  /** What the official client makes of an error response. */
  parseError(status: number, body: Uint8Array): { readonly message: string; readonly isTyped: boolean };
  /** Bodies of error responses by whether they say that the request is too long; keys quote the sentence. */
  readonly overflows: Readonly<Record<string, ErrorResponse>>;
  readonly otherErrors: Readonly<Record<string, ErrorResponse>>;
  /** Complete responses that cannot be read. */
  readonly badResponses: Readonly<Record<string, string>>;
}

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

export type NeutralRequest = {
  readonly turns: readonly NeutralTurn[];
  readonly tools: readonly string[];
  readonly stream?: boolean;
};

export type NeutralTurn =
  | { readonly say: 'system' | 'user'; readonly text: string }
  /** Says at least one text or call; reasoning stands in front of both. */
  | {
      readonly say: 'assistant';
      readonly reasoning?: string;
      readonly text?: string;
      readonly calls: readonly ToolCall[];
    }
  | { readonly say: 'results'; readonly results: readonly { readonly id: string; readonly text: string }[] };

/** What a scripted model answers. Pieces are what the model streams one by one. */
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

/** What a client made of a response. */
export type ClientView = {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Undefined for a stream that ended in an error. */
  readonly finish: ScriptedTurn['finish'] | undefined;
  readonly usage: Usage | undefined;
  readonly error: string | undefined;
};
