/** Reads bodies: to the end under a limit, or only their beginning; and converts between async iterables and web streams. */
import { concatBytes } from '../../conversation/splice.ts';
import { LeporelloError } from '../../errors.ts';

/**
 * Reads the whole body into one array; a body of a single chunk is returned without copying. Stops reading and throws `body-too-large` as
 * soon as more than `maxBytes` bytes have arrived. Errors of the iteration pass through.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (body === undefined) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new LeporelloError(
        'body-too-large',
        `The body is larger than the limit of ${maxBytes} bytes. Send a smaller body or raise the limit.`,
      );
    }
    chunks.push(chunk);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : concatBytes(chunks);
}

/** The beginning of a body as text. */
export type PeekedText = {
  /** The whole body as text; undefined when it is longer than the limit or breaks off. */
  readonly text: string | undefined;
  /** The complete body again. An error met while peeking is thrown again at the same place. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Reads a body of up to `maxBytes` bytes as text, and returns the complete body again. */
export async function peekBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<PeekedText> {
  const peeked = await peekBytes(body, maxBytes);
  const { status } = peeked;
  return {
    text: status === 'whole' ? new TextDecoder().decode(peeked.bytes) : undefined,
    body: peeked.body,
  };
}

/** `too long`: the body is longer than the limit. `broken`: the body ended in an error. `body` is the complete body again. */
export type PeekedBytes = { readonly body: AsyncIterable<Uint8Array> } & (
  | { readonly status: 'whole'; readonly bytes: Uint8Array }
  | { readonly status: 'too long' }
  | { readonly status: 'broken'; readonly error: unknown }
);

/** Reads a body of up to `maxBytes` bytes, and returns the complete body again. */
export async function peekBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<PeekedBytes> {
  const chunks = body[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let size = 0;
  try {
    while (size <= maxBytes) {
      const step = await chunks.next();
      if (step.done) return { status: 'whole', bytes: concatBytes(read), body: replayed(read, chunks) };
      read.push(step.value);
      size += step.value.length;
    }
  } catch (error) {
    const again: AsyncIterator<Uint8Array> = { next: () => Promise.reject(error) };
    return { status: 'broken', error, body: replayed(read, again) };
  }
  return { status: 'too long', body: replayed(read, chunks) };
}

/** Yields the chunks already read, then the rest. Not a generator: one that is returned before its first `next()` would not end `rest`. */
function replayed(read: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  let at = 0;
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const value = read[at++];
        return value === undefined ? rest.next() : { done: false, value };
      },
      async return() {
        await rest.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

/** Returns the stream as an iterable. Ending the iteration, even before the first `next()`, cancels the stream. */
export function iterate(stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream.getReader();
      return {
        next: async () => {
          const { done, value } = await reader.read();
          return done ? { done, value: undefined } : { done, value };
        },
        return: async () => {
          await reader.cancel();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** Returns the iterable as a stream that pulls a chunk only when it is read. Canceling the stream ends the iteration. */
export function toStream(
  body: AsyncIterable<Uint8Array>,
  onCancel: () => void = () => undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      pull: async (controller) => {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        // Web streams accept only bytes that no other thread shares, and ours are never shared.
        else controller.enqueue(value as Uint8Array<ArrayBuffer>);
      },
      cancel: async () => {
        onCancel();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
