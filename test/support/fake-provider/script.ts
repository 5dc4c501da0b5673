/**
 * The script of a fake provider. A script is data, so that a test shows the whole exchange; only timing that is steered from
 * outside takes a promise. It holds no text for models.
 */

/** One reply per request, in order, or a function of the request. */
export type Script = readonly Reply[] | ((request: ScriptRequest) => Reply | Promise<Reply>);

/** `chat` is Chat Completions, `messages` is Messages, `gemini` is generateContent. */
export type ScriptFormat = 'chat' | 'messages' | 'responses' | 'gemini';

/** A valid request, as the script sees it. */
export type ScriptRequest = {
  readonly format: ScriptFormat;
  /** The parsed JSON body. */
  readonly body: JsonObject;
  /** The number of valid requests before this one. */
  readonly index: number;
  /** The model, from the body or the path. */
  readonly model: string;
  readonly streaming: boolean;
  /** Responses: the kept items that the request continues by its `previous_response_id`. Empty otherwise. */
  readonly history: readonly JsonObject[];
};

export type JsonObject = Readonly<Record<string, unknown>>;

export type Reply =
  | Turn
  /** An error response; without `body` in the provider's shape. */
  | {
      readonly type: 'error';
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Sends the first events of `parts` (none by default), then nothing more until the client disconnects. 0 sends only the head. */
  | { readonly type: 'hang'; readonly afterEvents?: number; readonly parts?: readonly TurnPart[] }
  /** Breaks off the connection after this many events; of a plain JSON response half the bytes are sent. */
  | { readonly type: 'cut'; readonly afterEvents: number; readonly parts?: readonly TurnPart[] }
  /** Sends exactly these bytes, each chunk on its own. */
  | {
      readonly type: 'raw';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly chunks: readonly (string | Uint8Array)[];
    };

/** One turn of the model. It stops for its tool calls if it has any. */
export type Turn = {
  readonly type: 'turn';
  readonly parts: readonly TurnPart[];
  /** Tokens; missing ones are computed from lengths. Without any, a marked prompt in Messages counts as cached. */
  readonly usage?: Partial<ScriptedUsage>;
  /** Why the model stopped, in the provider's word, instead of the one that fits the parts. */
  readonly finish?: string;
  /** Code points in one text or argument delta. Default 12. */
  readonly chunkSize?: number;
  /** Pause after each event of a stream, in ms. Default none. */
  readonly chunkDelayMs?: number;
  /** A pause before the first event of the part with this index, in ms or until the promise resolves. Streams only. */
  readonly pauseBeforePart?: Readonly<Record<number, number | Promise<unknown>>>;
};

export type TurnPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly name: string;
      /** A string is sent unchanged, valid JSON or not (in a plain Messages response it must be valid). */
      readonly arguments: string | JsonObject;
      readonly id?: string;
    }
  /** `signature` is what the client has to send back: a signature of the thinking, or the encrypted thinking itself. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  /**
   * A block in the provider's own form, such as a search that it ran itself: a content block, an output item or a part of Gemini's. Chat
   * Completions has nothing like it and leaves it out.
   */
  | { readonly type: 'block'; readonly block: JsonObject };

/** `input` counts all prompt tokens, including those read from and written to a cache. */
export type ScriptedUsage = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

/** The part of a fake provider that depends on the wire format. */
export interface WireFormat {
  /** Returns why the provider would refuse this request; undefined when it would not. */
  refusal(request: ModelRequest): Refusal | undefined;
  /** Returns the plain response. */
  whole(answer: Answer): JsonObject;
  /** Returns the stream, one entry per event. */
  events(answer: Answer): readonly WireEvent[];
  errorBody(status: number, refusal: Refusal): JsonObject;
  /** The header that carries the request's id. */
  readonly idHeader: string;
  /** Returns how much of this prompt the provider finds in its cache and writes to it; called for each request that it answers. */
  cached?(request: ModelRequest): Pick<ScriptedUsage, 'cacheRead' | 'cacheWrite'>;
  /** For formats that continue earlier responses. */
  readonly memory?: FormatMemory;
}

export interface FormatMemory {
  /** Returns the items that a request continues. */
  historyOf(request: ModelRequest): readonly JsonObject[];
  /** Called for each complete answer before it is sent. */
  keep(answer: Answer): void;
}

/** The fields of a request that the script depends on, wherever the format has them. */
export type ModelRequest = {
  readonly body: JsonObject;
  readonly model: string;
  /** `array` is a stream that is one JSON array, which arrives in pieces. */
  readonly reply: 'whole' | 'events' | 'array';
};

/** `status` is 400 by default. */
export type Refusal = {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
  readonly status?: number;
};

/** `part` is set on the first event of a part. */
export type WireEvent = { readonly text: string; readonly part?: number };

/** A turn with everything that the script may omit. */
export type Answer = {
  readonly index: number;
  readonly request: ModelRequest;
  readonly parts: readonly TurnPart[];
  readonly usage: ScriptedUsage;
  readonly finish: string | undefined;
  readonly chunkSize: number;
};

/** Cuts a text into pieces of this many code points; no piece ends inside one. An empty text has no pieces. */
export function pieces(text: string, size: number): readonly string[] {
  const points = Array.from(text);
  const count = Math.ceil(points.length / size);
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''));
}

/** Returns what a part says, with calls and blocks as JSON. */
export function textOf(part: TurnPart): string {
  if (part.type === 'block') return JSON.stringify(part.block);
  return part.type === 'tool-call' ? argumentsJson(part) : part.text;
}

/** Returns the arguments of a call as JSON text. */
export function argumentsJson(part: Extract<TurnPart, { type: 'tool-call' }>): string {
  return typeof part.arguments === 'string' ? part.arguments : JSON.stringify(part.arguments);
}
