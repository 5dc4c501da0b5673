/** Between async iterables and web streams, one chunk at a time in both directions. Runs on every runtime. */

/** The stream as an iterable; ending it early, even before it began, cancels the stream. */
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

/** The iterable as a stream that asks for a chunk only when it is read. Cancelling ends the iteration. */
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
        // Streams of the platform only take bytes that no other thread shares; ours never are.
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
