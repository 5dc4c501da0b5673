/**
 * Restores the history of a request: loads everything that the store has for it in one round trip, puts hidden recalls back, and replays
 * the newest fold.
 */
import type { Codec, PlacedHiddenRecall, ReadContext } from '../codecs/codec.ts';
import type { Conversation, KeptReply } from '../conversation/conversation.ts';
import { type Calibrator, type MeasuredState, beginningOf, calibratorFor, triggerState } from './demand.ts';
import { type Draft, type PlanInput, countInSlices } from './plan.ts';
import { foldsInForce, isOfferedAlways, newProblems, toolToOffer } from './protect.ts';
import { withFetchedAgain } from './at-work.ts';
import { noteInView } from './in-view.ts';
import { preambleOf } from './finish.ts';
import { shrinkingOf } from './shrinks.ts';
import { type Slices, type Steps, nextTurn, runInSlices } from '../conversation/steps.ts';
import { pairInSteps } from '../conversation/turns.ts';
import {
  type FoldMemory,
  type EngineState,
  clientLinksOf,
  foldFor,
  foldMemory,
  loadLearned,
  planInputFor,
  referenceMemoFor,
  replayFold,
  windowKey,
} from './state.ts';
import type { CachePrices, EngineOptions, EngineRequest, ModelWindow } from './types.ts';
import { maxTimerMs } from '../checks.ts';
import { LeporelloError } from '../errors.ts';
import { withResolvers } from '../es2024.ts';
import type { FoundFold, FoundFolds } from '../store/folds.ts';
import type { FoundRecalls, Reply } from '../store/hidden-recalls.ts';
import type { FoundSummary } from '../store/ready-summaries.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';

type PendingLookUp = {
  /** How to continue from the reply that the conversation names, if the provider knows it by another name. */
  readonly reply: Promise<KeptReply | undefined>;
  readonly rest: Promise<StoredState>;
};

export type StoredState = {
  /** Hidden recalls, each with the client's copy of the reply that it belongs to; the newest first. */
  readonly hiddenRecalls: readonly FoundRecalls<ReplyCopy>[];
  readonly foundFolds: FoundFolds;
  /** Summaries that were written ahead for prefixes of the conversation, the longest first. */
  readonly ready: readonly FoundSummary[];
  /** Set when the store failed or did not answer in time. Everything else then comes from the memory of this process. */
  readonly problem?: LeporelloError | undefined;
};

type LookUpInputs = Pick<EngineRequest, 'leftMs'> & {
  readonly options: Pick<EngineOptions, 'foldStore' | 'hiddenRecalls' | 'keptReplies' | 'summaries'>;
  readonly tenant: string;
  /** The prefix hashes of the conversation as the client sent it. */
  readonly clientLinks: readonly string[];
  /** True when the codec can name another reply to continue from. */
  readonly canContinueReply: boolean;
  /** True when the recall tool can be offered. Hidden recalls are put back only then. */
  readonly offersRecall: boolean;
  /** Settles when it is known what another thread has learned. */
  readonly learned: Promise<void> | undefined;
};

/** Loads the stored state. Neither promise rejects: when the store fails, they resolve with what this process remembers. */
function lookUp(inputs: LookUpInputs, { messages, previousReplyId }: Conversation): PendingLookUp {
  const { options, tenant, clientLinks, canContinueReply, offersRecall } = inputs;
  const { foldStore, hiddenRecalls, keptReplies, summaries } = options;
  return { reply: keptReply(), rest: storedState() };

  async function keptReply(): Promise<KeptReply | undefined> {
    if (previousReplyId === undefined || !canContinueReply) return undefined;
    try {
      return await inTime(inputs, keptReplies.find(tenant, previousReplyId));
    } catch {
      return keptReplies.known(tenant, previousReplyId);
    }
  }

  async function storedState(): Promise<StoredState> {
    try {
      const folds = foldStore.find(tenant, clientLinks);
      if (messages.length > manyMessages) {
        folds.catch(() => undefined);
        await nextTurn();
      }
      const all = Promise.all([
        hiddenRecalls.find(tenant, offersRecall ? copiesIn(messages, clientLinks) : []),
        folds,
        summaries?.ready.find(tenant, clientLinks) ?? [],
        inputs.learned,
      ]);
      const [foundRecalls, foundFolds, ready] = await inTime(inputs, all);
      return { hiddenRecalls: foundRecalls, foundFolds, ready };
    } catch (error) {
      if (!LeporelloError.isInstance(error)) throw error;
      return {
        hiddenRecalls: hiddenRecalls.findHere(tenant, offersRecall ? copiesIn(messages, clientLinks) : []),
        foundFolds: foldStore.findHere(tenant, clientLinks),
        ready: [],
        problem: error,
      };
    }
  }
}

/** From this number of messages on, each call of a store, and finding what stays in view, has a turn of the event loop of its own: each takes long. */
const manyMessages = 10_000;

/** Starts to load everything that the store has for a request. */
export function lookUpIn(
  engine: EngineState,
  request: EngineRequest,
  clientConversation: Conversation,
  clientLinks: readonly string[],
): PendingLookUp {
  const { options } = engine;
  const { codec, tenant, leftMs } = request;
  const offersRecall = toolToOffer(options, clientConversation) !== undefined;
  const canContinueReply = codec.continueReply !== undefined;
  const learned = loadLearned(engine, request, clientConversation, clientLinks);
  return lookUp(
    { options, tenant, clientLinks, canContinueReply, offersRecall, learned, ...(leftMs && { leftMs }) },
    clientConversation,
  );
}

// Hidden recalls. They are put back where they happened, in the client's copies of the replies. Every later step sees the full conversation.

type HiddenRecallRequest = { readonly codec: Codec; readonly reading: ReadContext };

/**
 * Puts hidden recalls back. Those that would make the conversation invalid are left out. `added`: how many messages the conversation has
 * in front of the client's own.
 */
function withHiddenRecalls(
  request: HiddenRecallRequest,
  conversation: Conversation,
  found: readonly FoundRecalls<ReplyCopy>[],
  added = 0,
): Conversation {
  if (found.length === 0) return conversation;
  const hiddenRecalls = found
    .map(({ reply, turns }) => ({ at: reply.at + added, candidates: turns }))
    .toReversed();
  const fullConversation = inserted(request, conversation, hiddenRecalls);
  return (
    fullConversation ??
    inserted(request, conversation, validOnes(request, conversation, hiddenRecalls)) ??
    conversation
  );
}

/** A client's copy of a reply, and the index of its first message. */
type ReplyCopy = Reply & { readonly at: number };

/** Yields the client's copies of replies, the newest first. A copy is a run of assistant messages that does not begin the conversation. */
function* copiesIn(messages: Conversation['messages'], clientLinks: readonly string[]): Generator<ReplyCopy> {
  const isReply = (index: number) => messages[index]?.role === 'assistant';
  for (let end = messages.length; end > 1; end--) {
    if (!isReply(end - 1)) continue;
    let at = end - 1;
    while (at > 0 && isReply(at - 1)) at--;
    if (at > 0) yield { at, before: clientLinks[at]!, through: clientLinks[end]! };
    end = at;
  }
}

/** Inserts all of these hidden recalls. Undefined when the result breaks a rule that the client's own conversation keeps. */
function inserted(
  { codec, reading }: HiddenRecallRequest,
  conversation: Conversation,
  hiddenRecalls: readonly PlacedHiddenRecall[],
): Conversation | undefined {
  const body = codec.insertHiddenRecalls(conversation, hiddenRecalls);
  if (body === conversation.body) return conversation;
  const fullConversation = codec.read(body, reading);
  const problems = newProblems(codec.rules, conversation, fullConversation);
  return problems.length > 0 ? undefined : fullConversation;
}

/** Finds, by halving the list, the hidden recalls that can be put back when not all can. Usually only one cannot. */
function validOnes(
  request: HiddenRecallRequest,
  conversation: Conversation,
  hiddenRecalls: readonly PlacedHiddenRecall[],
): readonly PlacedHiddenRecall[] {
  if (hiddenRecalls.length <= 1) return [];
  const middle = Math.floor(hiddenRecalls.length / 2);
  return [hiddenRecalls.slice(0, middle), hiddenRecalls.slice(middle)].flatMap((half) =>
    inserted(request, conversation, half) ? half : validOnes(request, conversation, half),
  );
}

// Replies that the provider keeps. The client knows such a reply by one name; after a hidden recall, the provider may know it by another.

/** Names the reply to continue from as the provider knows it. Without a kept reply, the conversation stays as it is. */
export function withKeptReply(
  codec: Codec,
  reading: ReadContext,
  conversation: Conversation,
  kept: KeptReply | undefined,
): Conversation {
  return kept && codec.continueReply
    ? codec.read(codec.continueReply(conversation, kept), reading)
    : conversation;
}

// Opening a request: restores its hidden recalls and its fold, and counts everything that triggers need.

/** A request that was read, with the stored state for it. */
export type IncomingRequest = {
  /** The conversation as the client sent it. */
  readonly clientConversation: Conversation;
  /** The same, with the name that the provider knows for the reply that it continues. */
  readonly conversation: Conversation;
  /** The prefix hashes of the conversation as the client sent it. */
  readonly clientLinks: readonly string[];
  readonly stored: StoredState;
};

/** A request under the fold that was found for it, with everything that the decision to fold depends on. */
export type OpenedRequest = {
  /** The conversation with hidden recalls. */
  readonly fullConversation: Conversation;
  readonly memory: FoldMemory;
  readonly found: FoundFold | undefined;
  /** True when the provider refused our edits in this conversation. */
  readonly foldingDisabled: boolean;
  /** When it refused them, in milliseconds since the epoch; undefined when it did not, or when the time is unknown. */
  readonly foldingDisabledSince: number | undefined;
  readonly input: PlanInput;
  /** The full conversation under the fold that was found, or under no edits. */
  readonly start: Draft;
  readonly calibrator: Calibrator;
  readonly tokenCounter: TokenCounter;
  readonly window: ModelWindow;
  readonly prices: CachePrices | undefined;
  readonly state: MeasuredState;
  /** Tokens of the request without any edit, by the counter. */
  readonly before: number;
  /** Whether the previous request offered the recall tool; undefined when this process did not send it, or when it had other tools. */
  readonly wasOffered: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number | undefined;
};

/** Restores the stored history of a request, and counts its tokens. */
export async function openRequest(
  engine: EngineState,
  request: EngineRequest,
  incoming: IncomingRequest,
  slices?: Slices,
): Promise<OpenedRequest> {
  const { options } = engine;
  const { conversation, clientConversation, stored } = incoming;
  const tokenCounter = await options.counterFor(conversation.model);
  const window = smallerWindow(
    await options.windowFor(conversation.model),
    engine.learned.windows.find(windowKey(request, conversation)),
  );
  const now = options.clock?.();
  const { fullConversation, memory, found } = withStoredState(engine, request, incoming, now);
  const { clientLinks, fullLinks } = memory;
  const { foldingDisabled = false, foldingDisabledSince } = found?.fold ?? {};
  const last = engine.learned.lastSent.find(clientLinks);
  const wasOffered = last?.request.preamble === preambleOf(conversation) ? last.request.offers : undefined;
  // Hidden recalls that were put back are calls of the tool, so it must be offered.
  const isOffered =
    !foldingDisabled &&
    (isOfferedAlways(options, request.codec, conversation) || fullConversation !== conversation);
  const referenceMemo = referenceMemoFor(engine, request, fullConversation);
  const shrinking = shrinkingOf(
    { ...request, settings: options.shrinks, referenceMemo },
    fullConversation,
    found?.fold,
  );
  await runInSlices(pairInSteps(fullConversation), slices);
  const ready = stored.ready.find(({ upTo, link }) => fullLinks[upTo] === link);
  const notReady = () => engine.summaryNotes.find(memory.tenant, fullLinks) ?? 'none was begun in time';
  const read: PlanInput = {
    ...planInputFor(engine, request, fullConversation, tokenCounter, window.tokens),
    isOffered,
    shrinking,
    slices,
    ready,
    ...(options.summaries && { notReady }),
  };
  await runInSlices(noteInView(fullConversation), slices);
  // The first question about any part finds what stays in view, in one pass. That takes long if there are many messages; most turns never ask.
  if (slices && fullConversation.messages.length > manyMessages) read.protects.part(0, 0);
  await read.counter.ahead(fullConversation);
  await countInSlices(read, fullConversation);
  const start = await replayFold(read, found);
  const calibrator = calibratorFor(engine.learned.calibration, request.tenant, conversation, clientLinks);
  const prices = await options.pricesFor?.(conversation.model, calibrator.correction.correct(start.tokens));
  const priced = prices && prices.write <= prices.read ? { ...read, isCached: false } : read;
  const input = start.edits.length === 0 ? priced : await withFetchedAgain(priced, start.edits);
  return {
    fullConversation,
    memory,
    found,
    foldingDisabled,
    foldingDisabledSince,
    input,
    start,
    calibrator,
    tokenCounter,
    window,
    prices,
    state: triggerState({
      clientConversation,
      input,
      start,
      window,
      prices,
      correction: calibrator.correction,
      idle: { last, sent: stored.foundFolds.lastSent },
      now,
    }),
    before: input.counter.total(conversation),
    wasOffered,
    now,
  };
}

/** Returns the conversation with its hidden recalls and its newest fold. It gets no hidden recalls while folding is disabled for it. */
function withStoredState(
  engine: EngineState,
  request: EngineRequest,
  { clientConversation, conversation, clientLinks, stored }: IncomingRequest,
  now: number | undefined,
) {
  const added = conversation.messages.length - clientConversation.messages.length;
  const beginning = beginningOf(clientConversation, clientLinks);
  const folds = foldsInForce(stored.foundFolds.folds, request, beginning, now);
  const isFoldingDisabled = folds[0]?.fold.foldingDisabled ?? false;
  const fullConversation = isFoldingDisabled
    ? conversation
    : withHiddenRecalls({ ...request, reading: engine.reading }, conversation, stored.hiddenRecalls, added);
  const memory = foldMemory(engine, request, clientConversation, fullConversation, clientLinks);
  return { fullConversation, memory, found: foldFor(folds, fullConversation, memory.fullLinks) };
}

function smallerWindow(window: ModelWindow, learned: number | undefined): ModelWindow {
  return learned === undefined || learned >= (window.tokens ?? Number.POSITIVE_INFINITY)
    ? window
    : { ...window, tokens: learned };
}

/** Settles like the promise, but rejects with `deadline` when the request's time runs out first. */
export async function inTime<T>({ leftMs }: Pick<EngineRequest, 'leftMs'>, promise: Promise<T>): Promise<T> {
  if (!leftMs) return promise;
  const left = Math.min(Math.max(0, leftMs()), maxTimerMs);
  const late = withResolvers<never>();
  const timer = setTimeout(() => {
    const said = `The store did not answer within the ${Math.round(left)} ms left.`;
    late.reject(new LeporelloError('deadline', said));
  }, left);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The number of messages whose links are computed without a pause: about 3 ms. */
const linksPerSlice = 4_000;

/** Returns the same as `clientLinksOf`. */
export function* linksInSteps(
  engine: EngineState,
  request: EngineRequest,
  clientConversation: Conversation,
): Steps<readonly string[]> {
  for (let length = linksPerSlice; length < clientConversation.messages.length; length += linksPerSlice) {
    const messages = clientConversation.messages.slice(0, length);
    clientLinksOf(engine, request, { ...clientConversation, messages });
    yield;
  }
  return clientLinksOf(engine, request, clientConversation);
}

/** Learns the limit that the provider named in its refusal. It holds for every conversation with this model, at once. */
export function learnNamedLimit(
  { learned }: EngineState,
  request: EngineRequest,
  conversation: Pick<Conversation, 'model'>,
): void {
  const { refusal } = request;
  if (refusal?.reason !== 'too long' || refusal.overflow.unit === 'bytes') return;
  const { limit } = refusal.overflow;
  if (limit !== undefined) learned.windows.learn(windowKey(request, conversation), limit);
}
