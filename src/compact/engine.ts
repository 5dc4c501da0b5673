/**
 * THE SPINE. One request: read it, replay the fold made on its prefix, count, ask the triggers, fold where one demands it, check,
 * keep the originals, record the fold, and only then hand over the bytes to send. Whatever fails, the original bytes go out.
 */
import type { Conversation } from '../conversation/conversation.ts';
import { LeporelloError } from '../errors.ts';
import { newestGoal } from '../triggers/newest-goal.ts';
import { type Demand, firstDemand } from '../triggers/trigger.ts';
import { compressionsOf, correctedEconomy, correctedSteps, demandInCounts, gaugeOf } from './corrected.ts';
import { createConversationCounter } from '../tokens/count-conversation.ts';
import { deadWeight } from './dead-weight.ts';
import { dropReasoning } from './drop-reasoning.ts';
import { idleMs, longest } from './idle.ts';
import { identityOf, tokensKept } from './identity.ts';
import { withGhosts } from './ghosts.ts';
import { withKeptReply } from './kept-replies.ts';
import type { KnownBefore } from './look-up.ts';
import type { EngineOptions, ModelWindow } from './options.ts';
import { callsOf, memoriesOf, originalFinder, outcomeOf } from './outcome.ts';
import { type PlanInput, planFold } from './plan.ts';
import { type Prepared, unprepared } from './prepared.ts';
import { foldFor, keepOriginals, leaveAlone, rememberFold, replayFold, settle } from './replay.ts';
import type { EngineRequest } from './request.ts';
import { shrinkingOf } from './shrinks.ts';
import { demandAhead, summaryJob } from './summary-ahead.ts';
import { whatIsLarge } from './unfit.ts';
import {
  foldMemory,
  linksAsCame,
  lookUpIn,
  openWorkshop,
  planInput,
  repeatsIn,
  type Workshop,
} from './workshop.ts';

export interface Engine {
  /** Never rejects: what goes wrong is the outcome `failed`, with the body as it came. */
  prepare(request: EngineRequest): Promise<Prepared>;
  /**
   * Folds this conversation from here on only where it would not fit, for when its provider took it only without our edits. Never
   * rejects.
   */
  leaveAlone(request: EngineRequest): Promise<void>;
  /** Takes in the tokens a provider reported for a prompt that was sent without `prepare`. Never rejects. */
  learn(request: EngineRequest, reported: number): Promise<void>;
}

/** An engine from its parts; `createLeporello` has the usual ones. What it remembers of blocks is bounded by `maxParts`. */
export function createEngine(options: EngineOptions): Engine {
  const workshop = openWorkshop(options);
  return {
    async prepare(request) {
      let conversation: Conversation | undefined;
      try {
        const came = request.codec.read(request.body, workshop.reading);
        conversation = came;
        const asked = lookUpIn(workshop, request, came, linksAsCame(workshop, request, came));
        conversation = withKeptReply(request.codec, workshop.reading, came, await asked.reply);
        const prepared = await compact(workshop, request, { came, conversation, known: await asked.rest });
        return options.mode === 'observe' ? observed(prepared, request, conversation) : prepared;
      } catch (error) {
        const status = isUnread(error) ? 'untouched' : 'failed';
        // Not what came where that goes on from a private call, for no provider takes it.
        const body = conversation?.body ?? request.body;
        return unprepared(body, { status, reason: reasonOf(error) }, conversation);
      }
    },
    async leaveAlone(request) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        // One without its history begins like many others, and no fold is ever made of it.
        if (conversation.goesOnFrom !== undefined) return;
        await leaveAlone(foldMemory(workshop, request, conversation, conversation));
      } catch {
        // Then the next refusal is met anew.
      }
    },
    async learn(request, reported) {
      try {
        const conversation = request.codec.read(request.body, workshop.reading);
        const counter = await options.counterFor(conversation.model);
        const links = linksAsCame(workshop, request, conversation);
        const counts = createConversationCounter({ counter, memo: workshop.counts });
        gaugeOf(workshop.calibration, request.tenant, conversation, links).learn(
          counts.total(conversation),
          reported,
        );
      } catch {
        // Then it teaches nothing.
      }
    },
  };
}

/** The client's own bytes, with the report of what would have been sent. */
function observed(prepared: Prepared, { body }: EngineRequest, conversation: Conversation): Prepared {
  const { report, prompt, learn, identity } = prepared;
  return { ...unprepared(body, { status: 'observed' }, conversation), report, prompt, learn, identity };
}

/** What is to be compacted: what came, that with the reply it goes on from by its right name, and what is known of it. */
type Incoming = {
  readonly came: Conversation;
  readonly conversation: Conversation;
  readonly known: KnownBefore;
};

async function compact(workshop: Workshop, request: EngineRequest, incoming: Incoming): Promise<Prepared> {
  const { options } = workshop;
  const { conversation, known } = incoming;
  const tokenCounter = await options.counterFor(conversation.model);
  const window = await options.windowFor(conversation.model);
  const { whole: asSent, memory, found } = wholeOf(workshop, request, incoming);
  const { links } = memory;
  const alone = found?.fold.alone ?? false;
  const repeats = repeatsIn(workshop, request, asSent);
  const shrinking = shrinkingOf({ ...request, settings: options.shrinks, repeats }, asSent, found?.fold);
  const ready = known.ready.find(({ upTo, link }) => memory.whole[upTo] === link);
  const notReady = () => workshop.summaryNotes.find(memory.tenant, memory.whole) ?? 'none was begun in time';
  const input: PlanInput = {
    ...planInput(workshop, request, asSent, tokenCounter),
    shrinking,
    ready,
    ...(options.summaries && { notReady }),
  };
  const start = replayFold(input, found);
  const gauge = gaugeOf(workshop.calibration, request.tenant, conversation, links);
  const { correction } = gauge;
  const before = input.counter.total(conversation);
  const prices = await options.pricesFor?.(conversation.model);
  const now = options.clock?.();
  const last = workshop.lastSent.find(links);
  const state = {
    economy:
      prices &&
      correctedEconomy(
        {
          ...prices,
          keptMs: longest(prices.keptMs, conversation.keptMs),
          dead: (usedFor) => deadWeight(input, start, usedFor),
        },
        correction,
      ),
    idleMs:
      now === undefined
        ? undefined
        : idleMs({ conversation: incoming.came, last, sent: known.ledger.sent, now }),
    tokens: correction.correct(start.tokens),
    window: window.tokens,
    reserved: reservedTokens(asSent, window, input.recallTool !== undefined),
    messages: start.messages,
  };
  const { refusal } = request;
  const ahead = options.summaries && !alone ? demandAhead(options.triggers, state) : undefined;
  const { settled } = known.ledger;
  const limit = window.tokens === undefined ? undefined : window.tokens - state.reserved;
  const isSettled = settled !== undefined && (settled.limit ?? 0) <= (limit ?? Number.POSITIVE_INFINITY);
  const demand =
    refusal?.reason === 'too long'
      ? overflowDemand(refusal.atMost)
      : // What was sent before is sent so again, whatever was learned or went by since; but not to a model that takes less.
        isSettled
        ? undefined
        : firstDemand(options.triggers, state);
  const planned =
    refusal?.reason === 'reasoning'
      ? dropReasoning(input, start)
      : demand && (demand.force || !alone)
        ? planFold(input, start, demandInCounts(demand, correction), options.strategies)
        : undefined;
  if (alone && !planned && start.edits.length === 0) {
    const learn = (reported: number) => gauge.learn(before, reported);
    return {
      ...unprepared(conversation.body, { status: 'untouched', reason: 'left alone' }, conversation),
      identity: identityOf(conversation, links),
      learn,
    };
  }
  const result = planned?.draft ?? start;
  if (input.isTooLate())
    throw new LeporelloError('deadline', 'Folding took longer than it may; the original goes out.');
  const shrinksFrom = shrinking?.isBound ? shrinking.from : undefined;
  const fold = { edits: result.edits, alone, shrinksFrom, at: now, limit };
  const replayed = new Set(start.edits);
  const unkept = [...result.edits, ...result.shrinks].filter(
    (edit) => !replayed.has(edit) && !workshop.kept.has(edit),
  );
  let settling = Promise.resolve();
  if (result !== start || (shrinksFrom !== found?.fold.shrinksFrom && !isSettled)) {
    const givesWayTo = refusal || settled ? undefined : demand?.force ? 'folds' : 'all';
    const recorded = await rememberFold(memory, asSent, fold, unkept, givesWayTo);
    if (recorded !== 'recorded')
      return compact(workshop, request, { ...incoming, known: { ...known, ledger: recorded.settled } });
  } else {
    await keepOriginals(memory, asSent, unkept);
    if (!settled && conversation.goesOnFrom === undefined)
      settling = settle(memory, found, { at: now, limit });
  }
  for (const edit of result.shrinks) workshop.kept.add(edit);
  const { counter } = input;
  const expected = correction.correct(result.tokens);
  const draft = { ...result, tokens: expected };
  const sending = workshop.send({ request, conversation, links, whole: asSent, draft, prices, alone });
  const counted = options.mode === 'observe' ? before : result.tokens;
  return {
    outcome: outcomeOf([...result.edits, ...result.shrinks], planned?.steps),
    body: sending.body,
    mayGoAsItCame: conversation.body === request.body,
    identity: identityOf(conversation, links),
    recallTool: input.recallTool?.name,
    original: originalFinder(asSent, [...result.edits, ...result.shrinks]),
    remember: (ghost) => options.ghosts.record(request.tenant, links.at(-1)!, ghost),
    keepReply: (knownAs, reply) => options.keptReplies.record(request.tenant, knownAs, reply),
    room:
      window.tokens === undefined
        ? undefined
        : window.tokens - reservedTokens(asSent, window, false) - expected,
    counter: tokenCounter,
    prompt: { counted, came: before, expected: correction.correct(counted) },
    known: settling,
    learn: (reported) => gauge.learn(counted, reported),
    summary:
      ahead && options.summaries && !planned && options.mode !== 'observe'
        ? summaryJob(
            { ...options.summaries, notes: workshop.summaryNotes },
            memory,
            input,
            result,
            demandInCounts(ahead, correction),
          )
        : undefined,
    report: {
      model: conversation.model,
      counter: counter.name,
      window: window.tokens,
      trigger: demand?.trigger,
      replayed: start.edits.length,
      steps: correctedSteps(planned?.steps ?? [], correction),
      compressions: compressionsOf(unkept, input, correction),
      shrunk: result.shrinks.length,
      memories: memoriesOf([...result.edits, ...result.shrinks]),
      ghosts: asSent === conversation ? 0 : callsOf(asSent, input.recallTool),
      tokensBefore: correction.correct(before),
      tokensAfter: expected,
      tokensKept: planned && tokensKept(start, planned.draft, counter, correction),
      bytesBefore: conversation.body.length,
      ...sending.report,
      unfit: whatIsLarge(result, counter, demand?.atMost, correction),
    },
  };
}

/**
 * The conversation as the model knows it: with what it recalled in private, but where it is left alone because its provider refused our
 * edits.
 */
function wholeOf(workshop: Workshop, request: EngineRequest, { came, conversation, known }: Incoming) {
  const added = conversation.messages.length - came.messages.length;
  const { codec } = request;
  const { folds } = known.ledger;
  const isAlone = folds[0]?.fold.alone ?? false;
  const whole = isAlone
    ? conversation
    : withGhosts({ codec, reading: workshop.reading }, conversation, known.ghosts, added);
  const memory = foldMemory(workshop, request, came, whole);
  return { whole, memory, found: foldFor(folds, whole, memory.whole) };
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

/**
 * Tokens kept free: for the reply what the client asks for, but no more than a quarter of the window, so that a fold stays possible;
 * and a twentieth for what the model may recall on the way to it.
 */
function reservedTokens(conversation: Conversation, window: ModelWindow, recalls: boolean): number {
  const size = window.tokens ?? Number.POSITIVE_INFINITY;
  const reply = window.holdsReply ? Math.min(conversation.maxOutputTokens ?? 1_024, Math.floor(size / 4)) : 0;
  return reply + (recalls ? Math.min(8_000, Math.floor(size / 20)) : 0);
}

function isUnread(error: unknown): boolean {
  return LeporelloError.isInstance(error) && error.code === 'not-this-format';
}

/** Our own errors say no content; of others only the kind is told. */
function reasonOf(error: unknown): string {
  if (LeporelloError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? `unexpected ${error.name}` : 'unexpected error';
}
