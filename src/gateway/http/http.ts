/**
 * Defines HTTP as the core of the gateway sees it: requests and responses as values and byte streams, and their headers. It uses no sockets and no transport library: the servers (node-server.ts, fetch.ts) convert their requests to these
 * types, and the upstreams (undici-upstream.ts, fetch.ts) send them. Also splits streams into server-sent events.
 */
import { createParser } from 'eventsource-parser';
import type { StreamEvent } from '../../codecs/codec.ts';

/** Headers with names in lower case. Several values of one name are several entries, in order. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Bytes of the headers of a request or response at most. Node's own 16,384 are too few for some tokens of logins. */
export const maxHeaderBytes = 64 * 1024;

/** A request body. `ownsChunks`: nobody else uses the memory of its chunks, so a reader that has copied them frees it. */
export type RequestBody = AsyncIterable<Uint8Array> & { readonly ownsChunks?: true };

export type GatewayRequest = {
  readonly method: string;
  /** Path with query, as the client sent it. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: RequestBody | undefined;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
};

export type GatewayResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Iterated once, and ended early (`return`) when the client disconnects. An error in it breaks the response off. */
  readonly body: AsyncIterable<Uint8Array> | Uint8Array | undefined;
};

export type Handler = (request: GatewayRequest) => Promise<GatewayResponse>;

export type UpstreamRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
  /** True to decompress a compressed response, for callers that read it. Otherwise the bytes stay as they are if the transport can do that. */
  readonly decode?: boolean;
};

export type UpstreamResponse = {
  readonly status: number;
  readonly headers: HeaderList;
  /** Can be iterated once. It must be read to its end or ended early (`break`, `return`), otherwise its connection stays in use. */
  readonly body: AsyncIterable<Uint8Array>;
};

/**
 * Sends requests to a provider. `send` rejects with LeporelloError `upstream-failed` (cannot connect, or the connection broke) or `deadline`
 * (no response headers in time). Reading the body can throw the same errors. It never retries.
 */
export interface Upstream {
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Lets requests in progress end, then closes the connections. May be called twice. */
  close(): Promise<void>;
}

/** Splits an absolute URL into its origin and the rest. Not with a URL parser, which would rewrite the path. */
export function splitUrl(url: string): { readonly origin: string; readonly target: string } {
  const slash = url.indexOf('/', url.indexOf('://') + 3);
  return slash < 0 ? { origin: url, target: '/' } : { origin: url.slice(0, slash), target: url.slice(slash) };
}

/** Says whether the bytes of a body are unchanged; `changed` drops the headers that describe the old bytes. */
export type BodyState = 'same' | 'changed';

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which end at the gateway in both directions. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
/** Headers that the sending transport writes itself (`host`), or that the receiving server has answered (`expect`). */
const requestOnly: ReadonlySet<string> = new Set(['host', 'expect']);
/** Headers that describe the bytes of a body. */
const bodyHeaders: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
]);
const nothing: ReadonlySet<string> = new Set();

/** Returns the client's headers for the upstream. All headers that pass stay unchanged, with duplicates and in order. */
export function headersToUpstream(headers: HeaderList, body: BodyState): HeaderList {
  return passing(headers, requestOnly, body);
}

/** Returns the upstream's headers for the client. */
export function headersToClient(headers: HeaderList, body: BodyState): HeaderList {
  return passing(headers, nothing, body);
}

/** Returns the first value of a header. `name` is in lower case. */
export function headerOf(headers: HeaderList, name: string): string | undefined {
  return headers.find((header) => header[0] === name)?.[1];
}

/** Returns the list with these headers in place of all others of the same names. Names are in lower case. */
export function withHeaders(headers: HeaderList, replacing: HeaderList): HeaderList {
  const names = new Set(replacing.map(([name]) => name));
  return [...headers.filter(([name]) => !names.has(name)), ...replacing];
}

function passing(headers: HeaderList, alsoStays: ReadonlySet<string>, body: BodyState): HeaderList {
  const named = namedByConnection(headers);
  const list: (readonly [string, string])[] = [];
  for (const header of headers) {
    const [name] = header;
    if (hopByHop.has(name) || alsoStays.has(name) || (named !== nothing && named.has(name))) continue;
    if (body === 'changed' && bodyHeaders.has(name)) continue;
    if (name.startsWith('proxy-') || name.startsWith('x-leporello-')) continue;
    list.push(header);
  }
  return list;
}

/** Returns the names in the `connection` header: `connection: close, x-hop` makes `x-hop` a hop-by-hop header. */
function namedByConnection(headers: HeaderList): ReadonlySet<string> {
  let names: Set<string> | undefined;
  for (const [name, value] of headers) {
    if (name !== 'connection') continue;
    names ??= new Set();
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names ?? nothing;
}

/** Returns an upstream's response for the client. `state` says whether the bytes of the body are still the upstream's. */
export function answer(
  from: UpstreamResponse,
  state: 'same' | 'changed',
  headers: HeaderList,
  body: GatewayResponse['body'],
): GatewayResponse {
  return { status: from.status, headers: [...headersToClient(from.headers, state), ...headers], body };
}

/** Headers of the gateway's own JSON. It may contain what a tenant sent, so no cache may keep it, and no browser may take it for a page. */
export const jsonHeaders: HeaderList = [
  ['content-type', 'application/json'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
];

export function jsonResponse(status: number, value: unknown): GatewayResponse {
  return { status, headers: jsonHeaders, body: new TextEncoder().encode(`${JSON.stringify(value)}\n`) };
}

// Server-sent events. A byte stream is split into events without losing a byte: every event keeps its bytes, including the blank
// line that ended it. Splitting takes one pass over the bytes; eventsource-parser reads the fields.

/** Bytes of the longest event that is read. The longest events that providers send are images of a few megabytes. */
const maxEventBytes = 16 * 1024 * 1024;

/** Yields the events of a response body, as the splitter returns them. */
export async function* splitEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = maxEventBytes,
): AsyncGenerator<StreamEvent, void, undefined> {
  const splitter = createEventSplitter(maxBytes);
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; ) {
      const { event, end } = splitter.next(chunk, from);
      if (event !== undefined) yield event;
      from = end;
    }
  }
  const rest = splitter.end();
  if (rest !== undefined) yield rest;
}

/** Splits the chunks of a response body into events. */
export type EventSplitter = {
  /** True when the next byte begins an event. A caller may then leave out whole events. */
  isBetween(): boolean;
  /** Returns the first event that ends in the chunk after `from`, and its end there; the end of the chunk when none ends in it. */
  next(chunk: Uint8Array, from: number): { readonly event: StreamEvent | undefined; readonly end: number };
  /** Returns the bytes after the last blank line; undefined when there are none. */
  end(): StreamEvent | undefined;
  /** True when an event was too long to be read. */
  isTooLong(): boolean;
};

const LF = 10;
const CR = 13;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/**
 * State of the splitter. `line`: inside a line. `fresh`: at the start of a line. `cr`: the same, but a line feed still belongs to the carriage
 * return before it. `blank-cr`: a blank line ended in a carriage return, and its line feed may follow. `cut-cr`: an event ended in a stream
 * whose lines end in bare carriage returns; a line feed that follows belongs to the next event.
 */
type SplitterState = 'line' | 'fresh' | 'cr' | 'blank-cr' | 'cut-cr';

/**
 * Creates a splitter. An event is returned as soon as its blank line has arrived; one that lies completely in the chunk is a view of it. Comments
 * and stray blank lines are events with data '', so they are relayed at once. Bytes after the last blank line are one more event at the end.
 * The `raw` bytes of all events together are the input, and the events do not depend on how the input is split into chunks.
 *
 * An event of more than `maxBytes` is never held in memory: its bytes are returned in pieces as they arrive, each with data '', until its blank
 * line. So an event that never ends passes through unread. The events after it are read again.
 */
export function createEventSplitter(maxBytes = maxEventBytes): EventSplitter {
  const read = createReader();
  const pending = createPending();
  /** True when the current event is too long: its bytes so far have been returned. */
  let isUnread = false;
  let hasPieces = false;
  let state: SplitterState = 'fresh';
  let markBytes = 0;

  /** Skips a byte order mark at the start of the stream: a line that contains nothing else is blank. */
  const skipMark = (chunk: Uint8Array, from: number): number => {
    let at = from;
    while (markBytes < 3 && at < chunk.length && chunk[at] === byteOrderMark[markBytes]) {
      at += 1;
      markBytes += 1;
    }
    if (markBytes < 3 && at < chunk.length) {
      if (markBytes > 0) state = 'line';
      markBytes = 3;
    }
    return at;
  };

  const pieceOf = (raw: Uint8Array): StreamEvent => {
    hasPieces = true;
    return { raw, event: undefined, data: '' };
  };

  /** Ends the current event with its last bytes. */
  const finish = (last: Uint8Array): StreamEvent => {
    const isWhole = !isUnread && pending.length() + last.length <= maxBytes;
    isUnread = false;
    const raw = pending.take(last);
    return isWhole ? read(raw, '') : pieceOf(raw);
  };

  /** Keeps a piece of the current event, or returns it when the event is too long. */
  const keep = (piece: Uint8Array): StreamEvent | undefined => {
    isUnread ||= pending.length() + piece.length > maxBytes;
    if (isUnread) return pieceOf(pending.take(piece));
    pending.add(piece);
    return undefined;
  };

  return {
    isBetween: () => state === 'fresh' && markBytes === 3 && !isUnread && pending.length() === 0,
    next(chunk, from) {
      for (let at = skipMark(chunk, from); at < chunk.length; at += 1) {
        if (state === 'line') at = endOfLine(chunk, at);
        if (at === chunk.length) break;
        const byte = chunk[at]!;
        if (state === 'blank-cr' && byte !== LF) {
          state = 'fresh';
          return { event: finish(chunk.subarray(from, at)), end: at };
        }
        const ends = endsEvent(state, byte);
        state = after(state, byte);
        if (ends) return { event: finish(chunk.subarray(from, at + 1)), end: at + 1 };
      }
      return { event: keep(chunk.subarray(from)), end: chunk.length };
    },
    isTooLong: () => hasPieces,
    end: () => (pending.length() === 0 ? undefined : read(pending.take(new Uint8Array(0)), '\n\n')),
  };
}

/** Returns a reader of whole events. `ending` replaces a blank line that never arrived. */
function createReader(): (raw: Uint8Array, ending: string) => StreamEvent {
  // Only the first event may begin with a byte order mark.
  let decoder = new TextDecoder('utf-8');
  let found: { readonly event?: string | undefined; readonly data: string } = { data: '' };
  const parser = createParser({
    onEvent: (message) => {
      found = message;
    },
  });
  return (raw, ending) => {
    found = { data: '' };
    // At a carriage return, the parser would wait for the line feed that may follow.
    parser.feed(decoder.decode(raw) + (ending || (raw.at(-1) === CR ? '\n' : '')));
    if (!decoder.ignoreBOM) decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    return { raw, event: found.event, data: found.data };
  };
}

/** True when this byte is the last of an event. */
function endsEvent(state: SplitterState, byte: number): boolean {
  if (byte === LF) return state === 'fresh' || state === 'blank-cr';
  return byte === CR && (state === 'cr' || state === 'cut-cr');
}

function after(state: SplitterState, byte: number): SplitterState {
  if (byte === LF) return 'fresh';
  if (byte !== CR) return 'line';
  if (state === 'line') return 'cr';
  return state === 'fresh' ? 'blank-cr' : 'cut-cr';
}

function endOfLine(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1;
  return at;
}

/** Bytes of the buffer for a split event. Most events are shorter. */
const usualEvent = 4096;

/** Collects the bytes of an incomplete event in one growing array, because an event may arrive in pieces of one byte. */
function createPending() {
  let held = new Uint8Array(0);
  let size = 0;
  return {
    length: () => size,
    add(piece: Uint8Array): void {
      if (size + piece.length > held.length) {
        const grown = new Uint8Array(Math.max(2 * held.length, size + piece.length, usualEvent));
        grown.set(held.subarray(0, size));
        held = grown;
      }
      held.set(piece, size);
      size += piece.length;
    },
    /** Returns all collected bytes followed by `last`, and empties the collection. */
    take(last: Uint8Array): Uint8Array {
      if (size === 0) return last;
      const all = new Uint8Array(size + last.length);
      all.set(held.subarray(0, size));
      all.set(last, size);
      if (held.length > usualEvent) held = new Uint8Array(0);
      size = 0;
      return all;
    },
  };
}
