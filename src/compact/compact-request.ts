/**
 * THE SPINE. One request: replay the fold made on its prefix, count, ask the triggers, fold where one demands it, check, keep the
 * originals, record the fold, and only then hand over the bytes to send.
 */
import { LeporelloError } from '../errors.ts';
import { leavesMemories } from '../conversation/original.ts';
import type { Demand } from '../triggers/trigger.ts';
import { demandInCounts } from './corrected.ts';
import { dropReasoning } from './drop-reasoning.ts';
import { demandFor, isSettled, limitOf } from './fold-demand.ts';
import { foldReport } from './fold-report.ts';
import { identityOf } from './identity.ts';
import type { KnownBefore } from './look-up.ts';
import { type Incoming, type Opened, openRequest } from './open-request.ts';
import { originalFinder, outcomeOf, searchedOf } from './outcome.ts';
import { type Draft, type Planned, planFold } from './plan.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { keepOriginals, rememberFold, settle } from './replay.ts';
import type { EngineRequest } from './request.ts';
import { demandAhead, type SummaryJob, summaryJob } from './summary-ahead.ts';
import { reservedTokens } from './trigger-state.ts';
import type { Workshop } from './workshop.ts';

/** Rejects where the original is to go out. */
export async function compactRequest(
  workshop: Workshop,
  request: EngineRequest,
  incoming: Incoming,
): Promise<Prepared> {
  const opened = await openRequest(workshop, request, incoming);
  const { input, start, alone, gauge, state } = opened;
  const { conversation, known } = incoming;
  const { settled } = known.ledger;
  const demand = demandFor(workshop.options.triggers, state, { refusal: request.refusal, settled });
  const planned = plannedFor(workshop, request, opened, demand);
  if (alone && !planned && start.edits.length === 0) return leftAlone(incoming, opened);
  if (input.isTooLate())
    throw new LeporelloError('deadline', 'Folding took longer than it may; the original goes out.');
  const result = planned?.draft ?? start;
  const kept = await keep(workshop, request, { opened, incoming, demand, result });
  // Another instance has sent this very request meanwhile: so it goes out again.
  if ('settled' in kept)
    return compactRequest(workshop, request, { ...incoming, known: { ...known, ledger: kept.settled } });
  for (const edit of result.shrinks) workshop.kept.add(edit);
  const { memory, asSent, prices, window } = opened;
  const { links } = memory;
  const expected = gauge.correction.correct(result.tokens);
  const draft = { ...result, tokens: expected };
  const sending = workshop.send({ request, conversation, links, whole: asSent, draft, prices, alone });
  const counted = workshop.options.mode === 'observe' ? opened.before : result.tokens;
  const edits = [...result.edits, ...result.shrinks];
  return {
    outcome: outcomeOf(edits, planned?.steps),
    body: sending.body,
    mayGoAsItCame: conversation.body === request.body,
    identity: identityOf(conversation, links),
    recallTool: result.offers ? input.recallTool?.name : undefined,
    original: originalFinder(asSent, edits),
    searched: searchedOf(result.edits, result.shrinks),
    remember: (ghost) => workshop.options.ghosts.record(request.tenant, links.at(-1)!, ghost),
    keepReply: (knownAs, reply) => workshop.options.keptReplies.record(request.tenant, knownAs, reply),
    room:
      window.tokens === undefined
        ? undefined
        : window.tokens - reservedTokens(asSent, window, false) - expected,
    counter: opened.tokenCounter,
    prompt: { counted, came: opened.before, expected: gauge.correction.correct(counted) },
    known: kept.known,
    learn: (reported) => gauge.learn(counted, reported),
    summary: planned ? undefined : summaryFor(workshop, opened, result),
    report: {
      ...foldReport(
        { conversation, asSent, input, start, result, demand, planned, kept: kept.edits },
        opened,
      ),
      ...sending.report,
    },
  };
}

function plannedFor(
  { options }: Workshop,
  { refusal }: EngineRequest,
  { input, start, alone, gauge }: Opened,
  demand: Demand | undefined,
): Planned | undefined {
  if (refusal?.reason === 'reasoning') return dropReasoning(input, start);
  if (!demand || (alone && !demand.force)) return undefined;
  return planFold(input, start, demandInCounts(demand, gauge.correction), options.strategies);
}

function leftAlone({ conversation }: Incoming, { memory, gauge, before }: Opened): Prepared {
  return {
    ...unprepared(conversation.body, { status: 'untouched', reason: 'left alone' }, conversation),
    identity: identityOf(conversation, memory.links),
    learn: (reported) => gauge.learn(before, reported),
  };
}

type Outgoing = {
  readonly opened: Opened;
  readonly incoming: Incoming;
  readonly demand: Demand | undefined;
  readonly result: Draft;
};

/** `edits`: those whose originals were not kept before. `known`: see `Prepared`. */
type Kept = { readonly edits: Draft['edits']; readonly known: Promise<void> };

/** Before anything is sent: the fold, and the originals of all that it and the shrinks take away. Rejects with `store-failed`. */
async function keep(
  workshop: Workshop,
  { refusal }: EngineRequest,
  { opened, incoming, demand, result }: Outgoing,
): Promise<Kept | { readonly settled: KnownBefore['ledger'] }> {
  const { memory, asSent, found, alone, input, start, state, now, isThroughout } = opened;
  const { conversation, known } = incoming;
  const { settled } = known.ledger;
  const sent = { at: now, limit: limitOf(state) };
  const shrinksFrom = input.shrinking?.isBound ? input.shrinking.from : undefined;
  const replayed = new Set(start.edits);
  const edits = [...result.edits, ...result.shrinks].filter(
    (edit) => !replayed.has(edit) && !workshop.kept.has(edit),
  );
  const { recallOffers } = workshop.options;
  const { offer } = known;
  // The store may have the originals from another agent that met the same: then they are no news, and this agent is.
  const isNews = offer !== undefined && (leavesMemories(edits) || !offer.isAgentFolded);
  const isNeeded = leavesMemories(result.edits) || leavesMemories(result.shrinks);
  const agent = isNews && isNeeded ? [recallOffers.agentRecordOf(offer.opening)] : [];
  const beside = offer ? [recallOffers.recordOf(offer.opening, isThroughout), ...agent] : [];
  const isNew = result !== start || (shrinksFrom !== found?.fold.shrinksFrom && !isSettled(settled, state));
  if (isNew) {
    const fold = { edits: result.edits, alone, shrinksFrom, ...sent };
    const givesWayTo = refusal || settled ? undefined : demand?.force ? 'folds' : 'all';
    const recorded = await rememberFold(memory, asSent, fold, { removed: edits, beside }, givesWayTo);
    return recorded === 'recorded' ? { edits, known: Promise.resolve() } : recorded;
  }
  await keepOriginals(memory, asSent, { removed: edits, beside: agent });
  const isKnown = settled !== undefined || conversation.goesOnFrom !== undefined;
  return { edits, known: isKnown ? Promise.resolve() : settle(memory, found, sent, beside) };
}

/** The summary that the next fold will need, where there is one to be written by now. */
function summaryFor(
  { options, summaryNotes }: Workshop,
  { alone, state, memory, input, gauge }: Opened,
  result: Draft,
): SummaryJob | undefined {
  const { summaries, triggers, mode } = options;
  const ahead = summaries && !alone ? demandAhead(triggers, state) : undefined;
  if (!summaries || !ahead || mode === 'observe') return undefined;
  const demand = demandInCounts(ahead, gauge.correction);
  return summaryJob({ ...summaries, notes: summaryNotes }, memory, input, result, demand);
}
