/** Plans a fold: runs the strategies in order until the demand is met, and undoes edits whose result is invalid or larger. Pure, except for memos. */
import type { Cache } from '../caches.ts';
import type { FormatRules, ReadContext, RecallTool } from '../codecs/codec.ts';
import type { Conversation, TextPlace } from '../conversation/conversation.ts';
import {
  type Edit,
  lastMessageOf,
  leavesOriginals,
  withOriginalIds,
  withoutTakenIn,
} from '../conversation/edit.ts';
import { runInSlices, type Slices, runInPauses, type Steps } from '../conversation/steps.ts';
import { placeKey, systemMessages } from '../conversation/turns.ts';
import { sparingReads } from './at-work.ts';
import { withKeptTexts, withoutInView } from './in-view.ts';
import { newFault, newProblems, noteSound } from './protect.ts';
import { type Shrink, savedByMessage } from './references.ts';
import { type ShrinkInput, shrinksOf } from './shrinks.ts';
import { readInSlices } from '../codecs/read-body.ts';
import type { Compression, FoldStep } from '../receipts/receipt.ts';
import type { FoundSummary } from '../store/ready-summaries.ts';
import { withoutDropped } from '../strategies/lib/editable-texts.ts';
import type { FoldView, Protection, Strategy } from '../strategies/strategy.ts';
import { amount, paysOff } from '../triggers/limits.ts';
import type { Demand, FoldOnly } from '../triggers/trigger.ts';

/** The input of a fold. */
export type PlanInput = ShrinkInput & {
  /** Lets other requests run between two steps. Default: nothing is paused. */
  readonly slices?: Slices | undefined;
  readonly reading: ReadContext;
  readonly minResultBytes: number;
  /** Undefined when no strategy replaces media. */
  readonly keepNewestMedia?: number | undefined;
  /** True when the client keeps folded messages in its history, and offers the recall tool itself. */
  readonly isHistoryKept: boolean;
  /** True when the recall tool is offered even if there is nothing to recall. */
  readonly isOffered: boolean;
  /** The tokens of the recall tool's definition, by format, counter and tool name. */
  readonly toolCosts: Cache<string, number>;
  /** True when each step is checked as closely as the whole fold, after the whole one failed its check. */
  readonly checksEachStep?: boolean;
  /** True when no time is left for folds that only save money. A forced fold ignores it. */
  readonly isTooLate: () => boolean;
  /** Tokens of the request before the fold; undefined before planning. */
  readonly tokensBefore?: number;
  /** A summary that was written ahead, or why there is none, and other texts that were. */
  readonly ready?: FoundSummary | undefined;
  readonly written?: FoldView['written'];
  readonly notReady?: () => string | undefined;
  /** Compressions by the text that a strategy put in. */
  readonly compressions: Map<string, Compression>;
};

/** A conversation under edits: the bytes that would be sent, read again and counted. */
export type Draft = {
  /** The edits of folds, then those that shorten results on arrival. */
  readonly edits: readonly Edit[];
  readonly shrinks: readonly Shrink[];
  readonly body: Uint8Array;
  /** The conversation read from `body`. Without edits it is the client's own, which may lack the recall tool. */
  readonly sent: Conversation;
  /** True when the body offers the recall tool. */
  readonly offers: boolean;
  readonly tokens: number;
  /** The number of messages that would be sent, without system messages. */
  readonly messages: number;
};

/** A new fold, and the steps that made it. */
export type FoldPlan = { readonly draft: Draft; readonly steps: readonly FoldStep[] };

/** How often one strategy may propose again when its estimate fell short. */
const maxRounds = 6;

/** Applies edits to the conversation, and counts the result. `references: false` shows every result in full, as if it could refer to no other. */
export async function draft(
  input: PlanInput,
  edits: readonly Edit[],
  { references = true }: { readonly references?: boolean } = {},
): Promise<Draft> {
  const { codec, conversation } = input;
  const shrinks = await runInSlices(shrinksOf(input, edits, { references }), input.slices);
  const all = [...edits, ...shrinks];
  const offers = input.recallTool !== undefined && (input.isOffered || leavesOriginals(all));
  const recallTool = offers && !input.isHistoryKept ? input.recallTool : undefined;
  const body = await runInPauses(input.slices, () =>
    codec.write(conversation, all, recallTool ? { recallTool } : {}),
  );
  const isUnedited = all.length === 0;
  const sent = isUnedited ? conversation : await readInSlices(codec, body, input.reading, input.slices);
  await countInSlices(input, sent);
  const tokens = input.counter.total(sent);
  const added = isUnedited ? await toolCost(input, recallTool, body) : 0;
  const messages = sent.messages.length - systemMessages(sent).length;
  return { edits, shrinks, body, sent, offers, tokens: tokens + added, messages };
}

/** Counts new blocks, and lets other requests run in between. */
export async function countInSlices(
  { counter, slices }: Pick<PlanInput, 'counter' | 'slices'>,
  conversation: Conversation,
): Promise<void> {
  if (slices) await runInSlices(countInSteps(counter, conversation), slices);
}

function* countInSteps(counter: PlanInput['counter'], conversation: Conversation): Steps<void> {
  for (const block of counter.uncounted(conversation)) {
    yield* counter.blockInSteps(conversation, block);
    yield;
  }
  yield* counter.messagesInSteps(conversation);
}

/** Returns the tokens of the recall tool's definition. They are measured once: reading every unedited request again would double its cost. */
async function toolCost(
  { codec, conversation, counter, reading, toolCosts, slices }: PlanInput,
  recallTool: RecallTool | undefined,
  body: Uint8Array,
): Promise<number> {
  if (!recallTool) return 0;
  const key = `${codec.name} ${counter.name} ${recallTool.name} ${recallTool.notes?.name}`;
  const known = toolCosts.get(key);
  if (known !== undefined) return known;
  const offering = await readInSlices(codec, body, reading, slices);
  const preambleTokens = (one: Conversation) =>
    one.preamble.reduce((sum, block) => sum + counter.block(one, block), 0);
  const cost = preambleTokens(offering) - preambleTokens(conversation);
  toolCosts.set(key, cost);
  return cost;
}

/**
 * Plans a fold whose body is sound. Independent code reads the body again; if that finds a fault, the fold is planned again with a check of
 * every step, which leaves out the step that broke it.
 */
export async function planFold(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<FoldPlan> {
  const planned = await foldOnce(input, before, demand, strategies);
  const fault = await faultIn(input, before, planned.draft);
  if (fault === undefined) return planned;
  const checked = await foldOnce({ ...input, checksEachStep: true }, before, demand, strategies);
  if ((await faultIn(input, before, checked.draft)) === undefined) return checked;
  return { draft: before, steps: [{ strategy: 'check', edits: 0, tokensSaved: 0, refused: fault }] };
}

/** Returns the fault of a new body; undefined when it is sound. */
async function faultIn(
  { codec, conversation, slices }: PlanInput,
  before: Draft,
  made: Draft,
): Promise<string | undefined> {
  if (made === before) return undefined;
  const fault = await runInPauses(slices, () => newFault(codec.rules, conversation.body, made.body));
  if (fault === undefined) noteSound(made.edits);
  return fault;
}

async function foldOnce(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<FoldPlan> {
  const plan = await runAll(input, before, demand, strategies);
  const { draft: after, steps } = plan;
  const isTooMuch = demand.atMost !== undefined && after.tokens > demand.atMost;
  // Results that were compressed are not also cut. If compressing was not enough, cutting alone may be.
  const others = strategies.filter(({ reach }) => reach !== 'newest');
  if (isTooMuch && steps.some(({ strategy }) => !others.some(({ name }) => name === strategy)))
    return foldOnce(input, before, demand, others);
  // Content that only stays in view gives way if the request would not fit.
  if (isTooMuch && demand.force && !input.protects.hasGivenWay)
    return foldOnce({ ...input, protects: withoutInView(input.protects) }, before, demand, strategies);
  return paysOff(before, after, demand) ? { draft: after, steps } : { draft: before, steps: [] };
}

export async function runAll(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<FoldPlan> {
  const steps: FoldStep[] = [];
  const references = before.shrinks.filter(({ refers }) => refers !== undefined);
  // Every step is counted with the recall tool that the fold adds, so that no single step has to make up for it.
  const offering = { ...input, isOffered: true, tokensBefore: before.tokens };
  const isAsPlanned = references.length === 0 && (before.offers || !input.recallTool);
  const start = isAsPlanned ? before : await draft(offering, before.edits, { references: false });
  const plan: PlanContext = { input: offering, demand, replayed: before.edits, references };
  let current = start;
  for (const strategy of strategies) {
    if (strategy.reach === 'everything' && !demand.force) continue;
    if (!demand.force && input.isTooLate()) break;
    const outcome = await runStrategy(plan, current, strategy);
    if (outcome.step) steps.push(outcome.step);
    current = outcome.draft;
  }
  // The final form: after the fold, a result may refer to another one than before.
  const isFinal = input.shrinking?.referenceMemo === undefined && isAsPlanned;
  const after = current === start ? before : isFinal ? current : await draft(input, current.edits);
  return { draft: after, steps };
}

/**
 * The context in which strategies run. They see every result in full: if a strategy removed lines that another result refers to, these lines
 * would return there, and the request might not fit.
 */
type PlanContext = {
  readonly input: PlanInput;
  readonly demand: Demand;
  /** The edits of earlier folds, which are complete and were sent already. */
  readonly replayed: readonly Edit[];
  /** The shrinks that refer to other results. */
  readonly references: readonly Shrink[];
};

async function runStrategy(
  plan: PlanContext,
  start: Draft,
  strategy: Strategy,
): Promise<{ draft: Draft; step?: FoldStep }> {
  const { input, demand } = plan;
  const startsOver = strategy.reach !== 'history';
  let best = start;
  let refused: string | undefined;
  // A demand that names messages wants everything that they can save.
  let wanted = demand.only ? Number.POSITIVE_INFINITY : excess(start, demand, strategy);
  for (let round = 0; round < maxRounds && wanted > 0; round++) {
    if (!demand.force && input.isTooLate()) break;
    // A strategy that shortens texts does so once to each, so it starts over with a larger excess; one that drops content continues.
    const from = startsOver ? start : best;
    const view = viewOf(plan, from, wanted);
    const proposed = strategy.proposeInSteps
      ? await runInSlices(strategy.proposeInSteps(view), input.slices)
      : strategy.propose(view);
    if (proposed.length === 0) break;
    const next = await tryEdits(plan, from, proposed, strategy.name);
    if ('refused' in next) {
      refused = next.refused;
      break;
    }
    if (amount(next, demand) >= amount(best, demand)) break;
    best = next;
    const left = excess(best, demand, strategy);
    wanted = demand.only ? wanted : left <= 0 ? 0 : startsOver ? wanted + left * 1.5 + 50 : left;
  }
  const edits = await runInSlices(countOfNew(best.edits, start.edits), input.slices);
  if (edits === 0 && refused === undefined) return { draft: start };
  const step = { strategy: strategy.name, edits, tokensSaved: start.tokens - best.tokens };
  return { draft: best, step: refused === undefined ? step : { ...step, refused } };
}

function* countOfNew(edits: readonly Edit[], before: readonly Edit[]): Steps<number> {
  const known = new Set<Edit>();
  for (const edit of before) if (known.add(edit).size % 512 === 0) yield;
  return edits.filter((edit) => !known.has(edit)).length;
}

async function tryEdits(
  plan: PlanContext,
  from: Draft,
  proposed: readonly Edit[],
  by: string,
): Promise<Draft | { readonly refused: string }> {
  const { input } = plan;
  const completed = await runInSlices(completeInSteps(plan, from, proposed, by), input.slices);
  if (completed.status === 'refused') return { refused: completed.reason };
  const next = await draft(input, completed.edits, { references: false });
  const [broken] = newProblems(input.codec.rules, from.sent, next.sent);
  if (broken) return { refused: `${broken.rule}: ${broken.detail}` };
  const fault = input.checksEachStep && newFault(input.codec.rules, input.conversation.body, next.body);
  return fault ? { refused: fault } : next;
}

/** Returns all edits of the fold with the proposed ones, with everything that these need to be valid and to be recalled. */
function* completeInSteps(
  { input, demand, replayed }: PlanContext,
  from: Draft,
  proposed: readonly Edit[],
  by: string,
): Steps<ReturnType<FormatRules['complete']>> {
  const wasSent = new Set(replayed);
  const sent = from.edits.filter((edit) => wasSent.has(edit));
  const withKept = proposed.map((edit) => withKeptTexts(input.protects, edit));
  const newEdits = [...from.edits.filter((edit) => !wasSent.has(edit)), ...withKept];
  const completed = input.codec.rules.complete(input.conversation, newEdits, demand.force);
  if (completed.status === 'refused') return completed;
  yield;
  const dropped = partsDroppedBy(sent);
  const added = completed.edits.filter((edit) => edit.kind !== 'drop-part' || !dropped.has(placeKey(edit)));
  yield;
  // No stub was sent for what this fold itself drops, so it needs no original of its own.
  const withIds = withoutDropped(withOriginalIds(input.conversation, added, input.idOf));
  yield;
  const edits = withoutTakenIn([...sent, ...withIds.map((edit) => (edit.by ? edit : { ...edit, by }))]);
  return { status: 'ok', edits };
}

/** Returns the keys of the parts that edits drop. */
function partsDroppedBy(edits: readonly Edit[]): ReadonlySet<string> {
  return new Set(edits.flatMap((edit) => (edit.kind === 'drop-part' ? [placeKey(edit)] : [])));
}

/** Returns the view of a draft that strategies get. */
export function viewOf(
  { input, demand, references }: Omit<PlanContext, 'replayed'>,
  from: Draft,
  wanted: number,
): FoldView {
  const { conversation, counter, codec } = input;
  const { only } = demand;
  const isTaken = (message: number) => !only || only.smaller.has(message) || only.gone.has(message);
  const unaffected = references.filter(({ refers }) => !refers?.some(({ message }) => isTaken(message)));
  const stubs = new Map([...from.shrinks, ...unaffected].map(({ at, stub }) => [textKey(at), stub]));
  const saved = savedByMessage(from.shrinks);
  return {
    conversation,
    edits: from.edits,
    shrunk: (at) => stubs.get(textKey(at)),
    excess: { unit: demand.goal.unit, amount: wanted },
    isForced: demand.force,
    mustSave: demand.atMost === undefined ? undefined : from.tokens - demand.atMost,
    tokensBefore: input.tokensBefore ?? from.tokens,
    isHistoryKept: input.isHistoryKept,
    ready: input.ready,
    written: input.written,
    ...(input.notReady && { notReady: input.notReady }),
    reportCompression: (text, compression) => input.compressions.set(text, compression),
    measure: {
      text: (text) => counter.text(text),
      textInSteps: (text) => counter.textInSteps(text),
      part: (block, part) => counter.part(conversation, block, part),
      media: (block, media) => counter.media(conversation, block, media),
      message: (index) => counter.message(conversation, index) - (saved.get(index) ?? 0),
    },
    protects: demand.only ? onlyThese(demand.only, sparingReads(input)) : input.protects,
    mayEdit: (edit) =>
      !(demand.only && isElsewhere(demand.only, edit)) && codec.rules.mayEdit(conversation, edit),
    idOf: input.idOf,
    recallTool: input.recallTool?.name,
    minResultBytes: input.minResultBytes,
  };
}

function textKey(at: TextPlace): string {
  return `${placeKey(at)}.${at.text}`;
}

function onlyThese({ smaller, gone }: FoldOnly, protects: Protection): Protection {
  return {
    ...protects,
    message: (index) => !(smaller.has(index) || gone.has(index)) || protects.message(index),
  };
}

function isElsewhere({ smaller, gone }: FoldOnly, edit: Edit): boolean {
  return edit.kind === 'drop-message'
    ? !gone.has(edit.message)
    : edit.kind !== 'insert-message' && !smaller.has(lastMessageOf(edit));
}

/** Returns how much a strategy must still save. A strategy with a wider reach is used only for a smaller excess. */
function excess(state: Draft, demand: Demand, { reach }: Strategy): number {
  const now = amount(state, demand);
  const { goal, newest, atMost } = demand;
  switch (reach) {
    case 'history':
      return now - goal.target;
    case 'newest':
      return newest && now > newest.above ? now - newest.target : 0;
    case 'everything':
      return now - (atMost ?? goal.target);
  }
}

// Reasoning that the provider refused. Signed reasoning is bound to the messages before it. If a fold or a hidden recall in front of it was lost
// (another gateway, a lost store), the provider would refuse it in every request, so all reasoning is dropped.

/** Plans a draft without reasoning. Undefined when there is none, or when the result would not be valid. */
export async function dropReasoning(input: PlanInput, start: Draft): Promise<FoldPlan | undefined> {
  const droppedBefore = partsDroppedBy(start.edits);
  const dropped = input.conversation.messages.flatMap(({ index: message, parts }) =>
    parts.flatMap(({ type }, part): readonly Edit[] =>
      type === 'reasoning' && !droppedBefore.has(placeKey({ message, part }))
        ? [{ kind: 'drop-part', message, part, memory: undefined, by: 'drop-reasoning' }]
        : [],
    ),
  );
  if (dropped.length === 0) return undefined;
  const result = await draft(input, [...start.edits, ...dropped]);
  if (newProblems(input.codec.rules, start.sent, result.sent).length > 0) return undefined;
  if (newFault(input.codec.rules, input.conversation.body, result.body) !== undefined) return undefined;
  const tokensSaved = start.tokens - result.tokens;
  return { draft: result, steps: [{ strategy: 'drop-reasoning', edits: dropped.length, tokensSaved }] };
}
