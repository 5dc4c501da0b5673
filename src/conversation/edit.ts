/**
 * Edits are data: strategies return them, the fold store stores them, a codec writes them into the bytes. Nothing is mutated.
 * Indices always count in the conversation as the client sent it, before any edit.
 */
import type { TextPlace } from './conversation.ts';

export type Edit =
  /**
   * Replaces one text by `stub`. `memory` is the id under which the original can be recalled; undefined when nothing is lost,
   * because all of the original is still there.
   */
  | {
      readonly kind: 'replace-text';
      readonly at: TextPlace;
      readonly stub: string;
      readonly memory: string | undefined;
    }
  /** Replaces the arguments of a call by others: the JSON text of an object. `memory` is the id of the original arguments. */
  | {
      readonly kind: 'replace-input';
      readonly message: number;
      readonly part: number;
      readonly input: string;
      readonly memory: string;
    }
  /** Removes one part from its message. A message left without parts is removed too. */
  | {
      readonly kind: 'drop-part';
      readonly message: number;
      readonly part: number;
      readonly memory: string | undefined;
    }
  | { readonly kind: 'drop-message'; readonly message: number; readonly memory: string | undefined }
  /** Inserts a message ahead of message `before`. */
  | {
      readonly kind: 'insert-message';
      readonly before: number;
      readonly role: 'user';
      readonly text: string;
      /** For a summary: whether it comes `beside` earlier summaries, or includes them and comes `instead` of them. */
      readonly summary?: 'beside' | 'instead';
      /** The finished sub-goal that the text replaces, if it is one of several. (Stored under this key.) */
      readonly stretch?: FinishedSubgoal;
    };

/** A finished sub-goal that a text replaces: its messages, or several sub-goals merged into one of a higher level. */
export type FinishedSubgoal = {
  /** 1 is a sub-goal, 2 a phase, 3 and more overviews. */
  readonly level: number;
  /** The id that recalls the original messages. */
  readonly memory: string;
  readonly calls: number;
  /** For a higher level: the texts that it replaced, in order. */
  readonly of: readonly { readonly text: string; readonly stretch: FinishedSubgoal }[];
};

/** Returns the highest message index an edit needs: it can be replayed on every prefix that is longer. */
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

/** True for an inserted message that is a summary. */
export function isSummary(edit: Edit): edit is Edit & { readonly kind: 'insert-message' } {
  return edit.kind === 'insert-message' && edit.summary !== undefined;
}

/** Returns the edits without the summaries and sub-goals that a later one includes. */
export function withoutTakenIn(edits: readonly Edit[]): readonly Edit[] {
  const newest = edits.findLastIndex((edit) => isSummary(edit) && edit.summary === 'instead');
  const takenIn = new Set(
    edits.flatMap((edit) => subgoalOf(edit)?.of.map(({ stretch }) => stretch.memory) ?? []),
  );
  return edits.filter(
    (edit, at) => (at >= newest || !isSummary(edit)) && !takenIn.has(subgoalOf(edit)?.memory ?? ''),
  );
}

export function subgoalOf(edit: Edit): FinishedSubgoal | undefined {
  return edit.kind === 'insert-message' ? edit.stretch : undefined;
}
