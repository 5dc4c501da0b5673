/** What triggers are told of a request: how large it is, how much room there is, what its tokens cost, and how long nobody asked. */
import type { Conversation } from '../conversation/conversation.ts';
import type { Correction } from '../tokens/correction.ts';
import type { TriggerState } from '../triggers/trigger.ts';
import { correctedEconomy } from './corrected.ts';
import { deadWeight } from './dead-weight.ts';
import { idleMs, longest, type Traces } from './idle.ts';
import type { CachePrices, ModelWindow } from './options.ts';
import type { Draft, PlanInput } from './plan.ts';

export type Standing = {
  /** As the client sent it. */
  readonly came: Conversation;
  /** What the draft is made from. */
  readonly input: PlanInput;
  /** The request under the fold that was found. */
  readonly start: Draft;
  readonly window: ModelWindow;
  /** Undefined where nobody knows them. */
  readonly prices: CachePrices | undefined;
  readonly correction: Correction;
  readonly traces: Pick<Traces, 'last' | 'sent'>;
  /** Milliseconds since the epoch; undefined where time stands still. */
  readonly now: number | undefined;
};

export function triggerState(standing: Standing): TriggerState {
  const { came, input, start, window, correction, traces, now } = standing;
  return {
    economy: economyOf(standing),
    idleMs: now === undefined ? undefined : idleMs({ conversation: came, ...traces, now }),
    tokens: correction.correct(start.tokens),
    window: window.tokens,
    reserved: reservedTokens(input.conversation, window, input.recallTool !== undefined),
    messages: start.messages,
  };
}

function economyOf({ came, input, start, prices, correction }: Standing): TriggerState['economy'] {
  return (
    prices &&
    correctedEconomy(
      {
        ...prices,
        keptMs: longest(prices.keptMs, came.keptMs),
        bringsTool: input.recallTool !== undefined && !start.offers,
        dead: (usedFor) => deadWeight(input, start, usedFor),
      },
      correction,
    )
  );
}

/**
 * Tokens kept free: for the reply what the client asks for, but no more than a quarter of the window, so that a fold stays possible;
 * and a twentieth for what the model may recall on the way to it.
 */
export function reservedTokens(conversation: Conversation, window: ModelWindow, recalls: boolean): number {
  const size = window.tokens ?? Number.POSITIVE_INFINITY;
  const reply = window.holdsReply ? Math.min(conversation.maxOutputTokens ?? 1_024, Math.floor(size / 4)) : 0;
  return reply + (recalls ? Math.min(8_000, Math.floor(size / 20)) : 0);
}
