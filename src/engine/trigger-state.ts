/** What triggers are told of a request: how large it is, how much room there is, what its tokens cost, and how long nobody asked. */
import type { Conversation } from '../conversation/conversation.ts';
import type { Correction } from '../tokens/calibration.ts';
import type { TriggerState } from '../triggers/trigger.ts';
import { correctedEconomy } from './corrected.ts';
import { deadWeight } from './dead-weight.ts';
import { foldableTokens } from './foldable.ts';
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
  const tokens = correction.correct(start.tokens);
  let fixed: number | undefined;
  return {
    economy: economyOf(standing),
    idleMs: now === undefined ? undefined : idleMs({ conversation: came, ...traces, now }),
    tokens,
    /** Reckoned when asked for, since most requests are far too small for it to matter. */
    get fixed() {
      fixed ??= Math.max(0, Math.round(tokens - correction.slope * foldableTokens(input, start)));
      return fixed;
    },
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
        read: prices.read,
        write: came.writesLong ? longWritePrice(prices) : prices.write,
        minCachedTokens: prices.minCachedTokens,
        ahead: tokensAhead(input),
        keptMs: longest(prices.keptMs, came.keptMs),
        bringsTool: input.recallTool !== undefined && !start.offers,
        candidates: (keepForRequests) => deadWeight(input, start, keepForRequests),
      },
      correction,
    )
  );
}

function tokensAhead({ conversation, counter }: PlanInput): number {
  return conversation.preamble.reduce((sum, block) => sum + counter.block(conversation, block), 0);
}

/**
 * Returns what it costs to write a token that is kept for an hour. Marks that ask for it may stand on the tools alone, and what is behind
 * those costs less then: but a fold that brings the recall tool writes these anew, too, so the higher price holds for all of it.
 */
function longWritePrice({ write, writeLong }: CachePrices): number {
  return writeLong ?? (write > 1 ? Math.max(write, documentedLongWrite) : write);
}

/** The Messages API takes twice the price of input for an entry of an hour, of every model. */
const documentedLongWrite = 2;

/**
 * Tokens kept free: for the reply what the client asks for, but no more than a quarter of the window, so that a fold stays possible;
 * and a twentieth for what the model may recall on the way to it.
 */
export function reservedTokens(conversation: Conversation, window: ModelWindow, recalls: boolean): number {
  const size = window.tokens ?? Number.POSITIVE_INFINITY;
  const reply = window.holdsReply ? Math.min(conversation.maxOutputTokens ?? 1_024, Math.floor(size / 4)) : 0;
  return reply + (recalls ? Math.min(8_000, Math.floor(size / 20)) : 0);
}
