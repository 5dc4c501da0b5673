/**
 * All that the store knows of one request, asked at once: by what the client itself sent, so that nothing waits for anything else. One
 * round trip, wherever the store is.
 */
import { type Copy, copiesIn } from './hidden-recalls.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/hidden-recall.ts';
import type { FoundRecalls } from '../store/hidden-recalls.ts';
import type { FoundFolds } from '../store/fold-store.ts';
import type { FoundSummary } from '../store/ready-summaries.ts';
import { LeporelloError } from '../errors.ts';
import type { EngineOptions } from './options.ts';
import { type EngineRequest, inTime } from './request.ts';

export type LookUp = {
  /** How to go on from the reply that the conversation names, where it is not by that name. */
  readonly reply: Promise<KeptReply | undefined>;
  readonly rest: Promise<KnownBefore>;
};

export type KnownBefore = {
  /** The client's copies of replies for which something was recalled in private, the newest first. */
  readonly hiddenRecalls: readonly FoundRecalls<Copy>[];
  readonly foldStore: FoundFolds;
  /** Summaries written ahead for what the conversation begins with, the longest first. */
  readonly ready: readonly FoundSummary[];
  /** Set when the store failed or did not answer in time: all else is from the memory of this process alone. */
  readonly problem?: LeporelloError | undefined;
};

type Asked = Pick<EngineRequest, 'leftMs'> & {
  readonly options: Pick<EngineOptions, 'foldStore' | 'hiddenRecalls' | 'keptReplies' | 'summaries'>;
  readonly tenant: string;
  /** Of the prefix chain of the conversation as the client sent it. */
  readonly links: readonly string[];
  /** Whether the provider can be told of another reply to go on from. */
  readonly goesOn: boolean;
  /** Recalls of earlier requests are put back only where the tool they were made with can be offered. */
  readonly offersRecall: boolean;
};

/** Neither promise rejects: while the store fails, the request goes on with what this process remembers. */
export function lookUp(asked: Asked, { messages, previousReplyId }: Conversation): LookUp {
  const { options, tenant, links, goesOn, offersRecall } = asked;
  const { foldStore, hiddenRecalls, keptReplies, summaries } = options;
  return { reply: keptReply(), rest: knownBefore() };

  async function keptReply(): Promise<KeptReply | undefined> {
    if (previousReplyId === undefined || !goesOn) return undefined;
    try {
      return await inTime(asked, keptReplies.find(tenant, previousReplyId));
    } catch {
      return keptReplies.known(tenant, previousReplyId);
    }
  }

  async function knownBefore(): Promise<KnownBefore> {
    try {
      const all = Promise.all([
        hiddenRecalls.find(tenant, offersRecall ? copiesIn(messages, links) : []),
        foldStore.find(tenant, links),
        summaries?.ready.find(tenant, links) ?? [],
      ]);
      const [foundRecalls, foundFolds, ready] = await inTime(asked, all);
      return { hiddenRecalls: foundRecalls, foldStore: foundFolds, ready };
    } catch (error) {
      if (!LeporelloError.isInstance(error)) throw error;
      return {
        hiddenRecalls: hiddenRecalls.findHere(tenant, offersRecall ? copiesIn(messages, links) : []),
        foldStore: foldStore.findHere(tenant, links),
        ready: [],
        problem: error,
      };
    }
  }
}
