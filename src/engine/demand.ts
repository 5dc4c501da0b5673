/** Decides whether a request must be folded, and computes the state that triggers look at: tokens, window, prices and idle time. */
import type { Overflow } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { runInSlices, runSteps } from '../conversation/steps.ts';
import type { Edit } from '../conversation/edit.ts';
import { finishedSteps, idleContent, type IdleSteps, mayPay } from './idle-content.ts';
import type { Draft, PlanInput } from './plan.ts';
import { foldableTokens } from './protect.ts';
import type { CachePrices, FoundLastRequest, ModelWindow, Refusal } from './types.ts';
import type { Compression, FoldStep } from '../receipts/receipt.ts';
import type { FoundFolds } from '../store/folds.ts';
import type { Calibration, CalibrationKeys, Correction } from '../tokens/calibration.ts';
import type {
  Demand,
  Economy,
  EvictionCandidate,
  KeepForRequests,
  Trigger,
  TriggerState,
} from '../triggers/trigger.ts';
import { newestGoal } from '../triggers/limits.ts';

/**
 * Returns what a new fold must achieve. Undefined when none is needed, or when the same request was sent before and must be replayed. A
 * refusal by the provider overrules that.
 */
export function demandFor(
  triggers: readonly Trigger[],
  state: TriggerState,
  { refusal, sentAs }: { readonly refusal: Refusal | undefined; readonly sentAs: FoundFolds['sentAs'] },
): Demand | undefined {
  if (refusal?.reason === 'too long') return overflowDemand(tokensThatFit(refusal.overflow, state));
  return mustReplay(sentAs, state) ? undefined : firstDemand(triggers, state);
}

/** Returns the demand of the first trigger that fires: the order of the list is the priority. */
export function firstDemand(triggers: readonly Trigger[], state: TriggerState): Demand | undefined {
  for (const trigger of triggers) {
    const demand = trigger.demand(state);
    if (demand !== undefined) return demand;
  }
  return undefined;
}

/** True when this very request was sent before to a model with the same or a smaller limit, so that it must be sent the same way again. */
export function mustReplay(sentAs: FoundFolds['sentAs'], state: TriggerState): boolean {
  return sentAs !== undefined && (sentAs.limit ?? 0) <= (limitOf(state) ?? Number.POSITIVE_INFINITY);
}

/** Returns the largest number of tokens that the request may have; undefined when the window is unknown. */
export function limitOf({ window, reserved }: TriggerState): number | undefined {
  return window === undefined ? undefined : window - reserved;
}

/** The share of a refused request that is tried next when the provider names no limit. */
const retryShare = 0.75;

/**
 * Estimates the tokens that the provider will accept after it refused the request: the limit that it named, converted to our counts by
 * the prompt length that it named. Without a limit, a quarter less than the refused request.
 */
function tokensThatFit(overflow: Overflow, { tokens, reserved }: TriggerState): number {
  const next = Math.floor(tokens * retryShare);
  if (overflow.unit === 'bytes' || overflow.limit === undefined) return next;
  const fits = Math.max(0, overflow.limit - reserved);
  if (overflow.prompt === undefined) return fits < tokens ? fits : next;
  // The refused request may have been another draft of this one, so the ratio is limited.
  const ratio = Math.min(Math.max(tokens / overflow.prompt, 0.25), 4);
  const converted = Math.floor(fits * ratio);
  return converted < tokens ? converted : next;
}

/** Aims well below the provider's limit, so that the next turn does not overflow again. */
function overflowDemand(atMost: number): Demand {
  return {
    trigger: 'overflow',
    goal: { unit: 'tokens', target: Math.floor(atMost * 0.8) },
    newest: newestGoal(atMost),
    atMost,
    force: true,
  };
}

// The state of a request, which triggers look at.

/** Everything that the state of triggers is computed from. */
type TriggerInputs = {
  readonly clientConversation: Conversation;
  /** The input that the draft is made from. */
  readonly input: PlanInput;
  /** The request under the fold that was found. */
  readonly start: Draft;
  readonly window: ModelWindow;
  /** Undefined when they are unknown. */
  readonly prices: CachePrices | undefined;
  readonly correction: Correction;
  readonly idle: Pick<IdleInputs, 'last' | 'sent'>;
  /** Milliseconds since the epoch; undefined without a clock. */
  readonly now: number | undefined;
};

/**
 * The state of a request. While `isDeciding`, reading something that takes a pass over a long conversation throws `NotMeasured` until
 * `measure` was called: see `withMeasured`.
 */
export type MeasuredState = TriggerState & { isDeciding: boolean; measure(): Promise<void> };

export class NotMeasured extends Error {}

/** Runs a decision on the state. If it needs something that was not measured, that is measured, and the decision is made again. */
export async function withMeasured<T>(state: MeasuredState, decide: () => T): Promise<T> {
  for (;;) {
    state.isDeciding = true;
    try {
      return decide();
    } catch (error) {
      if (!(error instanceof NotMeasured)) throw error;
    } finally {
      state.isDeciding = false;
    }
    await state.measure();
  }
}

/** The idle steps of a conversation of more messages are found in steps. */
const manyMessages = 2_000;

/** Computes the state that triggers look at. */
export function triggerState(inputs: TriggerInputs): MeasuredState {
  return new RequestState(inputs);
}

/**
 * The state of one request. It is a class because of `fixed`: V8 makes a hidden class for each object literal with a getter of its own, which lives, with
 * all that the getter uses, until a full garbage collection.
 */
class RequestState implements MeasuredState {
  readonly economy: TriggerState['economy'];
  readonly idleMs: number | undefined;
  readonly tokens: number;
  readonly bytes: number;
  readonly window: number | undefined;
  readonly reserved: number;
  readonly messages: number;
  isDeciding = false;
  readonly #inputs: TriggerInputs;
  #fixed: number | undefined;
  #steps: IdleSteps | undefined;
  #missing: 'fixed' | 'steps' = 'fixed';

  constructor(inputs: TriggerInputs) {
    const { clientConversation, input, start, window, correction, idle, now } = inputs;
    this.#inputs = inputs;
    this.economy = economyOf(inputs, (keepForRequests) => this.#candidates(keepForRequests));
    this.idleMs = now === undefined ? undefined : idleMs({ clientConversation, ...idle, now });
    this.tokens = correction.correct(start.tokens);
    this.bytes = start.body.length;
    this.window = window.tokens;
    this.reserved = reservedTokens(input.conversation, window, input.recallTool !== undefined);
    this.messages = start.messages;
  }

  /** Computed on demand, because most requests are far too small for it to matter. */
  get fixed(): number {
    if (this.#fixed !== undefined) return this.#fixed;
    this.#need('fixed');
    const { input, start } = this.#inputs;
    return (this.#fixed = this.#fixedWithout(runSteps(foldableTokens(input, start))));
  }

  async measure(): Promise<void> {
    const { input, start } = this.#inputs;
    if (this.#missing === 'fixed')
      this.#fixed = this.#fixedWithout(await runInSlices(foldableTokens(input, start), input.slices));
    else this.#steps = await runInSlices(finishedSteps(input, start), input.slices);
  }

  #candidates(keepForRequests: KeepForRequests): readonly EvictionCandidate[] {
    const { input, start } = this.#inputs;
    if (this.#steps === undefined && input.conversation.messages.length > manyMessages) this.#need('steps');
    return idleContent(
      input,
      start,
      keepForRequests,
      (this.#steps ??= runSteps(finishedSteps(input, start))),
    );
  }

  #need(what: 'fixed' | 'steps'): void {
    this.#missing = what;
    if (this.isDeciding) throw new NotMeasured();
  }

  #fixedWithout(foldable: number): number {
    return Math.max(0, Math.round(this.tokens - this.#inputs.correction.slope * foldable));
  }
}

function economyOf(
  { clientConversation, input, start, prices, correction }: TriggerInputs,
  candidates: Economy['candidates'],
): TriggerState['economy'] {
  return (
    prices &&
    correctedEconomy(
      {
        read: prices.read,
        write: clientConversation.writesLong ? longWritePrice(prices) : prices.write,
        minCachedTokens: prices.minCachedTokens,
        ahead: preambleTokens(input),
        keptMs: longer(prices.keptMs, clientConversation.keptMs),
        bringsTool: input.recallTool !== undefined && !start.offers,
        fetchedAgain: stepsFetchedAgain(input),
        candidates,
        mayPay: (keepForRequests, pays) => mayPay(input, start, keepForRequests, pays),
      },
      correction,
    )
  );
}

/** Counts the results that were fetched again and are still sent, by what the fold had evicted. */
function stepsFetchedAgain({ fetchedAgain }: PlanInput): Economy['fetchedAgain'] {
  if (!fetchedAgain) return undefined;
  const ofTexts = fetchedAgain.filter(
    ({ strategy }) => strategy === 'offload-results' || strategy === 'stub-arguments',
  );
  return { texts: ofTexts.length, messages: fetchedAgain.length - ofTexts.length };
}

function preambleTokens({ conversation, counter }: PlanInput): number {
  return conversation.preamble.reduce((sum, block) => sum + counter.block(conversation, block), 0);
}

/**
 * Returns the price of writing a token that is cached for an hour. A client may mark only its tools that way, and the messages after them
 * then cost less. But a fold that adds the recall tool rewrites the tools, too, so the higher price is used for everything.
 */
function longWritePrice({ write, writeLong }: CachePrices): number {
  return writeLong ?? (write > 1 ? Math.max(write, documentedLongWrite) : write);
}

/** The Messages API charges twice the input price for an entry of an hour, with every model. */
const documentedLongWrite = 2;

/**
 * Returns the tokens to keep free: for the reply, as many as the client asks for, up to a quarter of the window, so that a fold stays
 * possible; and for recalls a twentieth of the window.
 */
export function reservedTokens(conversation: Conversation, window: ModelWindow, recalls: boolean): number {
  const size = window.tokens ?? Number.POSITIVE_INFINITY;
  const reply = window.holdsReply ? Math.min(conversation.maxOutputTokens ?? 1_024, Math.floor(size / 4)) : 0;
  return reply + (recalls ? Math.min(8_000, Math.floor(size / 20)) : 0);
}

// Idle time. It tells whether the provider may have dropped the conversation from its cache. This process remembers its last request, and the fold
// store remembers for a day when any process sent one. Another gateway may have sent a request that is not stored yet; but each request leaves a
// reply in the history, so with more than one reply after the last known request, the idle time is unknown.

type IdleInputs = {
  readonly clientConversation: Conversation;
  /** The last request that this process sent. */
  readonly last: FoundLastRequest | undefined;
  /** The last request that any process sent. */
  readonly sent: FoundFolds['lastSent'];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** Returns the milliseconds since the conversation's last request; undefined when they are unknown. */
function idleMs({ clientConversation: conversation, last, sent, now }: IdleInputs): number | undefined {
  // If the provider keeps the history, requests of different conversations begin alike.
  if (conversation.previousReplyId !== undefined) return undefined;
  const times = [
    last && repliesFrom(conversation, last.matched) <= 1 ? last.request.at : undefined,
    sent && repliesFrom(conversation, sent.matched) <= 1 ? sent.at : undefined,
  ].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(0, now - Math.max(...times));
}

/** Returns the longer of two times, such as the model's usual cache time and the one that the client asks for. */
function longer(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** Counts the replies from a message on. Some formats make several messages of one reply, which count once. */
function repliesFrom({ messages }: Conversation, from: number): number {
  const isReply = (at: number) => messages[at]?.role === 'assistant';
  return messages.slice(from).filter(({ index }) => isReply(index) && (index === from || !isReply(index - 1)))
    .length;
}

// Calibrated counts. Triggers, receipts and the token limit of recalls use counts that are calibrated by the usage that providers report; strategies
// and stubs use plain counts. So usage reports may change when a fold is made and how far it goes, but never its text.

export type Calibrator = {
  readonly correction: Correction;
  /** Learns from the tokens that the provider reported for a prompt that was counted as `counted`. */
  learn(counted: number, reported: number): void;
};

/** Returns the calibrator of a conversation. Each tenant has its own: its reports never change how another's requests are folded. */
export function calibratorFor(
  calibration: Calibration,
  tenant: string,
  conversation: Conversation,
  clientLinks: readonly string[],
): Calibrator {
  const { model, conversation: name } = calibrationKeys(tenant, conversation, clientLinks);
  return {
    correction: calibration.correctionFor(model, name),
    learn: (counted, reported) => calibration.learn(model, name, { counted, reported }),
  };
}

export function calibrationKeys(
  tenant: string,
  conversation: Conversation,
  clientLinks: readonly string[],
): CalibrationKeys {
  const model = `${tenant} ${conversation.model?.slice(0, maxModelNameLength) ?? ''}`;
  return { model, conversation: beginningOf(conversation, clientLinks) };
}

const maxModelNameLength = 200;

/**
 * Returns the prefix hash through the first user message, which all requests of a conversation share. Other conversations may share it, too:
 * they only share the learned difference between counts and reports. Undefined when the provider keeps the history.
 */
export function beginningOf(
  { messages, previousReplyId }: Conversation,
  clientLinks: readonly string[],
): string | undefined {
  if (previousReplyId !== undefined) return undefined;
  return clientLinks[messages.findIndex(({ role }) => role === 'user') + 1];
}

/** Converts the tokens of a demand to plain counts, which strategies use. */
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

/** Converts plain counts to calibrated ones, which triggers use. */
function correctedEconomy(economy: Economy, { slope }: Correction): Economy {
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
    mayPay:
      economy.mayPay &&
      ((keepForRequests, pays) =>
        economy.mayPay!(keepForRequests, ({ rent, tokens, behind }) =>
          pays({ rent: rent * slope, tokens: tokens * slope, behind: behind * slope }),
        )),
  };
}

/** Returns the compressions that these edits apply, in calibrated tokens; their ratios stay. */
export function compressionsOf(
  edits: readonly Edit[],
  { compressions }: { readonly compressions: ReadonlyMap<string, Compression> },
  { slope }: Correction,
): readonly Compression[] {
  if (compressions.size === 0) return [];
  return edits.flatMap((edit) => {
    const one = compressions.get(textIn(edit));
    if (!one) return [];
    const { tokensBefore, tokensAfter } = one;
    return {
      ...one,
      tokensBefore: Math.round(tokensBefore * slope),
      tokensAfter: Math.round(tokensAfter * slope),
    };
  });
}

function textIn(edit: Edit): string {
  return edit.kind === 'insert-message' ? edit.text : edit.kind === 'replace-text' ? edit.stub : '';
}

/** Converts the tokens that each step saved to calibrated ones. */
export function correctedSteps(steps: readonly FoldStep[], { slope }: Correction): readonly FoldStep[] {
  return steps.map((step) => ({ ...step, tokensSaved: Math.round(step.tokensSaved * slope) }));
}
