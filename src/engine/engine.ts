/** Defines the engine as its callers see it. It never rejects: on any failure, the client's original bytes can be sent. */
import type { Codec } from '../codecs/codec.ts';
import { readBeginning } from '../codecs/read-beginning.ts';
import { unremembered } from '../codecs/read-body.ts';
import type { KeptReply } from '../conversation/conversation.ts';
import { calibratorFor } from './demand.ts';
import { prepareRequest } from './prepare.ts';
import { identityOf, passThrough } from './report.ts';
import { type EngineState, clientLinksOf, createEngineState, disableFolding, foldMemory } from './state.ts';
import type { EngineOptions, EngineRequest, PreparedRequest } from './types.ts';
import { inTime } from './history.ts';
import type { Outcome } from '../receipts/receipt.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';

export interface Engine {
  /** Prepares a request to be sent. Never rejects: on a failure, the outcome is `failed` and the body is the client's own. */
  prepare(request: EngineRequest): Promise<PreparedRequest>;
  /**
   * Returns the request without a fold, for a bypass or when folding took too long. The body is the client's own, except that it names
   * the reply to continue from as the provider knows it. Only the beginning of the body is read. If this process does not know that
   * reply, the store is asked for at most `waitMs` milliseconds. Never rejects.
   */
  unfolded(request: EngineRequest, outcome: UnfoldedOutcome, waitMs?: number): Promise<PreparedRequest>;
  /**
   * Disables folding of this conversation for a day, except when it would not fit, because its provider refused our edits. Never rejects.
   */
  disableFolding(request: EngineRequest): Promise<void>;
  /** Takes the number of tokens that a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  reportPromptTokens(request: EngineRequest, reported: number): Promise<void>;
}

/** Creates an engine from its parts. `createDefaultEngine` supplies the usual ones. */
export function createEngine(options: EngineOptions): Engine {
  const engine = createEngineState(options);
  return {
    prepare: (request) => prepareRequest(engine, request),
    unfolded: (request, outcome, waitMs = 0) => unfolded(engine, request, outcome, waitMs),
    async disableFolding(request) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        // A conversation without its history begins like many others, and is never folded.
        if (conversation.previousReplyId !== undefined) return;
        await disableFolding(foldMemory(engine, request, conversation, conversation), options.clock?.());
      } catch {
        // This process remembers the refusal. Other instances learn of it from the next refusal.
      }
    },
    async reportPromptTokens(request, reported) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        const counter = await options.counterFor(conversation.model);
        const clientLinks = clientLinksOf(engine, request, conversation);
        const counts = createConversationCounter({ counter, memo: engine.counts });
        await counts.ahead(conversation);
        calibratorFor(engine.calibration, request.tenant, conversation, clientLinks).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // A report that cannot be used is ignored.
      }
    },
  };
}

// Requests that are sent without a fold: a client's bypass, or a fold that was not ready in time. The client's own bytes are sent, except for the
// reply that they continue: after a hidden recall, the provider may know that reply by another name, and accepts no other (decision 30).

export type UnfoldedOutcome = Extract<Outcome, { readonly reason: string }>;

async function unfolded(
  engine: EngineState,
  request: EngineRequest,
  outcome: UnfoldedOutcome,
  waitMs: number,
): Promise<PreparedRequest> {
  const { codec, body } = request;
  // The list of messages is incomplete, so it must not be remembered as the conversation's.
  const beginning = readBeginning(codec, body, { ...engine.reading, seen: undefined });
  if (!beginning) return passThrough(body, outcome);
  const named = codec.continueReply && beginning.previousReplyId;
  const kept = named === undefined ? 'none' : await keptReply(engine, request.tenant, named, waitMs);
  const continued = typeof kept === 'string' ? undefined : continuedBody(codec, body, kept);
  const isUncertain = kept !== 'none' && !continued;
  const reason = isUncertain
    ? `${outcome.reason}; it continues the reply that it names, because the store did not answer in time whether the provider knows another name`
    : outcome.reason;
  return {
    ...passThrough(continued ?? body, { ...outcome, reason }, beginning),
    maySendClientBody: continued === undefined,
    identity: { ...identityOf(beginning, clientLinksOf(engine, request, beginning)), links: [] },
  };
}

/** Finds how to continue from a reply: in the memory of this process, or in the store if it answers in time. */
async function keptReply(
  { options: { keptReplies } }: EngineState,
  tenant: string,
  named: string,
  waitMs: number,
): Promise<KeptReply | 'none' | 'not known'> {
  const remembered = keptReplies.known(tenant, named);
  if (remembered) return remembered;
  if (waitMs === 0) return 'not known';
  try {
    return (await inTime({ leftMs: () => waitMs }, keptReplies.find(tenant, named))) ?? 'none';
  } catch {
    return 'not known';
  }
}

/** Returns the body that continues from the kept reply; undefined when it cannot be written. */
function continuedBody(codec: Codec, body: Uint8Array, kept: KeptReply): Uint8Array | undefined {
  try {
    const changed = codec.continueReply?.({ body }, kept);
    return changed && readBeginning(codec, changed, unremembered)?.previousReplyId === kept.name
      ? changed
      : undefined;
  } catch {
    return undefined;
  }
}
