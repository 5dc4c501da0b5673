/** Bounds what waits to be written after responses have ended, so that a store that is slow or gone does not fill the memory. */

/**
 * Notes of these kinds wait to be written after responses have ended. `max`: notes that may wait or be written now; `maxBytes`: bytes of the requests that they
 * hold, unless there is only one.
 */
export const waitingSpecs = {
  receipt: { max: 200, maxBytes: 64_000_000 },
  holdout: { max: 200, maxBytes: 64_000_000 },
  shadow: { max: 200, maxBytes: 64_000_000 },
} as const;

/** The kinds of notes. */
export type NoteKind = keyof typeof waitingSpecs;

/** The notes of one kind that wait. */
export interface WaitingNotes {
  /** Returns a function to call once the note is written or has failed; undefined when too many wait: then the note is lost. */
  enter(bytes: number): (() => void) | undefined;
}

/** Bounds the notes of one kind, so that a store that is slow or gone does not fill the memory. */
export function openWaitingNotes(kind: NoteKind): WaitingNotes {
  const { max, maxBytes } = waitingSpecs[kind];
  let count = 0;
  let held = 0;
  return {
    enter(bytes) {
      if (count >= max || (count > 0 && held + bytes > maxBytes)) return undefined;
      count += 1;
      held += bytes;
      let isHere = true;
      return () => {
        if (!isHere) return;
        isHere = false;
        count -= 1;
        held -= bytes;
      };
    },
  };
}
