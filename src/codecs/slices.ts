/**
 * Cuts long work on one body into slices, so that it does not hold up other requests of the same thread. All passes over a conversation
 * remember their results by message, so a paused pass continues where it stopped.
 */
import type { Codec, ReadContext, ReadSlice } from '../codecs/codec.ts';
import { ReadingPaused } from '../codecs/read-body.ts';
import type { Conversation } from '../conversation/conversation.ts';

export type Slices = {
  /** True when the running slice has taken its time. */
  readonly isOver: () => boolean;
  /** Lets others run, if the slice has taken its time. */
  readonly pause: () => Promise<void>;
};

/** Milliseconds. */
const sliceMs = 10;

export function openSlices(): Slices {
  let startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > sliceMs;
  return {
    isOver,
    async pause() {
      if (!isOver()) return;
      await nextTurn();
      startedAt = performance.now();
    },
  };
}

/** Resolves in the next turn of the event loop, after what has arrived meanwhile was handled. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

/** Reads a body as `codec.read` does. Rejects with what that throws. */
export async function readInSlices(
  codec: Codec,
  body: Uint8Array,
  reading: ReadContext,
  slices: Slices | undefined,
): Promise<Conversation> {
  if (!slices) return codec.read(body, reading);
  const slice: ReadSlice = { isOver: slices.isOver };
  for (;;) {
    try {
      return codec.read(body, { ...reading, slice });
    } catch (error) {
      if (!(error instanceof ReadingPaused)) throw error;
      await slices.pause();
    }
  }
}
