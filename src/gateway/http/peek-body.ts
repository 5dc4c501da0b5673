/** Looks at a short body without taking it away: what was read is given again, and what was not read follows. */
import { concatBytes } from '../../conversation/splice.ts';

export type Peeked = {
  /** The whole body as text; undefined when it is longer than the limit or broke off. */
  readonly text: string | undefined;
  /** The same bytes, to the same end: an error that the reading met comes again. */
  readonly body: AsyncIterable<Uint8Array>;
};

export async function peekBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Peeked> {
  const peeked = await peekBytes(body, maxBytes);
  const { status } = peeked;
  return {
    text: status === 'whole' ? new TextDecoder().decode(peeked.bytes) : undefined,
    body: peeked.body,
  };
}

/** `too long`: more than the limit. `broken`: the body ended in an error. The same bytes, to the same end, are in `body`. */
export type PeekedBytes = { readonly body: AsyncIterable<Uint8Array> } & (
  | { readonly status: 'whole'; readonly bytes: Uint8Array }
  | { readonly status: 'too long' }
  | { readonly status: 'broken'; readonly error: unknown }
);

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

/** Without a generator: one that is ended before it began would not end the rest. */
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
