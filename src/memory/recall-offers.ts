/**
 * To whom the recall tool is worth offering: agents that had something folded, and conversations that were offered it from their beginning
 * on, or not. An agent is known by the names of its tools, which are the same in all of its conversations; a conversation by its agent and
 * by how it begins, which is the same in all of its requests and branches.
 */
import { sha256 } from './digest.ts';
import type { Sealed, Vault } from './vault.ts';
import { decodeRecord, encodeRecord } from './versioned-record.ts';

/** How a conversation begins: its agent's tools, and the link behind the first words of its user. */
export type Opening = { readonly toolNames: readonly string[]; readonly beginning: string };

export type KnownOffer = {
  readonly opening: Opening;
  /** Whether something was folded in a conversation of this agent. */
  readonly isAgentFolded: boolean;
  /** Whether this conversation was offered it from the beginning on; undefined where nobody knows (any more). */
  readonly isOffered: boolean | undefined;
};

export interface RecallOffers {
  /** Rejects with `store-failed`. */
  find(tenant: string, opening: Opening): Promise<KnownOffer>;
  /** What is to be kept with each request. */
  recordOf(opening: Opening, isOffered: boolean): Sealed;
  /** What is to be kept with a fold. */
  agentRecordOf(opening: Opening): Sealed;
}

type RecallOffersOptions = {
  readonly vault: Pick<Vault, 'getSealedMany'>;
  /** How long after its last fold an agent is known, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/**
 * How long after its last request a conversation goes on as it began. Longer than most caches live; and less than a day, so that what begins
 * with the same words every night need not go on as it began the first time.
 */
const conversationMs = 12 * 60 * 60 * 1_000;

/** Behind a vault. */
export function createRecallOffers({
  vault,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
}: RecallOffersOptions): RecallOffers {
  return {
    async find(tenant, opening) {
      const keys = [agentKey(opening), conversationKey(opening)];
      const [agent, conversation] = await vault.getSealedMany(tenant, keys);
      const known =
        conversation && (decodeRecord(conversation, 'An offer') as { isOffered: boolean } | undefined);
      return { opening, isAgentFolded: agent !== undefined, isOffered: known?.isOffered };
    },
    recordOf: (opening, isOffered) => ({
      keys: [conversationKey(opening)],
      content: encodeRecord({ isOffered }),
      ttlMs: conversationMs,
    }),
    agentRecordOf: (opening) => ({ keys: [agentKey(opening)], content: encodeRecord({}), ttlMs }),
  };
}

function agentKey({ toolNames }: Opening): string {
  return `agent/${digestOf(toolNames.toSorted())}`;
}

function conversationKey({ toolNames, beginning }: Opening): string {
  return `offer/${digestOf([beginning, ...toolNames.toSorted()])}`;
}

/** Names come from outside, and keys are stored in clear. */
function digestOf(names: readonly string[]): string {
  return sha256(new TextEncoder().encode(JSON.stringify(names)));
}
