/** Opens a request: what the store knows of it, the fold found for it replayed, and all counted that triggers are told. */
import type { Conversation } from '../conversation/conversation.ts';
import type { FoundFold } from '../store/fold-store.ts';
import type { WindowKey } from '../tokens/learned-windows.ts';
import type { TokenCounter } from '../tokens/token-counter.ts';
import type { TriggerState } from '../triggers/trigger.ts';
import { type Gauge, gaugeOf } from './corrected.ts';
import { withHiddenRecalls } from './hidden-recalls.ts';
import type { KnownBefore } from './look-up.ts';
import { preambleOf } from './last-sent.ts';
import { isOfferedAlways } from './offer-recall.ts';
import type { CachePrices, ModelWindow } from './options.ts';
import { countInSlices, type Draft, type PlanInput } from './plan.ts';
import { type FoldMemory, foldFor, replayFold, withoutOldRefusal } from './replay.ts';
import type { EngineRequest } from './request.ts';
import { shrinkingOf } from './shrinks.ts';
import type { Slices } from './slices.ts';
import { triggerState } from './trigger-state.ts';
import { foldMemory, planInput, repeatsIn, type Workshop } from './workshop.ts';

/** What is to be compacted: what came, that with the reply it goes on from by its right name, and what is known of it. */
export type Incoming = {
  readonly came: Conversation;
  readonly conversation: Conversation;
  readonly known: KnownBefore;
};

/** A request as it stands under the fold that was found for it, and all that is reckoned from. */
export type Opened = {
  /** With what the model recalled in private. */
  readonly asSent: Conversation;
  readonly memory: FoldMemory;
  readonly found: FoundFold | undefined;
  /** The provider refused our edits in this conversation. */
  readonly foldingDisabled: boolean;
  /** When it refused them, in milliseconds since the epoch; undefined when it did not, or nobody knows. */
  readonly foldingDisabledSince: number | undefined;
  readonly input: PlanInput;
  readonly start: Draft;
  readonly gauge: Gauge;
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
  workshop: Workshop,
  request: EngineRequest,
  incoming: Incoming,
  slices?: Slices,
): Promise<Opened> {
  const { options } = workshop;
  const { conversation, came, known } = incoming;
  const tokenCounter = await options.counterFor(conversation.model);
  const window = smaller(
    await options.windowFor(conversation.model),
    workshop.windows.find(windowKey(request, conversation)),
  );
  const now = options.clock?.();
  const { whole: asSent, memory, found } = wholeOf(workshop, request, incoming, now);
  const { links } = memory;
  const { foldingDisabled = false, foldingDisabledSince } = found?.fold ?? {};
  const last = workshop.lastSent.find(links);
  const wasOffered = last?.request.preamble === preambleOf(conversation) ? last.request.offers : undefined;
  // Recalls that were put back are calls of the tool.
  const isOffered =
    !foldingDisabled && (isOfferedAlways(options, request.codec, conversation) || asSent !== conversation);
  const repeats = repeatsIn(workshop, request, asSent);
  const shrinking = shrinkingOf({ ...request, settings: options.shrinks, repeats }, asSent, found?.fold);
  const ready = known.ready.find(({ upTo, link }) => memory.whole[upTo] === link);
  const notReady = () => workshop.summaryNotes.find(memory.tenant, memory.whole) ?? 'none was begun in time';
  const input: PlanInput = {
    ...planInput(workshop, request, asSent, tokenCounter),
    isOffered,
    shrinking,
    slices,
    ready,
    ...(options.summaries && { notReady }),
  };
  await slices?.pause();
  await input.counter.ahead(asSent);
  await countInSlices(input, asSent);
  const start = await replayFold(input, found);
  await slices?.pause();
  const gauge = gaugeOf(workshop.calibration, request.tenant, conversation, links);
  const prices = await options.pricesFor?.(conversation.model, gauge.correction.correct(start.tokens));
  const traces = { last, sent: known.foldStore.lastSent };
  return {
    asSent,
    memory,
    found,
    foldingDisabled,
    foldingDisabledSince,
    input,
    start,
    gauge,
    tokenCounter,
    window,
    prices,
    state: triggerState({
      came,
      input,
      start,
      window,
      prices,
      correction: gauge.correction,
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
function wholeOf(
  workshop: Workshop,
  request: EngineRequest,
  { came, conversation, known }: Incoming,
  now: number | undefined,
) {
  const added = conversation.messages.length - came.messages.length;
  const { codec } = request;
  const folds = known.foldStore.folds.map((found) => withoutOldRefusal(found, now));
  const isFoldingDisabled = folds[0]?.fold.foldingDisabled ?? false;
  const whole = isFoldingDisabled
    ? conversation
    : withHiddenRecalls({ codec, reading: workshop.reading }, conversation, known.hiddenRecalls, added);
  const memory = foldMemory(workshop, request, came, whole);
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
