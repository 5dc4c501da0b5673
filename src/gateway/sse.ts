/**
 * Cuts a byte stream into server-sent events without losing a byte: every event keeps the bytes it came in, with the blank line
 * that ended it. Only framing happens here, one pass over the bytes; fields are read by eventsource-parser.
 */
import { createParser } from 'eventsource-parser';
import type { StreamEvent } from '../codecs/codec.ts';

/**
 * The events of a response body. An event comes as soon as its blank line has arrived; comments and stray blank lines are
 * events with data '', so that they go on at once. Bytes after the last blank line are one more event at the end. The `raw`
 * of all events joined are the input, and the events do not depend on how the input was cut into chunks.
 */
export async function* splitEvents(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamEvent, void, undefined> {
  const framer = createFramer();
  const read = createReader();
  for await (const chunk of chunks) {
    for (const raw of framer.push(chunk)) yield read(raw, '');
  }
  const rest = framer.end();
  if (rest !== undefined) yield read(rest, '\n\n');
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

type Framer = {
  /** The events that are complete with this chunk. Views of the chunk where an event lies in it whole. */
  push(chunk: Uint8Array): Uint8Array[];
  /** What came after the last blank line; undefined when nothing did. */
  end(): Uint8Array | undefined;
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

function createFramer(): Framer {
  let pending: Uint8Array[] = [];
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

  return {
    push(chunk) {
      const events: Uint8Array[] = [];
      let from = 0;
      for (let at = skipMark(chunk); at < chunk.length; at += 1) {
        if (state === 'line') at = endOfLine(chunk, at);
        if (at === chunk.length) break;
        const byte = chunk[at]!;
        const late = state === 'blank-cr' && byte !== LF;
        const ends = late ? at : endsEvent(state, byte) ? at + 1 : undefined;
        if (ends !== undefined) {
          events.push(join(pending, chunk.subarray(from, ends)));
          pending = [];
          from = ends;
        }
        state = after(late ? 'fresh' : state, byte);
      }
      if (from < chunk.length) pending.push(chunk.subarray(from));
      return events;
    },
    end() {
      return pending.length === 0 ? undefined : join(pending, new Uint8Array(0));
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

function join(before: readonly Uint8Array[], last: Uint8Array): Uint8Array {
  if (before.length === 0) return last;
  const all = new Uint8Array(before.reduce((size, part) => size + part.length, last.length));
  let at = 0;
  for (const part of before) {
    all.set(part, at);
    at += part.length;
  }
  all.set(last, at);
  return all;
}
