/**
 * All that the store knows of one request, asked at once: by what the client itself sent, so that nothing waits for anything else. One
 * round trip, wherever the store is.
 */
import type { Codec, PlacedHiddenRecall, ReadContext } from '../codecs/codec.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { KeptReply } from '../conversation/hidden-recall.ts';
import { type Calibrator, calibratorFor, triggerState } from './demand.ts';
import { type Draft, type PlanInput, countInSlices } from './plan.ts';
import { isOfferedAlways, newProblems, toolToOffer } from './protect.ts';
import { preambleOf } from './send.ts';
import { shrinkingOf } from './shrinks.ts';
import type { Slices } from '../codecs/slices.ts';
import {
  type FoldMemory,
  type EngineState,
  foldFor,
  foldMemory,
  planInputFor,
  repeatsIn,
  replayFold,
  withoutOldRefusal,
} from './state.ts';
import {
  type CachePrices,
  type EngineOptions,
  type EngineRequest,
  type ModelWindow,
  inTime,
} from './types.ts';
import { LeporelloError } from '../errors.ts';
import type { FoundFold, FoundFolds } from '../store/fold-store.ts';
import type { FoundRecalls, Reply } from '../store/hidden-recalls.ts';
import type { FoundSummary } from '../store/ready-summaries.ts';
import type { WindowKey } from '../tokens/learned-windows.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { TriggerState } from '../triggers/trigger.ts';

export type PendingLookUp = {
  /** How to go on from the reply that the conversation names, where it is not by that name. */
  readonly reply: Promise<KeptReply | undefined>;
  readonly rest: Promise<StoredState>;
};

export type StoredState = {
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
export function lookUp(asked: Asked, { messages, previousReplyId }: Conversation): PendingLookUp {
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

  async function knownBefore(): Promise<StoredState> {
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

/** What the store knows of this request, asked for by now. `links`: those of the conversation as the client sent it. */
export function lookUpIn(
  { options }: EngineState,
  { codec, tenant, leftMs }: EngineRequest,
  conversation: Conversation,
  links: readonly string[],
): PendingLookUp {
  const offersRecall = toolToOffer(options, conversation) !== undefined;
  const goesOn = codec.continueReply !== undefined;
  return lookUp({ options, tenant, links, goesOn, offersRecall, ...(leftMs && { leftMs }) }, conversation);
}

// Hidden recalls. They are put back where they happened in the client's copies of its replies. Every later step sees that conversation.

export type HiddenRecallRequest = { readonly codec: Codec; readonly reading: ReadContext };

/**
 * The conversation itself where nothing was recalled. Hidden recalls that would make it invalid are left out. `added`: how many messages stand in
 * front of those the client sent.
 */
export function withHiddenRecalls(
  request: HiddenRecallRequest,
  conversation: Conversation,
  found: readonly FoundRecalls<Copy>[],
  added = 0,
): Conversation {
  if (found.length === 0) return conversation;
  const hiddenRecalls = found
    .map(({ reply, turns }) => ({ at: reply.at + added, candidates: turns }))
    .toReversed();
  const whole = inserted(request, conversation, hiddenRecalls);
  return (
    whole ?? inserted(request, conversation, validOnes(request, conversation, hiddenRecalls)) ?? conversation
  );
}

/** A client's copy of a reply, and the index of its first message. */
export type Copy = Reply & { readonly at: number };

/** Where the client's copies of replies stand, the newest first: neighbouring messages of the model, behind some of another side. */
export function* copiesIn(messages: Conversation['messages'], links: readonly string[]): Generator<Copy> {
  const isReply = (index: number) => messages[index]?.role === 'assistant';
  for (let end = messages.length; end > 1; end--) {
    if (!isReply(end - 1)) continue;
    let at = end - 1;
    while (at > 0 && isReply(at - 1)) at--;
    if (at > 0) yield { at, before: links[at]!, through: links[end]! };
    end = at;
  }
}

/** Undefined when the result breaks a rule that the client's own conversation keeps. */
function inserted(
  { codec, reading }: HiddenRecallRequest,
  conversation: Conversation,
  hiddenRecalls: readonly PlacedHiddenRecall[],
): Conversation | undefined {
  const body = codec.insertHiddenRecalls(conversation, hiddenRecalls);
  if (body === conversation.body) return conversation;
  const whole = codec.read(body, reading);
  return newProblems(codec.rules, conversation, whole).length > 0 ? undefined : whole;
}

/** Of hidden recalls that cannot all be put back those that can, looked for by halves: most often all but one can. */
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

// Replies that the provider keeps. The client knows such a reply by one name; after a private recall, the provider may know it by another.

/** The conversation itself where nothing was recalled in private. */
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

// Opening a request: the recalls and the fold that the store has for it are restored, and everything that triggers need is counted.

/** What is to be compacted: what came, that with the reply it goes on from by its right name, and what is known of it. */
export type IncomingRequest = {
  readonly came: Conversation;
  readonly conversation: Conversation;
  readonly known: StoredState;
};

/** A request as it stands under the fold that was found for it, and all that is reckoned from. */
export type OpenedRequest = {
  /** With what the model recalled in private. */
  readonly fullConversation: Conversation;
  readonly memory: FoldMemory;
  readonly found: FoundFold | undefined;
  /** The provider refused our edits in this conversation. */
  readonly foldingDisabled: boolean;
  /** When it refused them, in milliseconds since the epoch; undefined when it did not, or nobody knows. */
  readonly foldingDisabledSince: number | undefined;
  readonly input: PlanInput;
  readonly start: Draft;
  readonly calibrator: Calibrator;
  readonly tokenCounter: TokenCounter;
  readonly window: ModelWindow;
  readonly prices: CachePrices | undefined;
  readonly state: TriggerState;
  /** Tokens of it without any edit, by the counter. */
  readonly before: number;
  /** Whether the request before offered the recall tool; undefined where this process does not know it, or it had other tools. */
  readonly wasOffered: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number | undefined;
};

export async function openRequest(
  engine: EngineState,
  request: EngineRequest,
  incoming: IncomingRequest,
  slices?: Slices,
): Promise<OpenedRequest> {
  const { options } = engine;
  const { conversation, came, known } = incoming;
  const tokenCounter = await options.counterFor(conversation.model);
  const window = smaller(
    await options.windowFor(conversation.model),
    engine.windows.find(windowKey(request, conversation)),
  );
  const now = options.clock?.();
  const { whole: fullConversation, memory, found } = withStoredState(engine, request, incoming, now);
  const { links } = memory;
  const { foldingDisabled = false, foldingDisabledSince } = found?.fold ?? {};
  const last = engine.lastSent.find(links);
  const wasOffered = last?.request.preamble === preambleOf(conversation) ? last.request.offers : undefined;
  // Recalls that were put back are calls of the tool.
  const isOffered =
    !foldingDisabled &&
    (isOfferedAlways(options, request.codec, conversation) || fullConversation !== conversation);
  const repeats = repeatsIn(engine, request, fullConversation);
  const shrinking = shrinkingOf(
    { ...request, settings: options.shrinks, repeats },
    fullConversation,
    found?.fold,
  );
  const ready = known.ready.find(({ upTo, link }) => memory.whole[upTo] === link);
  const notReady = () => engine.summaryNotes.find(memory.tenant, memory.whole) ?? 'none was begun in time';
  const input: PlanInput = {
    ...planInputFor(engine, request, fullConversation, tokenCounter),
    isOffered,
    shrinking,
    slices,
    ready,
    ...(options.summaries && { notReady }),
  };
  await slices?.pause();
  await input.counter.ahead(fullConversation);
  await countInSlices(input, fullConversation);
  const start = await replayFold(input, found);
  await slices?.pause();
  const calibrator = calibratorFor(engine.calibration, request.tenant, conversation, links);
  const prices = await options.pricesFor?.(conversation.model, calibrator.correction.correct(start.tokens));
  const traces = { last, sent: known.foldStore.lastSent };
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
      came,
      input,
      start,
      window,
      prices,
      correction: calibrator.correction,
      traces,
      now,
    }),
    before: input.counter.total(conversation),
    wasOffered,
    now,
  };
}

/**
 * The conversation as the model knows it: with what it recalled in private, but where it is left alone because its provider refused our
 * edits.
 */
function withStoredState(
  engine: EngineState,
  request: EngineRequest,
  { came, conversation, known }: IncomingRequest,
  now: number | undefined,
) {
  const added = conversation.messages.length - came.messages.length;
  const { codec } = request;
  const folds = known.foldStore.folds.map((found) => withoutOldRefusal(found, now));
  const isFoldingDisabled = folds[0]?.fold.foldingDisabled ?? false;
  const whole = isFoldingDisabled
    ? conversation
    : withHiddenRecalls({ codec, reading: engine.reading }, conversation, known.hiddenRecalls, added);
  const memory = foldMemory(engine, request, came, whole);
  return { whole, memory, found: foldFor(folds, whole, memory.whole) };
}

/** The context window that a provider enforces is known by tenant, upstream and model. */
export function windowKey(
  { tenant, upstream }: EngineRequest,
  { model }: Pick<Conversation, 'model'>,
): WindowKey {
  return { tenant, upstream, model };
}

function smaller(window: ModelWindow, learned: number | undefined): ModelWindow {
  return learned === undefined || learned >= (window.tokens ?? Number.POSITIVE_INFINITY)
    ? window
    : { ...window, tokens: learned };
}
