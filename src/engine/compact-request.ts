/**
 * THE SPINE. One request: replay the fold made on its prefix, count, ask the triggers, fold where one demands it, check, keep the
 * originals, record the fold, and only then hand over the bytes to send.
 */
import { LeporelloError } from '../errors.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { allOriginalIdsOf } from '../conversation/original.ts';
import { isUnanswered } from '../store/deadline-store.ts';
import { memoryIdsIn } from '../store/ids.ts';
import type { Demand } from '../triggers/trigger.ts';
import { demandInCounts } from './corrected.ts';
import { dropReasoning } from './drop-reasoning.ts';
import { demandFor, isSettled, limitOf } from './fold-demand.ts';
import { foldReport } from './fold-report.ts';
import { identityOf } from './identity.ts';
import type { KnownBefore } from './look-up.ts';
import { type Incoming, type Opened, openRequest, windowKey } from './open-request.ts';
import { hasWayBack } from './offer-recall.ts';
import { originalFinder, outcomeOf, searchedOf } from './outcome.ts';
import { type Draft, type Planned, planFold } from './plan.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { keepOriginals, type NewFold, rememberFold, renewUsed, markSent, withoutStore } from './replay.ts';
import { type EngineRequest, inTime } from './request.ts';
import type { Slices } from './slices.ts';
import { demandAhead, type SummaryJob, summaryJob } from './summary-ahead.ts';
import { reservedTokens } from './trigger-state.ts';
import type { Workshop } from './workshop.ts';

/**
 * Decides what is sent for a request. A store that fails or does not answer costs folds that only save money; what this process
 * remembers is replayed, and a fold without which the request would not fit is made all the same.
 */
export async function compactRequest(
  workshop: Workshop,
  request: EngineRequest,
  incoming: Incoming,
  slices?: Slices,
): Promise<Prepared> {
  const { conversation, known } = incoming;
  learnNamedLimit(workshop, request, conversation);
  const opened = await openRequest(workshop, request, incoming, slices);
  await slices?.pause();
  const { input, start, foldingDisabled, gauge } = opened;
  const { demand, skipped } = demandNow(workshop, request, opened, known);
  await slices?.pause();
  const attempt = await plannedFor(workshop, request, opened, demand);
  if (foldingDisabled && !attempt && start.edits.length === 0) return leftAlone(incoming, opened);
  const proposed = { opened, incoming, demand, result: attempt?.draft ?? start };
  const stored = await keep(workshop, request, proposed);
  // Another instance has sent this very request in the meantime: it is sent the same way again.
  if (stored.status === 'settled')
    return compactRequest(
      workshop,
      request,
      {
        ...incoming,
        known: { ...known, foldStore: stored.foldStore },
      },
      slices,
    );
  const isDropped = stored.status === 'refused' && !isNeeded(request, demand);
  const planned = isDropped ? undefined : attempt;
  const result = planned?.draft ?? start;
  if (stored.status === 'kept') for (const edit of result.shrinks) workshop.kept.add(edit);
  else await rememberHere({ ...proposed, result });
  const problem = problemIn(known.problem ?? (stored.status === 'kept' ? skipped : stored.error));
  await slices?.pause();
  const { memory, asSent, prices, window } = opened;
  const { links } = memory;
  const expected = gauge.correction.correct(result.tokens);
  const draft = { ...result, tokens: expected };
  const sending = workshop.send({
    request,
    conversation,
    links,
    whole: asSent,
    draft,
    prices,
    alone: foldingDisabled,
  });
  const counted = workshop.options.mode === 'observe' ? opened.before : result.tokens;
  const edits = [...result.edits, ...result.shrinks];
  const unfound = allOriginalIdsOf(result === start ? result.shrinks : edits);
  renewUsed(memory, opened.found, [...unfound, ...(input.isHistoryKept ? memoryIdsIn(request.body) : [])]);
  return {
    outcome:
      problem !== undefined && edits.length === 0
        ? { status: 'failed', reason: problem }
        : outcomeOf(edits, planned?.steps),
    problem,
    body: sending.body,
    mayGoAsItCame: conversation.body === request.body,
    identity: identityOf(conversation, links),
    recallTool: result.offers ? input.recallTool?.name : undefined,
    original: originalFinder(asSent, edits),
    searched: searchedOf(result.edits, result.shrinks),
    remember: (hiddenRecall) =>
      workshop.options.hiddenRecalls.record(request.tenant, links.at(-1)!, hiddenRecall),
    keepReply: (knownAs, reply) => workshop.options.keptReplies.record(request.tenant, knownAs, reply),
    room:
      window.tokens === undefined
        ? undefined
        : window.tokens - reservedTokens(asSent, window, false) - expected,
    counter: opened.tokenCounter,
    prompt: { counted, came: opened.before, expected: gauge.correction.correct(counted) },
    known: stored.known,
    learn: (reported) => {
      gauge.learn(counted, reported);
      workshop.windows.accepted(windowKey(request, conversation), reported);
    },
    summary: planned ? undefined : summaryFor(workshop, opened, result),
    report: {
      ...foldReport(
        { conversation, asSent, input, start, result, demand, planned, kept: stored.edits },
        opened,
      ),
      ...sending.report,
    },
  };
}

/** A limit that the provider named holds for every conversation with this model, at once. */
function learnNamedLimit(
  { windows }: Workshop,
  request: EngineRequest,
  conversation: Pick<Conversation, 'model'>,
): void {
  const { refusal } = request;
  if (refusal?.reason !== 'too long' || refusal.overflow.unit === 'bytes') return;
  const { limit } = refusal.overflow;
  if (limit !== undefined) windows.learn(windowKey(request, conversation), limit);
}

type DemandNow = {
  readonly demand: Demand | undefined;
  /** The reason why a fold that only saves money is not made now. */
  readonly skipped?: LeporelloError;
};

/** The demand that can be met now: without the store, or when time is over, only one that the request needs in order to fit. */
function demandNow(
  { options, windows }: Workshop,
  request: EngineRequest,
  { state, input }: Opened,
  { foldStore, problem }: KnownBefore,
): DemandNow {
  const { refusal } = request;
  const demand = demandFor(options.triggers, state, { refusal, sentAs: foldStore.sentAs });
  if (refusal?.reason === 'too long' && demand?.atMost !== undefined) {
    // A refusal of a request far below the known window may have another cause, so it says nothing about other conversations.
    const isLikely = state.tokens >= (state.window ?? 0) / 2;
    if (refusal.overflow.unit === 'tokens' && isLikely)
      windows.learn(windowKey(request, input.conversation), demand.atMost + state.reserved);
  }
  if (!demand || demand.force) return { demand };
  if (problem) return { demand: undefined };
  if (!input.isTooLate()) return { demand };
  return {
    demand: undefined,
    skipped: new LeporelloError(
      'deadline',
      'No time was left to fold; the request was sent without a new fold.',
    ),
  };
}

/** A fold that the provider's refusal or the window asks for. It is sent even if it cannot be stored. */
function isNeeded({ refusal }: EngineRequest, demand: Demand | undefined): boolean {
  return refusal !== undefined || demand?.force === true;
}

async function plannedFor(
  { options }: Workshop,
  { refusal }: EngineRequest,
  { input, start, foldingDisabled, gauge }: Opened,
  demand: Demand | undefined,
): Promise<Planned | undefined> {
  if (refusal?.reason === 'reasoning') return dropReasoning(input, start);
  const isFree = !foldingDisabled && hasWayBack(options, input.conversation);
  if (!demand || (!isFree && !demand.force)) return undefined;
  return planFold(input, start, demandInCounts(demand, gauge.correction), options.strategies);
}

function leftAlone({ conversation }: Incoming, { memory, gauge, before }: Opened): Prepared {
  return {
    ...unprepared(conversation.body, { status: 'untouched', reason: 'left alone' }, conversation),
    identity: identityOf(conversation, memory.links),
    learn: (reported) => gauge.learn(before, reported),
  };
}

/** A request with the edits it is to be sent with. */
type Outgoing = {
  readonly opened: Opened;
  readonly incoming: Incoming;
  readonly demand: Demand | undefined;
  readonly result: Draft;
};

/**
 * The result of storing a fold or originals. `edits`: those whose originals the store did not have. `known`: see `Prepared`.
 * - `kept`: the store has them.
 * - `settled`: another instance has sent this very request with what `foldStore` says.
 * - `refused`: the store said that it does not have them.
 * - `unanswered`: nobody knows whether it has them.
 */
type Stored =
  | { readonly status: 'settled'; readonly foldStore: KnownBefore['foldStore'] }
  | {
      readonly status: 'kept' | 'refused' | 'unanswered';
      readonly edits: Draft['edits'];
      readonly known: Promise<void>;
      readonly error?: unknown;
    };

/** Stores, before anything is sent, the fold and the originals of all that it and the shrinks take away. Never rejects. */
async function keep(
  workshop: Workshop,
  request: EngineRequest,
  { opened, incoming, demand, result }: Outgoing,
): Promise<Stored> {
  const { memory, asSent, found, start, state } = opened;
  const { conversation, known } = incoming;
  const { sentAs } = known.foldStore;
  // Edits of a fold that the store does not have are as new as those of a fold made now.
  const isUnsaved = found?.fold.isUnsaved ?? false;
  const replayed = new Set(isUnsaved ? [] : start.edits);
  const edits = [...result.edits, ...result.shrinks].filter(
    (edit) => !replayed.has(edit) && !workshop.kept.has(edit),
  );
  const fold = foldOf(opened, result);
  const isNew =
    result !== start ||
    isUnsaved ||
    (fold.shrinksFrom !== found?.fold.shrinksFrom && !isSettled(sentAs, state));
  try {
    if (isNew) {
      const yieldsTo = request.refusal || sentAs ? undefined : demand?.force ? 'folds' : 'all';
      const recorded = await inTime(request, rememberFold(memory, asSent, fold, edits, yieldsTo));
      if (recorded !== 'recorded') return { status: 'settled', foldStore: recorded.alreadySent };
      return { status: 'kept', edits, known: Promise.resolve() };
    }
    await inTime(request, keepOriginals(memory, asSent, edits));
  } catch (error) {
    const status = isUnanswered(error) ? 'unanswered' : 'refused';
    return { status, edits, known: Promise.resolve(), error };
  }
  const isKnown = sentAs !== undefined || conversation.previousReplyId !== undefined;
  const sent = { at: fold.at, limit: fold.limit };
  return { status: 'kept', edits, known: isKnown ? Promise.resolve() : markSent(memory, found, sent) };
}

/** The record of a fold, complete: it holds the edits of the folds before it, too. */
function foldOf(
  { foldingDisabled, foldingDisabledSince, input, state, now }: Opened,
  { edits }: Draft,
): NewFold {
  const shrinksFrom = input.shrinking?.isBound ? input.shrinking.from : undefined;
  return { edits, foldingDisabled, foldingDisabledSince, shrinksFrom, at: now, limit: limitOf(state) };
}

/** Remembers in this process what is sent although the store does not have it, so that the same request is sent the same way again. */
async function rememberHere({ opened, incoming, result }: Outgoing): Promise<void> {
  const { memory, asSent, found, start } = opened;
  const here = withoutStore(memory);
  const fold = foldOf(opened, result);
  if (result !== start || found?.fold.isUnsaved)
    await rememberFold(here, asSent, { ...fold, isUnsaved: true }, [], undefined);
  else if (incoming.conversation.previousReplyId === undefined)
    await markSent(here, found, { at: fold.at, limit: fold.limit });
}

/** An error in words without content: our own message, or only the kind of another error. Undefined without an error. */
export function problemIn(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}

/** The summary that the next fold will need, where there is one to be written by now. */
function summaryFor(
  { options, summaryNotes }: Workshop,
  { foldingDisabled, state, memory, input, gauge }: Opened,
  result: Draft,
): SummaryJob | undefined {
  const { summaries, triggers, mode } = options;
  const isFree = !foldingDisabled && hasWayBack(options, input.conversation);
  const ahead = summaries && isFree ? demandAhead(triggers, state) : undefined;
  if (!summaries || !ahead || mode === 'observe') return undefined;
  const demand = demandInCounts(ahead, gauge.correction);
  const fixed = Math.min(result.tokens, gauge.correction.countFor(state.fixed ?? 0));
  return summaryJob({ ...summaries, notes: summaryNotes }, memory, input, result, { demand, fixed });
}
