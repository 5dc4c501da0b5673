/**
 * Where counts meet what providers reported: triggers, receipts and the room for recalls see corrected tokens, strategies and stubs
 * plain counts. So what was learned may change when a fold is made and how far it goes, but never what it writes.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { type Compression, scaledCompressions } from '../receipts/compression.ts';
import type { FoldStep } from '../receipts/receipt.ts';
import type { Calibration, Correction } from '../tokens/calibration.ts';
import type { Demand, Economy } from '../triggers/trigger.ts';

export type Gauge = {
  readonly correction: Correction;
  /** Takes in what the provider reported for a prompt that was counted as so many tokens. */
  learn(counted: number, reported: number): void;
};

/** Of each tenant by itself: nobody's reports change how another's requests are folded. `links` are those of the prefix chain. */
export function gaugeOf(
  calibration: Calibration,
  tenant: string,
  conversation: Conversation,
  links: readonly string[],
): Gauge {
  const model = `${tenant} ${conversation.model?.slice(0, longestName) ?? ''}`;
  const name = beginningOf(conversation, links);
  return {
    correction: calibration.correctionFor(model, name),
    learn: (counted, reported) => calibration.learn(model, name, { counted, reported }),
  };
}

const longestName = 200;

/**
 * All requests of a conversation begin alike up to the first words of its user. Others that begin so, too, do no harm: what is learned
 * is how reports differ from counts. One whose history its provider keeps cannot be told from others.
 */
export function beginningOf(
  { messages, previousReplyId }: Conversation,
  links: readonly string[],
): string | undefined {
  if (previousReplyId !== undefined) return undefined;
  return links[messages.findIndex(({ role }) => role === 'user') + 1];
}

/** What a trigger asks of tokens, as strategies count them. */
export function demandInCounts(demand: Demand, { countFor, slope }: Correction): Demand {
  const { goal, atMost, newest, minTokens, ...rest } = demand;
  return {
    ...rest,
    goal: goal.unit === 'tokens' ? { unit: 'tokens', target: countFor(goal.target) } : goal,
    atMost: atMost === undefined ? undefined : countFor(atMost),
    ...(minTokens !== undefined && { minTokens: minTokens / slope }),
    ...(newest && { newest: { above: countFor(newest.above), target: countFor(newest.target) } }),
  };
}

export function correctedEconomy(economy: Economy, { slope }: Correction): Economy {
  if (slope === 1) return economy;
  return {
    ...economy,
    ahead: economy.ahead === undefined ? undefined : economy.ahead * slope,
    candidates: (keepForRequests) =>
      economy.candidates(keepForRequests).map((one) => ({
        ...one,
        tokens: one.tokens * slope,
        behind: one.behind * slope,
      })),
  };
}

/** What those of these edits come to that compress. */
export function compressionsOf(
  edits: readonly Edit[],
  { compressions }: { readonly compressions: ReadonlyMap<string, Compression> },
  { slope }: Correction,
): readonly Compression[] {
  return scaledCompressions(
    edits.flatMap((edit) => compressions.get(textIn(edit)) ?? []),
    slope,
  );
}

function textIn(edit: Edit): string {
  return edit.kind === 'insert-message' ? edit.text : edit.kind === 'replace-text' ? edit.stub : '';
}

export function correctedSteps(steps: readonly FoldStep[], { slope }: Correction): readonly FoldStep[] {
  return steps.map((step) => ({ ...step, tokensSaved: Math.round(step.tokensSaved * slope) }));
}
