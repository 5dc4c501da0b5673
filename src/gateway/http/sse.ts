/**
 * Splits a byte stream into server-sent events without losing a byte: every event keeps its bytes, including the blank line that ended it.
 * This file only frames, in one pass over the bytes; eventsource-parser reads the fields.
 */
import { createParser } from 'eventsource-parser';
import type { StreamEvent } from '../../codecs/codec.ts';

/** An event, or (`isPiece`) a piece of an event that is too long to be read. */
type SplitEvent = StreamEvent & { readonly isPiece?: true };

/** Bytes of the longest event that is read. The longest events that providers send are images of a few megabytes. */
const maxEventBytes = 16 * 1024 * 1024;

/**
 * Yields the events of a response body. An event is yielded as soon as its blank line has arrived. Comments and stray blank lines are events
 * with data '', so they are relayed at once. Bytes after the last blank line are one more event at the end. The `raw` bytes of all events
 * together are the input, and the events do not depend on how the input is split into chunks.
 *
 * An event of more than `maxBytes` is never held in memory: its bytes are yielded in pieces as they arrive, each with data '', until its blank
 * line. So an event that never ends passes through unread. The events after it are read again.
 */
export async function* splitEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = maxEventBytes,
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

/** Returns a reader of framed events. `ending` replaces a blank line that never arrived. */
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

/** The bytes of an event, or of a piece of an event that is too long. */
type Framed = { readonly raw: Uint8Array; readonly isWhole: boolean };

type Framer = {
  /** Returns the events that this chunk completes. An event that lies completely in the chunk is a view of it. */
  push(chunk: Uint8Array): Framed[];
  /** Returns the bytes after the last blank line; undefined when there are none. */
  end(): Framed | undefined;
};

const LF = 10;
const CR = 13;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/**
 * State of the framer. `line`: inside a line. `fresh`: at the start of a line. `cr`: the same, but a line feed still belongs to the carriage
 * return before it. `blank-cr`: a blank line ended in a carriage return, and its line feed may follow. `cut-cr`: an event ended in a stream
 * whose lines end in bare carriage returns; a line feed that follows belongs to the next event.
 */
type FramerState = 'line' | 'fresh' | 'cr' | 'blank-cr' | 'cut-cr';

function createFramer(maxBytes: number): Framer {
  const pending = createPending();
  /** True when the current event is too long: its bytes so far have been yielded. */
  let isUnread = false;
  let state: FramerState = 'fresh';
  let markBytes = 0;

  /** Skips a byte order mark at the start of the stream: a line that contains nothing else is blank. */
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

  /** Ends the current event with its last bytes. */
  const finish = (last: Uint8Array): Framed => {
    const isWhole = !isUnread && pending.length() + last.length <= maxBytes;
    isUnread = false;
    return { raw: pending.take(last), isWhole };
  };

  /** Keeps a piece of the current event, or returns it when the event is too long. */
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
function endsEvent(state: FramerState, byte: number): boolean {
  if (byte === LF) return state === 'fresh' || state === 'blank-cr';
  return byte === CR && (state === 'cr' || state === 'cut-cr');
}

function after(state: FramerState, byte: number): FramerState {
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
