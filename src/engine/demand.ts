/** What triggers are told of a request: how large it is, how much room there is, what its tokens cost, and how long nobody asked. */
import type { Overflow } from '../codecs/provider-errors.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { deadWeight, foldableTokens } from './idle-content.ts';
import type { Draft, PlanInput } from './plan.ts';
import type { Found } from './send.ts';
import type { CachePrices, ModelWindow, Refusal } from './types.ts';
import { type Compression, scaledCompressions } from '../receipts/compression.ts';
import type { FoldStep } from '../receipts/receipt.ts';
import type { FoundFolds as Recorded, FoundFolds } from '../store/fold-store.ts';
import type { Calibration, Correction } from '../tokens/calibration.ts';
import {
  type Demand,
  type Economy,
  type Trigger,
  type TriggerState,
  firstDemand,
} from '../triggers/trigger.ts';
import { newestGoal } from '../triggers/window-fraction.ts';

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

// Idle time. It tells whether the provider may have dropped the conversation from its cache. This process remembers what it sent last, and the fold
// store holds for a day when any process did. Another gateway may have sent something that is not stored yet; but each request leaves a reply in
// the history, so with more than one reply behind the known request, the idle time is unknown.

export type Traces = {
  /** As the client sent it. */
  readonly conversation: Conversation;
  readonly last: Found | undefined;
  readonly sent: Recorded['lastSent'];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** Milliseconds; undefined where nobody knows. */
export function idleMs({ conversation, last, sent, now }: Traces): number | undefined {
  // Where the provider keeps the history, a request begins like those of other conversations.
  if (conversation.previousReplyId !== undefined) return undefined;
  const times = [
    last && repliesFrom(conversation, last.matched) <= 1 ? last.request.at : undefined,
    sent && repliesFrom(conversation, sent.matched) <= 1 ? sent.at : undefined,
  ].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(0, now - Math.max(...times));
}

/** Of what the model's prompts are kept for, and what the client asks for. */
export function longest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** Some formats make several messages of one reply. */
function repliesFrom({ messages }: Conversation, from: number): number {
  const isReply = (at: number) => messages[at]?.role === 'assistant';
  return messages.slice(from).filter(({ index }) => isReply(index) && (index === from || !isReply(index - 1)))
    .length;
}

// Corrected counts. Triggers, receipts and the room for recalls use counts that are corrected by what providers reported; strategies and stubs use
// plain counts. So a report may change when a fold is made and how far it goes, but never what it writes.

export type Calibrator = {
  readonly correction: Correction;
  /** Takes in what the provider reported for a prompt that was counted as so many tokens. */
  learn(counted: number, reported: number): void;
};

/** Of each tenant by itself: nobody's reports change how another's requests are folded. `links` are those of the prefix chain. */
export function calibratorFor(
  calibration: Calibration,
  tenant: string,
  conversation: Conversation,
  links: readonly string[],
): Calibrator {
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

// The decision to fold.

/**
 * Undefined where it goes out with what was found. What was sent before is sent so again, whatever was learned or went by since; but not
 * to a model that takes less (`settled`). A refusal overrules that.
 */
export function demandFor(
  triggers: readonly Trigger[],
  state: TriggerState,
  { refusal, sentAs }: { readonly refusal: Refusal | undefined; readonly sentAs: FoundFolds['sentAs'] },
): Demand | undefined {
  if (refusal?.reason === 'too long') return overflowDemand(tokensThatFit(refusal.overflow, state));
  return isSettled(sentAs, state) ? undefined : firstDemand(triggers, state);
}

/** Whether this very request was sent before, to a model that took no more than this one. */
export function isSettled(sentAs: FoundFolds['sentAs'], state: TriggerState): boolean {
  return sentAs !== undefined && (sentAs.limit ?? 0) <= (limitOf(state) ?? Number.POSITIVE_INFINITY);
}

/** Tokens that the request may have; undefined where nobody knows the window. */
export function limitOf({ window, reserved }: TriggerState): number | undefined {
  return window === undefined ? undefined : window - reserved;
}

/** Share of a refused request that is tried next when the provider names no limit. */
const nextTry = 0.75;

/**
 * Tokens that the provider will take after it refused the request: the limit that it names, converted into our counts by the prompt
 * length that it names; without a limit a quarter less than was refused.
 */
function tokensThatFit(overflow: Overflow, { tokens, reserved }: TriggerState): number {
  const next = Math.floor(tokens * nextTry);
  if (overflow.unit === 'bytes' || overflow.limit === undefined) return next;
  const fits = Math.max(0, overflow.limit - reserved);
  if (overflow.prompt === undefined) return fits < tokens ? fits : next;
  // The request that was refused may be another draft of this one, so an unlikely ratio is not believed.
  const ratio = Math.min(Math.max(tokens / overflow.prompt, 0.25), 4);
  const converted = Math.floor(fits * ratio);
  return converted < tokens ? converted : next;
}

/** Some way below what the provider takes, so that the next turn does not overflow again. */
function overflowDemand(atMost: number): Demand {
  return {
    trigger: 'overflow',
    goal: { unit: 'tokens', target: Math.floor(atMost * 0.8) },
    newest: newestGoal(atMost),
    atMost,
    force: true,
  };
}
