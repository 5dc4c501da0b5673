/**
 * Edits are data: strategies return them, the fold store stores them, a codec writes them into the bytes. Nothing mutates.
 * Indices always name the conversation as the client sent it, before any edit.
 */
import type { TextPlace } from './conversation.ts';

export type Edit =
  /**
   * Puts `stub` in place of one text. `memory` is the id under which the original can be recalled; undefined where nothing is lost, since
   * all that the original says still stands there.
   */
  | {
      readonly kind: 'replace-text';
      readonly at: TextPlace;
      readonly stub: string;
      readonly memory: string | undefined;
    }
  /** Puts other arguments, the JSON text of an object, in place of those of a call. `memory`: the id of the whole input as it was. */
  | {
      readonly kind: 'replace-input';
      readonly message: number;
      readonly part: number;
      readonly input: string;
      readonly memory: string;
    }
  /** Takes one part out of its message. A message left without parts goes with it. */
  | {
      readonly kind: 'drop-part';
      readonly message: number;
      readonly part: number;
      readonly memory: string | undefined;
    }
  | { readonly kind: 'drop-message'; readonly message: number; readonly memory: string | undefined }
  /** Adds a message that was not there, in front of message `before`. */
  | {
      readonly kind: 'insert-message';
      readonly before: number;
      readonly role: 'user';
      readonly text: string;
      /** Of a summary: whether it stands `beside` those that earlier edits put in, or takes them in and stands `instead` of them. */
      readonly summary?: 'beside' | 'instead';
      /** What it stands for, where that is one stretch of several. */
      readonly stretch?: FinishedSubgoal;
    };

/** A finished stretch of a conversation that a text stands for: a sub-goal's messages, or stretches that became one of a higher level. */
export type FinishedSubgoal = {
  /** 1 a sub-goal, 2 a phase, 3 and more overviews. */
  readonly level: number;
  /** Brings back what stood there before. */
  readonly memory: string;
  readonly calls: number;
  /** Of a higher level: what stood there before, in order. */
  readonly of: readonly { readonly text: string; readonly stretch: FinishedSubgoal }[];
};

/** The highest message index an edit needs to exist: it can be replayed on every prefix that is longer. */
export function lastMessageOf(edit: Edit): number {
  switch (edit.kind) {
    case 'replace-text':
      return edit.at.message;
    case 'replace-input':
    case 'drop-part':
    case 'drop-message':
      return edit.message;
    case 'insert-message':
      return edit.before;
  }
}

/** A message put in that is a summary. */
export function isSummary(edit: Edit): edit is Edit & { readonly kind: 'insert-message' } {
  return edit.kind === 'insert-message' && edit.summary !== undefined;
}

/** The edits without the summaries, and without the stretches, that a later one took in. */
export function withoutTakenIn(edits: readonly Edit[]): readonly Edit[] {
  const newest = edits.findLastIndex((edit) => isSummary(edit) && edit.summary === 'instead');
  const takenIn = new Set(
    edits.flatMap((edit) => stretchOf(edit)?.of.map(({ stretch }) => stretch.memory) ?? []),
  );
  return edits.filter(
    (edit, at) => (at >= newest || !isSummary(edit)) && !takenIn.has(stretchOf(edit)?.memory ?? ''),
  );
}

export function stretchOf(edit: Edit): FinishedSubgoal | undefined {
  return edit.kind === 'insert-message' ? edit.stretch : undefined;
}
