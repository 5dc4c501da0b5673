/** What a request went through, for its receipt: counts corrected by what providers reported, names and ids. Pure. */
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalIdsOf } from '../conversation/original.ts';
import type { FoldReport } from '../receipts/receipt.ts';
import type { Demand } from '../triggers/trigger.ts';
import { compressionsOf, correctedSteps } from './corrected.ts';
import { tokensKept } from './identity.ts';
import type { Opened } from './open-request.ts';
import { callsOf } from './outcome.ts';
import type { Draft, Planned, PlanInput } from './plan.ts';
import type { Sending } from './sender.ts';
import { whatIsLarge } from './unfit.ts';

export type Folded = {
  /** As the client sent it. */
  readonly conversation: Conversation;
  /** With what the model recalled in private. */
  readonly asSent: Conversation;
  readonly input: PlanInput;
  readonly start: Draft;
  readonly result: Draft;
  readonly demand: Demand | undefined;
  readonly planned: Planned | undefined;
  /** Edits that were not sent before. */
  readonly kept: readonly Edit[];
};

type Reckoned = Pick<Opened, 'gauge' | 'window' | 'before' | 'wasOffered'>;

export function foldReport(
  { conversation, asSent, input, start, result, demand, planned, kept }: Folded,
  { gauge: { correction }, window, before, wasOffered }: Reckoned,
): Omit<FoldReport, keyof Sending['report']> {
  const { counter, recallTool } = input;
  // Tools stand in front of all.
  const isToolNew = result.offers && (!start.offers || wasOffered === false);
  return {
    model: conversation.model,
    counter: counter.name,
    window: window.tokens,
    trigger: demand?.trigger,
    replayed: start.edits.length,
    steps: correctedSteps(planned?.steps ?? [], correction),
    compressions: compressionsOf(kept, input, correction),
    shrunk: result.shrinks.length,
    memories: originalIdsOf([...result.edits, ...result.shrinks]),
    hiddenRecalls: asSent === conversation ? 0 : callsOf(asSent, recallTool),
    tokensBefore: correction.correct(before),
    tokensAfter: correction.correct(result.tokens),
    tokensKept: isToolNew ? 0 : planned && tokensKept(start, planned.draft, counter, correction),
    bytesBefore: conversation.body.length,
    unfit: whatIsLarge(result, counter, demand?.atMost, correction),
  };
}
