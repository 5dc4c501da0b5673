/**
 * All that the store knows of one request, asked at once: by what the client itself sent, so that nothing waits for anything else. One
 * round trip, wherever the store is.
 */
import { type Copy, copiesIn } from './ghosts.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/kept-reply.ts';
import type { Found } from '../memory/ghosts.ts';
import type { Found as FoundFolds } from '../memory/ledger.ts';
import type { KnownOffer, Opening } from '../memory/recall-offers.ts';
import type { FoundSummary } from '../memory/ready-summaries.ts';
import type { EngineOptions } from './options.ts';

export type LookUp = {
  /** How to go on from the reply that the conversation names, where it is not by that name. */
  readonly reply: Promise<KeptReply | undefined>;
  readonly rest: Promise<KnownBefore>;
};

export type KnownBefore = {
  /** The client's copies of replies for which something was recalled in private, the newest first. */
  readonly ghosts: readonly Found<Copy>[];
  readonly ledger: FoundFolds;
  /** Summaries written ahead for what the conversation begins with, the longest first. */
  readonly ready: readonly FoundSummary[];
  /** Undefined where nothing hangs on it. */
  readonly offer: KnownOffer | undefined;
};

type Asked = {
  readonly options: Pick<EngineOptions, 'ledger' | 'ghosts' | 'keptReplies' | 'recallOffers' | 'summaries'>;
  readonly tenant: string;
  /** Of the prefix chain of the conversation as the client sent it. */
  readonly links: readonly string[];
  /** Whether the provider can be told of another reply to go on from. */
  readonly goesOn: boolean;
  /** Recalls of earlier requests are put back only where the tool they were made with can be offered. */
  readonly offersRecall: boolean;
  /** Undefined where nothing hangs on whether the tool was offered before. */
  readonly opening: Opening | undefined;
};

/** Both promises reject with `store-failed`. */
export function lookUp(asked: Asked, { messages, goesOnFrom }: Conversation): LookUp {
  const { options, tenant, links, goesOn, offersRecall, opening } = asked;
  const reply =
    goesOnFrom !== undefined && goesOn
      ? options.keptReplies.find(tenant, goesOnFrom)
      : Promise.resolve(undefined);
  const rest = knownBefore();
  // Whoever waits for the one may fail before it waits for the other.
  rest.catch(() => undefined);
  return { reply, rest };

  async function knownBefore(): Promise<KnownBefore> {
    const [ghosts, ledger, ready, offer] = await Promise.all([
      offersRecall ? options.ghosts.find(tenant, copiesIn(messages, links)) : [],
      options.ledger.find(tenant, links),
      options.summaries?.ready.find(tenant, links) ?? [],
      opening && options.recallOffers.find(tenant, opening),
    ]);
    return { ghosts, ledger, ready, offer };
  }
}
