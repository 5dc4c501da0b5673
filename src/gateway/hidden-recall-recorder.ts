/** Collects the hidden recalls of one reply, and stores them for later requests of the conversation. */
import { type ModelReply, type RecallAnswer, recallsWithCalls } from '../codecs/codec.ts';
import type { Prepared } from '../engine/types.ts';
import type { RecallRound, KeptReply } from '../conversation/hidden-recall.ts';
import { storeWaitMs, waitAtMost } from './send-with-retries.ts';

/** Records the hidden recalls of one reply. */
export interface HiddenRecallRecorder {
  /** Adds a round: the model's recalls and their answers. */
  answered(reply: ModelReply, answers: readonly RecallAnswer[]): void;
  /** Stores the rounds of a complete reply; `last` is the model's last part of it. The client gets the end of the reply after this. */
  complete(last: ModelReply): Promise<void>;
  /** Stores the rounds after the client disconnected: its history may contain the reply so far. Does nothing after `complete` or `forget`. */
  left(): Promise<void>;
  /** Drops the rounds after an error: the client does not keep the reply. A reply that the provider keeps can still be continued. */
  forget(): Promise<void>;
}

/** Answer to a recall that was not answered before the reply ended. The model reads it. */
const unread = 'Memory was not read: the answer had ended. Go on with what is there.';

/**
 * Opens a recorder. Its methods never reject, and wait for the store for at most `waitMs` milliseconds: while the store fails or hangs,
 * only this process remembers the recalls. A failure is noted, also a late one. `knows` says whether the client knows the id of the first
 * or of the last round of a reply that the provider keeps.
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

  /** Notes a reply that a later request can continue. */
  function reached({ replyId }: ModelReply, pendingAnswers: readonly RecallAnswer[]): void {
    if (replyId === undefined) return;
    if (knows === 'last') known = replyId;
    else known ??= replyId;
    kept = { name: replyId, pendingAnswers };
  }

  async function keep(closing: Uint8Array | undefined): Promise<void> {
    const records: Promise<void>[] = [];
    if (rounds.length > 0) records.push(prepared.remember({ rounds, closing }));
    if (known !== undefined && kept && (kept.name !== known || kept.pendingAnswers.length > 0))
      records.push(prepared.keepReply(known, kept));
    rounds = [];
    kept = undefined;
    const written = Promise.all(records).catch(() =>
      note.problem('the hidden recalls could not be stored for later requests'),
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
      return keep(recallsWithCalls(last) ? undefined : last.turn);
    },
    left: () => keep(undefined),
    forget() {
      rounds = [];
      return keep(undefined);
    },
  };
}
