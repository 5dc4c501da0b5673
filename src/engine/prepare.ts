/**
 * THE SPINE: prepares one request, step by step.
 *   read, look up   readRequest    the spans of the messages, and everything that the store has for them
 *   restore         openRequest    hidden recalls and known folds, put back; new tool results, shrunk
 *   decide          demandNow      what the triggers ask for
 *   fold            plannedFor     the edits that meet the demand
 *   save            save           originals and the fold, stored
 *   finish          finish         the body, compared with the previous request and marked for the cache
 *   report          preparedFrom   the result, and the receipt
 * Each step hands its result to the next one as data. Three forms of a request occur:
 * - `clientConversation`: as the client sent it.
 * - `conversation`: the same, but a reply that it continues has the name that the provider knows (only in formats whose provider keeps replies).
 * - `fullConversation`: the same, with hidden recalls put back. Folds are made of this form.
 */
import { readBeginning } from '../codecs/read-beginning.ts';
import { readInSlices, unremembered } from '../codecs/read-body.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { allOriginalIdsOf } from '../conversation/edit.ts';
import { openSlices, runInSlices, type Slices } from '../conversation/steps.ts';
import { isUnanswered, LeporelloError } from '../errors.ts';
import { memoryIdsIn } from '../store/encrypted-store.ts';
import type { Demand } from '../triggers/trigger.ts';
import { calibratorFor, demandFor, demandInCounts, mustReplay, limitOf, withMeasured } from './demand.ts';
import {
  type IncomingRequest,
  learnNamedLimit,
  linksInSteps,
  lookUpIn,
  type OpenedRequest,
  openRequest,
  type StoredState,
  withKeptReply,
  inTime,
} from './history.ts';
import { type Draft, dropReasoning, type FoldPlan, planFold } from './plan.ts';
import { hasWayBack, isUndone } from './protect.ts';
import { knownTrial, reportsOfFailedEdits, trialOf, withRepairedEdits } from './finish.ts';
import { preparedFrom, problemIn, withoutFolding, withoutHeld, unfolded } from './report.ts';
import {
  clientLinksOf,
  createEngineState,
  disableFolding,
  type EngineState,
  foldMemory,
  keepOriginals,
  markSent,
  type NewFold,
  rememberFold,
  renewUsed,
  windowKey,
  withoutStore,
} from './state.ts';
import { conversationCounter } from '../tokens/count-conversation.ts';
import { summaryFor } from './ahead/summary.ts';
import type { Engine, EngineOptions, EngineRequest, PreparedRequest } from './types.ts';
import { passThrough } from './types.ts';

/** Creates an engine from its parts. `createDefaultEngine` supplies the usual ones. */
export function createEngine(options: EngineOptions): Engine {
  const engine = createEngineState(options);
  return {
    prepare: (request) => prepareRequest(engine, request),
    unfolded: (request, outcome, waitMs = 0) => unfolded(engine, request, outcome, waitMs),
    async disableFolding(request) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        // A conversation without its history begins like many others, and is never folded.
        if (conversation.previousReplyId !== undefined) return;
        await disableFolding(foldMemory(engine, request, conversation, conversation), options.clock?.());
      } catch {
        // This process remembers the refusal. Other instances learn of it from the next refusal.
      }
    },
    async reportPromptTokens(request, reported) {
      try {
        const conversation = request.codec.read(request.body, engine.reading);
        const counts = conversationCounter(await options.counterFor(conversation.model));
        const clientLinks = clientLinksOf(engine, request, conversation);
        await counts.ahead(conversation);
        calibratorFor(engine.learned.calibration, request.tenant, conversation, clientLinks).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // A report that cannot be used is ignored.
      }
    },
  };
}

/** Prepares a request to be sent. Never rejects: when a step fails, the client's own body is sent, and the outcome says why. */
async function prepareRequest(engine: EngineState, request: EngineRequest): Promise<PreparedRequest> {
  const progress: ReadProgress = {};
  try {
    const slices = request.body.length > smallBytes ? openSlices() : undefined;
    const incoming = await readRequest(engine, request, slices, progress);
    const prepared = await foldAndFinish(engine, request, incoming, slices);
    return engine.options.mode === 'observe' ? observed(prepared, incoming.conversation) : prepared;
  } catch (error) {
    return await sentUnprepared(request, progress.conversation, error);
  }
}

/** Bytes of the largest body that is handled without pauses: steps would take longer than the work. */
const smallBytes = 65_536;

/** Reads the body, and loads everything that the store has for the conversation. */
async function readRequest(
  engine: EngineState,
  request: EngineRequest,
  slices: Slices | undefined,
  progress: ReadProgress,
): Promise<IncomingRequest> {
  const { codec, body } = request;
  const clientConversation = await readInSlices(codec, body, engine.reading, slices);
  progress.conversation = clientConversation;
  const clientLinks = await runInSlices(linksInSteps(engine, request, clientConversation), slices);
  const pending = lookUpIn(engine, request, clientConversation, clientLinks);
  const conversation = withKeptReply(codec, engine.reading, clientConversation, await pending.reply);
  progress.conversation = conversation;
  const stored = await pending.rest;
  await slices?.pause();
  return { clientConversation, conversation, clientLinks, stored };
}

/**
 * Decides what is sent. While the store fails or does not answer, the engine replays the folds that this process remembers, and makes
 * a new one only if the request would not fit without it.
 */
async function foldAndFinish(
  engine: EngineState,
  request: EngineRequest,
  incoming: IncomingRequest,
  slices: Slices | undefined,
): Promise<PreparedRequest> {
  const { conversation, stored } = incoming;
  learnNamedLimit(engine, request, conversation);
  const opened = await openRequest(engine, request, incoming, slices);
  await slices?.pause();
  const decide = () => demandNow(engine, request, opened, stored);
  const { demand, skipped } = await withMeasured(opened.state, decide);
  const from = engine.options.clock?.() ?? 0;
  const wholePlan = await plannedFor(engine, request, opened, demand, stored);
  const isUnfinished =
    demand?.force === false && wholePlan?.draft === opened.start && opened.input.isTooLate();
  const plan = withoutHeld(request, opened, demand, wholePlan);
  const planTime = plan && { from, to: engine.options.clock?.() ?? 0 };
  const isPlanned = plan !== undefined && plan.draft !== opened.start && !stored.foundFolds.sentAs;
  const trial = trialOf(engine.options, request, opened, { demand, isPlanned, stored });
  const isControl = trial?.isControl && !isNeeded(request, demand);
  const planOfArm = isControl ? undefined : plan;
  if (opened.foldingDisabled && !planOfArm && opened.start.edits.length === 0)
    return { ...withoutFolding(conversation, opened), trial };
  const proposed = { opened, incoming, demand, result: planOfArm?.draft ?? opened.start, plan, trial };
  await slices?.pause();
  const saved = await save(engine, request, proposed);
  if (saved.status === 'already sent') {
    // The fold store now says how the request was sent (`sentAs`). With that, `save` yields to no other record, so this happens only once.
    const updated = { ...incoming, stored: { ...stored, foundFolds: saved.foundFolds } };
    return foldAndFinish(engine, request, updated, slices);
  }
  // An unanswered write may have succeeded, so its fold is sent. A refused one is stored nowhere, so it is sent only if it is needed.
  const isDropped = saved.status === 'refused' && !isNeeded(request, demand);
  const planSent = isDropped ? undefined : planOfArm;
  const result = planSent?.draft ?? opened.start;
  if (saved.status === 'saved') for (const edit of result.shrinks) engine.storedShrinks.add(edit);
  else await rememberHere({ ...proposed, result, trial: opened.found?.fold.trial });
  await slices?.pause();
  const finished = finish(engine, request, conversation, opened, result);
  await slices?.pause();
  const startSummary = () => summaryFor(engine, opened, result);
  const summary = planSent ? undefined : await withMeasured(opened.state, startSummary);
  await slices?.pause();
  return preparedFrom(engine, request, {
    conversation,
    opened,
    demand,
    planned: planSent,
    planTime,
    result,
    finished,
    newEdits: saved.edits,
    known: saved.known,
    problem: problemIn(
      stored.problem ?? (saved.status !== 'saved' ? saved.error : isUnfinished ? noTimeLeft : skipped),
    ),
    summary,
    trial: saved.status === 'saved' ? trial : opened.found?.fold.trial,
  });
}

/** Compares the request with the previous one, marks it for the provider's cache, and renews the retention of everything it uses. */
function finish(
  engine: EngineState,
  request: EngineRequest,
  conversation: Conversation,
  { fullConversation, memory, found, start, calibrator, prices, foldingDisabled, input }: OpenedRequest,
  result: Draft,
) {
  // The fold that was found renews its own originals.
  const originalIds = allOriginalIdsOf(
    result === start ? result.shrinks : [...result.edits, ...result.shrinks],
  );
  renewUsed(memory, found, [...originalIds, ...(input.isHistoryKept ? memoryIdsIn(request.body) : [])]);
  return engine.finish({
    request,
    conversation,
    clientLinks: memory.clientLinks,
    fullConversation,
    draft: { ...result, tokens: calibrator.correction.correct(result.tokens) },
    prices,
    foldingDisabled,
  });
}

/** Holds the newest form of the conversation that was read. It is needed when a later step fails. */
type ReadProgress = { conversation?: Conversation };

/** Returns the client's own request after an error: its conversation, if it was read, otherwise its bytes. */
async function sentUnprepared(
  request: EngineRequest,
  conversation: Conversation | undefined,
  error: unknown,
): Promise<PreparedRequest> {
  const status =
    LeporelloError.isInstance(error) && error.code === 'not-this-format' ? 'untouched' : 'failed';
  // After an unanswered hidden recall, the provider refuses the client's own bytes. In the body of `conversation` that is repaired.
  const body = conversation?.body ?? request.body;
  const { model, sessionKey } =
    conversation ?? (await readBeginning(request.codec, request.body, unremembered)) ?? {};
  const reason = problemIn(error) ?? 'unexpected error';
  const sent = passThrough(body, { status, reason }, { model, sessionKey });
  return { ...sent, maySendClientBody: body === request.body };
}

/** Returns the client's own bytes with the report of what would have been sent. */
function observed(prepared: PreparedRequest, conversation: Conversation): PreparedRequest {
  const { report, prompt, reportPromptTokens, identity, maySendClientBody } = prepared;
  const sent = passThrough(conversation.body, { status: 'observed' }, conversation);
  return { ...sent, maySendClientBody, report, prompt, reportPromptTokens, identity };
}

type DemandNow = {
  readonly demand: Demand | undefined;
  /** The reason why a fold that would only save money is not made now. */
  readonly skipped?: LeporelloError;
};

/**
 * Returns the demand that can be met now. Without the store, or when no time is left, only a demand that the request needs to fit can be
 * met. If the provider refused the request as too long, the model's window is learned here, too.
 */
function demandNow(
  { options, learned }: EngineState,
  request: EngineRequest,
  { state, input, found }: OpenedRequest,
  { foundFolds, problem }: StoredState,
): DemandNow {
  const { refusal } = request;
  const sentAs = isUndone(found) ? undefined : foundFolds.sentAs;
  const demand = demandFor(options.triggers, state, { refusal, sentAs });
  if (refusal?.reason === 'too long' && demand?.atMost !== undefined) {
    // A refusal far below the known window may have another cause, so other conversations do not learn from it.
    const isLikely = state.tokens >= (state.window ?? 0) / 2;
    if (refusal.overflow.unit === 'tokens' && isLikely)
      learned.windows.learn(windowKey(request, input.conversation), demand.atMost + state.reserved);
  }
  if (!demand || demand.force) return { demand };
  if (problem || knownTrial(found, foundFolds)?.isControl) return { demand: undefined };
  if (!input.isTooLate()) return { demand };
  return { demand: undefined, skipped: noTimeLeft };
}

const late = 'No time was left to fold, so the request was sent without a new fold.';
const noTimeLeft = new LeporelloError('deadline', late);

/** True when the provider's refusal or the window requires the fold. Such a fold is sent even if it cannot be stored. */
function isNeeded({ refusal }: EngineRequest, demand: Demand | undefined): boolean {
  return refusal !== undefined || demand?.force === true;
}

/** Plans the fold that the demand asks for. Undefined when there is none, or when the folded content could not be recalled. */
async function plannedFor(
  { options }: EngineState,
  { refusal }: EngineRequest,
  { input, start, foldingDisabled, calibrator, state }: OpenedRequest,
  demand: Demand | undefined,
  { foundFolds, problem }: StoredState,
): Promise<FoldPlan | undefined> {
  if (refusal?.reason === 'reasoning') return dropReasoning(input, start);
  const isFree = !foldingDisabled && hasWayBack(options, input.conversation, 'now');
  const plan =
    demand && (isFree || demand.force)
      ? await planFold(input, start, demandInCounts(demand, calibrator.correction), options.strategies)
      : undefined;
  const { edits } = plan?.draft ?? start;
  // A request that was sent before is sent the same way again.
  const mayRepair =
    isFree && edits.length > 0 && !foundFolds.sentAs && !problem && options.repairEdits !== false;
  const reports = mayRepair ? await runInSlices(reportsOfFailedEdits(input.conversation), input.slices) : [];
  if (reports.length === 0) return plan;
  const atMost = calibrator.correction.countFor(limitOf(state) ?? Number.POSITIVE_INFINITY);
  return withRepairedEdits(input, start, plan, atMost, reports);
}

/** A request with the edits that it would be sent with. `plan`: that of `result`, or the one that a control group goes without. */
type ProposedRequest = {
  readonly opened: OpenedRequest;
  readonly incoming: IncomingRequest;
  readonly demand: Demand | undefined;
  readonly result: Draft;
  readonly plan: { readonly draft: Draft } | undefined;
  readonly trial: PreparedRequest['trial'];
};

/**
 * The result of storing a fold or originals. `edits`: the edits whose originals the store did not have. `known`: see `PreparedRequest`.
 * - `saved`: they are stored.
 * - `already sent`: this very request was sent before, or at the same time, with the fold in `foundFolds`.
 * - `refused`: the store answered that it has not stored them.
 * - `unanswered`: it is not known whether they are stored.
 */
type SaveResult =
  | { readonly status: 'already sent'; readonly foundFolds: StoredState['foundFolds'] }
  | {
      readonly status: 'saved' | 'refused' | 'unanswered';
      readonly edits: Draft['edits'];
      readonly known: Promise<void>;
      readonly error?: unknown;
    };

/** Stores the fold, and the originals of everything that it and the shrinks remove, before anything is sent. Never rejects. */
async function save(
  engine: EngineState,
  request: EngineRequest,
  { opened, incoming, demand, result, plan, trial }: ProposedRequest,
): Promise<SaveResult> {
  const { memory, fullConversation, found, start, state } = opened;
  const { conversation, stored } = incoming;
  const { sentAs } = stored.foundFolds;
  // If the store does not have the fold, its edits count as new.
  const isUnsaved = found?.fold.isUnsaved ?? false;
  const replayed = result.edits === start.edits && !isUnsaved;
  const known = new Set(replayed || isUnsaved ? [] : start.edits);
  const edits = [...(replayed ? [] : result.edits), ...result.shrinks].filter(
    (edit) => !known.has(edit) && !engine.storedShrinks.has(edit),
  );
  const fold = foldOf(opened, result, trial);
  // The record also says from which message on results are shrunk. If that changed, it is written again, unless it must be replayed.
  const isNew =
    result !== start ||
    isUnsaved ||
    trial !== found?.fold.trial ||
    (fold.shrinksFrom !== found?.fold.shrinksFrom && !mustReplay(sentAs, state));
  try {
    if (isNew) {
      // Another instance may send the same request now. If it was the first, its record wins, so that both send the same bytes. A fold that
      // the request needs to fit yields only to another fold; after a refusal, or if the request was sent before, this fold replaces it.
      const wins = request.refusal || sentAs ? 'this fold' : demand?.force ? 'another fold' : 'any record';
      const made = { wins, planned: plan?.draft.edits } as const;
      const recorded = await inTime(request, rememberFold(memory, fullConversation, fold, edits, made));
      if (recorded !== 'recorded') return { status: 'already sent', foundFolds: recorded.alreadySent };
      return { status: 'saved', edits, known: Promise.resolve() };
    }
    if (edits.length > 0) await inTime(request, keepOriginals(memory, fullConversation, edits));
  } catch (error) {
    const status = isUnanswered(error) ? 'unanswered' : 'refused';
    return { status, edits, known: Promise.resolve(), error };
  }
  // No mark is needed if the request is known to have been sent, or has only the end of a history, which says nothing about the conversation.
  if (sentAs !== undefined || conversation.previousReplyId !== undefined)
    return { status: 'saved', edits, known: Promise.resolve() };
  const meanwhile = memory.foldStore.recordedMeanwhile(memory.tenant, memory.clientLinks);
  if (meanwhile) return { status: 'already sent', foundFolds: meanwhile };
  const sent = { at: fold.at, limit: fold.limit };
  return { status: 'saved', edits, known: markSent(memory, found, sent) };
}

/** Returns the complete record of a fold, which includes the edits of the folds before it. */
function foldOf(
  { foldingDisabled, foldingDisabledSince, input, state, now }: OpenedRequest,
  { edits }: Draft,
  trial: PreparedRequest['trial'],
): NewFold {
  const shrinksFrom = input.shrinking?.isBound ? input.shrinking.from : undefined;
  return { edits, foldingDisabled, foldingDisabledSince, shrinksFrom, trial, at: now, limit: limitOf(state) };
}

/** Remembers an unstored fold in this process, so that the same request is sent the same way again. */
async function rememberHere({ opened, incoming, result, trial }: ProposedRequest): Promise<void> {
  const { memory, fullConversation, found, start } = opened;
  const here = withoutStore(memory);
  const fold = foldOf(opened, result, trial);
  if (result !== start || found?.fold.isUnsaved)
    await rememberFold(here, fullConversation, { ...fold, isUnsaved: true }, [], { wins: 'this fold' });
  else if (incoming.conversation.previousReplyId === undefined)
    await markSent(here, found, { at: fold.at, limit: fold.limit });
}
