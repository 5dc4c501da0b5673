/**
 * What a fake provider is told to answer. A script is data, so that a test shows the whole exchange; only timing that must be
 * steered from outside takes a promise. Holds no text for models.
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
  /** How many valid requests came before this one. */
  readonly index: number;
  /** Wherever the format has it: in the body or in the path. */
  readonly model: string;
  readonly streaming: boolean;
  /** Responses: the kept items that the request goes on from, by its `previous_response_id`. Empty otherwise. */
  readonly history: readonly JsonObject[];
};

export type JsonObject = Readonly<Record<string, unknown>>;

export type Reply =
  | Turn
  /** An error response; without `body` one in the provider's shape. */
  | {
      readonly type: 'error';
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Sends the first events of `parts` (none by default), then nothing more, until the client goes. 0 sends the head alone. */
  | { readonly type: 'hang'; readonly afterEvents?: number; readonly parts?: readonly TurnPart[] }
  /** Breaks the connection off after so many events; of a plain JSON response half the bytes go out. */
  | { readonly type: 'cut'; readonly afterEvents: number; readonly parts?: readonly TurnPart[] }
  /** Exactly these bytes, each chunk written on its own. */
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
  /** Tokens; those left out are reckoned from lengths. Without any, what is marked for the cache in Messages counts as cached. */
  readonly usage?: Partial<ScriptedUsage>;
  /** Why the model stopped, in the provider's word, instead of the one that fits the parts. */
  readonly finish?: string;
  /** Code points in one text or argument delta. Default 12. */
  readonly chunkSize?: number;
  /** Pause after each event of a stream, in ms. Default none. */
  readonly chunkDelayMs?: number;
  /** Before the first event of the part with this index: a pause in ms, or until the promise resolves. Streams only. */
  readonly pauseBeforePart?: Readonly<Record<number, number | Promise<unknown>>>;
};

export type TurnPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly name: string;
      /** A string goes out as it is, valid JSON or not (in a plain Messages response it must be valid). */
      readonly arguments: string | JsonObject;
      readonly id?: string;
    }
  /** `signature` is what the client has to send back: a seal on the thinking, or the thinking itself, sealed. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string };

/** `input` counts all prompt tokens, those read from and written to a cache included. */
export type ScriptedUsage = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

/** What a wire format adds to a script. */
export interface WireFormat {
  /** Why the provider would refuse this request; undefined when it would not. */
  refusal(request: ModelRequest): Refusal | undefined;
  /** The plain response. */
  whole(answer: Answer): JsonObject;
  /** The stream, one entry per event. */
  events(answer: Answer): readonly WireEvent[];
  errorBody(status: number, refusal: Refusal): JsonObject;
  /** The header that carries the request's id. */
  readonly idHeader: string;
  /** What the provider finds of this prompt in its cache, and puts there; told of each request that it answers. */
  cached?(request: ModelRequest): Pick<ScriptedUsage, 'cacheRead' | 'cacheWrite'>;
  /** Of formats that go on from earlier responses. */
  readonly memory?: FormatMemory;
}

export interface FormatMemory {
  /** The items that a request goes on from. */
  historyOf(request: ModelRequest): readonly JsonObject[];
  /** Told of each answer that goes out whole, before it does. */
  keep(answer: Answer): void;
}

/** What a client asks of a model, wherever it stands in the request. */
export type ModelRequest = {
  readonly body: JsonObject;
  readonly model: string;
  /** `array` is a stream that is one JSON array, which arrives in pieces. */
  readonly reply: 'whole' | 'events' | 'array';
};

/** `status` is 400 unless said. */
export type Refusal = {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
  readonly status?: number;
};

/** `part` is set on the first event of a part. */
export type WireEvent = { readonly text: string; readonly part?: number };

/** A turn with all that the script may leave out. */
export type Answer = {
  readonly index: number;
  readonly request: ModelRequest;
  readonly parts: readonly TurnPart[];
  readonly usage: ScriptedUsage;
  readonly finish: string | undefined;
  readonly chunkSize: number;
};

/** A text in pieces of so many code points; no piece ends inside one. An empty text has no pieces. */
export function pieces(text: string, size: number): readonly string[] {
  const points = Array.from(text);
  const count = Math.ceil(points.length / size);
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''));
}

/** The arguments of a call as the JSON text that goes over the wire. */
export function argumentsJson(part: Extract<TurnPart, { type: 'tool-call' }>): string {
  return typeof part.arguments === 'string' ? part.arguments : JSON.stringify(part.arguments);
}
