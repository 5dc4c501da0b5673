/**
 * Cuts a byte stream into server-sent events without losing a byte: every event keeps the bytes it came in, with the blank line
 * that ended it. Only framing happens here, one pass over the bytes; fields are read by eventsource-parser.
 */
import { createParser } from 'eventsource-parser';
import type { StreamEvent } from '../../codecs/codec.ts';

/** `isPiece`: these are bytes of an event that was too long to be read. */
export type SplitEvent = StreamEvent & { readonly isPiece?: true };

/** The longest event that is collected and read, in bytes. The longest that providers send are images of a few megabytes. */
const longestEvent = 16 * 1024 * 1024;

/**
 * The events of a response body. An event comes as soon as its blank line has arrived; comments and stray blank lines are
 * events with data '', so that they go on at once. Bytes after the last blank line are one more event at the end. The `raw`
 * of all events joined are the input, and the events do not depend on how the input was cut into chunks.
 *
 * An event of more than `maxBytes` is never held in memory: its bytes go on in pieces as they come, each with data '', until its blank
 * line, so one that never ends passes through unread. What follows it is read again.
 */
export async function* splitEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = longestEvent,
): AsyncGenerator<SplitEvent, void, undefined> {
  const framer = createFramer(maxBytes);
  const read = createReader();
  const eventOf = ({ raw, isWhole }: Framed, ending: string): SplitEvent =>
    isWhole ? read(raw, ending) : { raw, event: undefined, data: '', isPiece: true };
  for await (const chunk of chunks) {
    for (const framed of framer.push(chunk)) yield eventOf(framed, '');
  }
  const rest = framer.end();
  if (rest !== undefined) yield eventOf(rest, '\n\n');
}

/** Reads framed events one after the other; `ending` stands for a blank line that never came. */
function createReader(): (raw: Uint8Array, ending: string) => StreamEvent {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let found: { readonly event?: string | undefined; readonly data: string } = { data: '' };
  const parser = createParser({
    onEvent: (message) => {
      found = message;
    },
  });
  return (raw, ending) => {
    found = { data: '' };
    parser.feed(decoder.decode(raw) + ending);
    return { raw, event: found.event, data: found.data };
  };
}

/** One event, or a piece of one that is too long. */
type Framed = { readonly raw: Uint8Array; readonly isWhole: boolean };

type Framer = {
  /** The events that are complete with this chunk. Views of the chunk where an event lies in it whole. */
  push(chunk: Uint8Array): Framed[];
  /** What came after the last blank line; undefined when nothing did. */
  end(): Framed | undefined;
};

const LF = 10;
const CR = 13;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/**
 * Where the framer stands. `line`: inside a line. `fresh`: at the start of one. `cr`: the same, but a line feed still belongs to
 * the carriage return before it. `blank-cr`: a blank line ended in a carriage return and its line feed is due. `cut-cr`: a
 * stream that ends lines in bare carriage returns ended an event; a line feed that follows leads the next one.
 */
type State = 'line' | 'fresh' | 'cr' | 'blank-cr' | 'cut-cr';

function createFramer(maxBytes: number): Framer {
  const pending = createPending();
  /** The event under way is too long: what has come of it has gone on. */
  let isUnread = false;
  let state: State = 'fresh';
  let markBytes = 0;

  /** Steps over a byte order mark at the start of the stream: a line that holds nothing else is blank. */
  const skipMark = (chunk: Uint8Array): number => {
    let at = 0;
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

  /** The event under way with its last bytes. */
  const finish = (last: Uint8Array): Framed => {
    const isWhole = !isUnread && pending.length() + last.length <= maxBytes;
    isUnread = false;
    return { raw: pending.take(last), isWhole };
  };

  /** Keeps what has come of the event under way, or gives it away where that is too much. */
  const keep = (piece: Uint8Array): readonly Framed[] => {
    isUnread ||= pending.length() + piece.length > maxBytes;
    if (isUnread) return [{ raw: pending.take(piece), isWhole: false }];
    pending.add(piece);
    return [];
  };

  return {
    push(chunk) {
      const events: Framed[] = [];
      let from = 0;
      for (let at = skipMark(chunk); at < chunk.length; at += 1) {
        if (state === 'line') at = endOfLine(chunk, at);
        if (at === chunk.length) break;
        const byte = chunk[at]!;
        const late = state === 'blank-cr' && byte !== LF;
        const ends = late ? at : endsEvent(state, byte) ? at + 1 : undefined;
        if (ends !== undefined) {
          events.push(finish(chunk.subarray(from, ends)));
          from = ends;
        }
        state = after(late ? 'fresh' : state, byte);
      }
      if (from < chunk.length) events.push(...keep(chunk.subarray(from)));
      return events;
    },
    end() {
      return pending.length() === 0 ? undefined : { raw: pending.take(new Uint8Array(0)), isWhole: true };
    },
  };
}

/** True when this byte is the last of an event. */
function endsEvent(state: State, byte: number): boolean {
  if (byte === LF) return state === 'fresh' || state === 'blank-cr';
  return byte === CR && (state === 'cr' || state === 'cut-cr');
}

function after(state: State, byte: number): State {
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

/** Most events are shorter. Bytes. */
const usualEvent = 4096;

/** Bytes that wait for more, in one array that grows: an event may come in pieces of one byte. */
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
    /** All of them with these behind; nothing waits any more. */
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
