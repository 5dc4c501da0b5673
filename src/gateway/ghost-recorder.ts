/** Collects what is recalled while one reply is made, and keeps it for later requests of the conversation. */
import type { ModelReply, RecallAnswer } from '../codecs/codec.ts';
import { recallsBeside } from '../codecs/recalls.ts';
import type { Prepared } from '../compact/prepared.ts';
import type { GhostRound } from '../conversation/ghost-turn.ts';

export interface GhostRecorder {
  answered(reply: ModelReply, answers: readonly RecallAnswer[]): void;
  /** The reply is complete, with what the model said at last; the client gets its end only after this. */
  complete(last: ModelReply): Promise<void>;
  /** The client left: what was recalled until then may stand in its history all the same. Does nothing after one of the others. */
  left(): Promise<void>;
  /** The client was told of an error: it will not keep this reply. */
  forget(): void;
}

/** Never rejects: a store that fails costs the model its memory of a recall, and no more. */
export function recordGhosts(
  prepared: Pick<Prepared, 'remember'>,
  note: { problem(text: string): void },
): GhostRecorder {
  let rounds: GhostRound[] = [];

  async function keep(closing: Uint8Array | undefined): Promise<void> {
    const ghost = { rounds, closing };
    rounds = [];
    if (ghost.rounds.length === 0) return;
    try {
      await prepared.remember(ghost);
    } catch {
      note.problem('what was recalled could not be kept for later requests');
    }
  }

  return {
    answered: ({ turn }, answers) => {
      rounds.push({ turn, answers });
    },
    complete: (last) => keep(recallsBeside(last) ? undefined : last.turn),
    left: () => keep(undefined),
    forget() {
      rounds = [];
    },
  };
}
