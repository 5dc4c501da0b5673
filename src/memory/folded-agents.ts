/**
 * Which agents had something folded that can be recalled: conversations of theirs are worth offering the recall tool from their first
 * request on. An agent is known by the names of its tools, which are the same in all of its conversations.
 */
import { sha256 } from './digest.ts';
import type { Sealed, Vault } from './vault.ts';
import { encodeRecord } from './versioned-record.ts';

export interface FoldedAgents {
  /** Rejects with `store-failed`. */
  has(tenant: string, toolNames: readonly string[]): Promise<boolean>;
  /** What is to be kept with a fold in a conversation with these tools. */
  recordOf(toolNames: readonly string[]): Sealed;
}

type FoldedAgentsOptions = {
  readonly vault: Pick<Vault, 'getSealedMany'>;
  /** How long after its last fold an agent is known, in milliseconds. Default 30 days. */
  readonly ttlMs?: number | undefined;
};

/** Behind a vault. */
export function createFoldedAgents({
  vault,
  ttlMs = 30 * 24 * 60 * 60 * 1_000,
}: FoldedAgentsOptions): FoldedAgents {
  return {
    async has(tenant, toolNames) {
      const [record] = await vault.getSealedMany(tenant, [keyOf(toolNames)]);
      return record !== undefined;
    },
    recordOf: (toolNames) => ({ keys: [keyOf(toolNames)], content: encodeRecord({}), ttlMs }),
  };
}

/** Names come from outside, and keys are stored in clear. */
function keyOf(toolNames: readonly string[]): string {
  return `agent/${sha256(new TextEncoder().encode(JSON.stringify(toolNames.toSorted())))}`;
}
