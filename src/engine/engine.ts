/** The engine as its callers see it. It never rejects: whatever fails, the client's original bytes can be sent. */
import type { Codec } from '../codecs/codec.ts';
import { readBeginning } from '../codecs/read-beginning.ts';
import { unremembered } from '../codecs/read-body.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/hidden-recall.ts';
import { beginningOf, calibratorFor } from './demand.ts';
import { prepareRequest } from './prepare.ts';
import { type EngineState, clientLinks, createEngineState, disableFolding, foldMemory } from './state.ts';
import { type EngineOptions, type EngineRequest, type Prepared, inTime, passThrough } from './types.ts';
import type { Outcome } from '../receipts/receipt.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';

export interface Engine {
  /** Never rejects: what goes wrong is the outcome `failed`, with the body as it came. */
  prepare(request: EngineRequest): Promise<Prepared>;
  /**
   * The request without a fold, for when it is not to be folded or could not be in time: as it came, but that it goes on from the right
   * reply where memory knows of another than the one it names. It reads no more of the body than how it begins. This process is asked
   * first and the store, where it has to be, for `waitMs` milliseconds at most. Never rejects.
   */
  unfolded(request: EngineRequest, outcome: UnfoldedOutcome, waitMs?: number): Promise<Prepared>;
  /**
   * Folds this conversation for a day only where it would not fit, because its provider took it only without our edits. Never rejects.
   */
  disableFolding(request: EngineRequest): Promise<void>;
  /** Takes in the tokens a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  reportPromptTokens(request: EngineRequest, reported: number): Promise<void>;
}

/** An engine from its parts; `createLeporello` has the usual ones. What it remembers of blocks is bounded by `maxParts`. */
export function createEngine(options: EngineOptions): Engine {
  const engine = createEngineState(options);
  return {
    prepare: (request) => prepareRequest(engine, request),
    unfolded: (request, outcome, waitMs = 0) => unfolded(engine, request, outcome, waitMs),
    async disableFolding(request) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        // One without its history begins like many others, and no fold is ever made of it.
        if (conversation.previousReplyId !== undefined) return;
        await disableFolding(foldMemory(engine, request, conversation, conversation), options.clock?.());
      } catch {
        // This process remembers the refusal; others meet the next one anew.
      }
    },
    async reportPromptTokens(request, reported) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        const counter = await options.counterFor(conversation.model);
        const links = clientLinks(engine, request, conversation);
        const counts = createConversationCounter({ counter, memo: engine.counts });
        await counts.ahead(conversation);
        calibratorFor(engine.calibration, request.tenant, conversation, links).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // Then it teaches nothing.
      }
    },
  };
}

// Requests that are sent without a fold: a client's bypass, or a fold that was not ready in time. The client's own bytes are sent, except for the
// reply that they continue: after a private recall, the provider may know that reply by another name, and accepts no other (decision 30).

export type UnfoldedOutcome = Extract<Outcome, { readonly reason: string }>;

/** Never rejects. */
export async function unfolded(
  engine: EngineState,
  request: EngineRequest,
  outcome: UnfoldedOutcome,
  waitMs: number,
): Promise<Prepared> {
  const { codec, body } = request;
  // The list of messages is cut short, so nothing may remember it as the conversation's.
  const came = readBeginning(codec, body, { ...engine.reading, seen: undefined });
  if (!came) return passThrough(body, outcome);
  const named = codec.continueReply && came.previousReplyId;
  const kept = named === undefined ? 'none' : await keptReply(engine, request.tenant, named, waitMs);
  const going = typeof kept === 'string' ? undefined : goneOn(codec, body, kept);
  const isUncertain = kept !== 'none' && !going;
  const reason = isUncertain
    ? `${outcome.reason}; it goes on from the reply it names, as memory could not be asked for another in time`
    : outcome.reason;
  return {
    ...passThrough(going ?? body, { ...outcome, reason }, came),
    maySendClientBody: going === undefined,
    identity: { links: [], beginning: beginsWith(engine, request, came), session: came.sessionKey },
  };
}

/** From this process at once; from the store where it answers in time. */
async function keptReply(
  { options: { keptReplies } }: EngineState,
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

function beginsWith(engine: EngineState, request: EngineRequest, came: Conversation): string | undefined {
  const links = clientLinks(engine, request, came);
  const beginning = beginningOf(came, links);
  // The first link stands for no message: all conversations of a tenant share it.
  return beginning === links[0] ? undefined : beginning;
}
