/**
 * A request that is sent without a fold: a client's bypass, or a fold that was not ready in time. The client's own bytes go out, but for
 * the reply they go on from: what the model recalled in private while it made that reply may stand at the provider under another name,
 * or wait there for its answers, and then no provider takes the name the client knows (decision 30).
 */
import type { Codec } from '../codecs/codec.ts';
import { unremembered } from '../codecs/read-body.ts';
import { readBeginning } from '../codecs/read-beginning.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/hidden-recall.ts';
import type { Outcome } from '../receipts/receipt.ts';
import { beginningOf } from './corrected.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { type EngineRequest, inTime } from './request.ts';
import { linksAsCame, type Workshop } from './workshop.ts';

export type UnfoldedOutcome = Extract<Outcome, { readonly reason: string }>;

/** Never rejects. */
export async function unfolded(
  workshop: Workshop,
  request: EngineRequest,
  outcome: UnfoldedOutcome,
  waitMs: number,
): Promise<Prepared> {
  const { codec, body } = request;
  // The list of messages is cut short, so nothing may remember it as the conversation's.
  const came = readBeginning(codec, body, { ...workshop.reading, seen: undefined });
  if (!came) return unprepared(body, outcome);
  const named = codec.continueReply && came.previousReplyId;
  const kept = named === undefined ? 'none' : await keptReply(workshop, request.tenant, named, waitMs);
  const going = typeof kept === 'string' ? undefined : goneOn(codec, body, kept);
  const isUncertain = kept !== 'none' && !going;
  const reason = isUncertain
    ? `${outcome.reason}; it goes on from the reply it names, as memory could not be asked for another in time`
    : outcome.reason;
  return {
    ...unprepared(going ?? body, { ...outcome, reason }, came),
    mayGoAsItCame: going === undefined,
    identity: { links: [], beginning: beginsWith(workshop, request, came), session: came.sessionKey },
  };
}

/** From this process at once; from the store where it answers in time. */
async function keptReply(
  { options: { keptReplies } }: Workshop,
  tenant: string,
  named: string,
  waitMs: number,
): Promise<KeptReply | 'none' | 'not known'> {
  const here = keptReplies.known(tenant, named);
  if (here) return here;
  if (waitMs === 0) return 'not known';
  try {
    return (await inTime({ leftMs: () => waitMs }, keptReplies.find(tenant, named))) ?? 'none';
  } catch {
    return 'not known';
  }
}

/** The body that goes on from the kept reply; undefined where it could not be written. */
function goneOn(codec: Codec, body: Uint8Array, kept: KeptReply): Uint8Array | undefined {
  try {
    const changed = codec.continueReply?.({ body }, kept);
    return changed && readBeginning(codec, changed, unremembered)?.previousReplyId === kept.name
      ? changed
      : undefined;
  } catch {
    return undefined;
  }
}

function beginsWith(workshop: Workshop, request: EngineRequest, came: Conversation): string | undefined {
  const links = linksAsCame(workshop, request, came);
  const beginning = beginningOf(came, links);
  // The first link stands for no message: all conversations of a tenant share it.
  return beginning === links[0] ? undefined : beginning;
}
