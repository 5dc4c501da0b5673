/** Collects what is recalled while one reply is made, and keeps it for later requests of the conversation. */
import { type ModelReply, type RecallAnswer, recallsBeside } from '../codecs/codec.ts';
import type { Prepared } from '../engine/prepared.ts';
import type { RecallRound, KeptReply } from '../conversation/hidden-recall.ts';
import { storeWaitMs, waitAtMost } from './waiting.ts';

export interface HiddenRecallRecorder {
  answered(reply: ModelReply, answers: readonly RecallAnswer[]): void;
  /** The reply is complete, with what the model said at last; the client gets its end only after this, which is soon. */
  complete(last: ModelReply): Promise<void>;
  /** The client left: what was recalled until then may stand in its history all the same. Does nothing after one of the others. */
  left(): Promise<void>;
  /** The client is told of an error: it will not keep this reply. Where the provider does, one can go on from it all the same. */
  forget(): Promise<void>;
}

/** What the model is told of a call that nobody answered while there was time. */
const unread = 'Memory was not read: the answer had ended. Go on with what is there.';

/**
 * Never rejects, and waits for the store for `waitMs` milliseconds at most: while the store fails or hangs, what was recalled is
 * remembered by this process alone. A failure is noted, also one that comes later. `knows` says which round's name the client has for a
 * reply that the provider keeps.
 */
export function recordHiddenRecalls(
  prepared: Pick<Prepared, 'remember' | 'keepReply'>,
  note: { problem(text: string): void },
  knows: 'first' | 'last',
  waitMs = storeWaitMs,
): HiddenRecallRecorder {
  let rounds: RecallRound[] = [];
  let known: string | undefined;
  let kept: KeptReply | undefined;

  /** From here a later request can go on. */
  function reached({ keptAs }: ModelReply, owed: readonly RecallAnswer[]): void {
    if (keptAs === undefined) return;
    if (knows === 'last') known = keptAs;
    else known ??= keptAs;
    kept = { name: keptAs, owed };
  }

  async function keep(closing: Uint8Array | undefined): Promise<void> {
    const records: Promise<void>[] = [];
    if (rounds.length > 0) records.push(prepared.remember({ rounds, closing }));
    if (known !== undefined && kept && (kept.name !== known || kept.owed.length > 0))
      records.push(prepared.keepReply(known, kept));
    rounds = [];
    kept = undefined;
    const written = Promise.all(records).catch(() =>
      note.problem('what was recalled could not be kept for later requests'),
    );
    await waitAtMost(written, waitMs);
  }

  return {
    answered(reply, answers) {
      rounds.push({ turn: reply.turn, answers });
      reached(reply, answers);
    },
    complete(last) {
      const isAnswered = rounds.at(-1)?.turn === last.turn;
      if (!isAnswered)
        reached(
          last,
          last.recalls.map((call) => ({ call, text: unread })),
        );
      return keep(recallsBeside(last) ? undefined : last.turn);
    },
    left: () => keep(undefined),
    forget() {
      rounds = [];
      return keep(undefined);
    },
  };
}
