/**
 * Makes a fold: asks the strategies in order until the demand is met, and checks after each that the result is valid, smaller and
 * really counts less. Whatever fails that is taken back. Pure but for the memos it reads.
 */
import type { ReadContext, RecallTool } from '../codecs/codec.ts';
import type { Conversation, TextPlace } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf, withoutTakenIn } from '../conversation/edit.ts';
import { leavesOriginals, withOriginalIds } from '../conversation/original.ts';
import { placeKey } from '../conversation/pairing.ts';
import { newFault, newProblems, noteSound } from './protect.ts';
import { type Shrink, savedByMessage } from './references.ts';
import { type ShrinkInput, shrinkInSlices, shrinksOf } from './shrinks.ts';
import { readInSlices } from '../codecs/slices.ts';
import type { Compression } from '../receipts/compression.ts';
import type { FoldStep } from '../receipts/receipt.ts';
import type { FoundSummary } from '../store/ready-summaries.ts';
import type { FoldView, Protection, Strategy } from '../strategies/strategy.ts';
import type { Demand, FoldOnly } from '../triggers/trigger.ts';

/** Everything a fold is made from. */
export type PlanInput = ShrinkInput & {
  readonly reading: ReadContext;
  readonly compressionBytesThreshold: number;
  /** Whether the client keeps what is folded here, and offers the recall tool itself. */
  readonly isHistoryKept: boolean;
  /** Whether the recall tool stands there even if nothing is to be recalled: what was sent before had it, or this agent's will need it. */
  readonly isOffered: boolean;
  /** Tokens that offering the recall tool costs, by what decides them. */
  readonly toolCosts: Map<string, number>;
  /** Whether each step of a fold is checked as the whole is: one was found to be broken. */
  readonly isWary?: boolean;
  /** Tells whether the time for folds that only save money is over. A forced fold goes on. */
  readonly isTooLate: () => boolean;
  readonly ready?: FoundSummary | undefined;
  readonly notReady?: () => string | undefined;
  /** What texts come to that strategies put in to compress others. */
  readonly compressions: Map<string, Compression>;
};

/** A conversation under edits: the bytes that would be sent, read again and counted. */
export type Draft = {
  /** Those of folds. */
  readonly edits: readonly Edit[];
  /** Those made at birth, beside them. */
  readonly shrinks: readonly Shrink[];
  readonly body: Uint8Array;
  /** The body read again; without any edit the client's own conversation, which differs from it by the recall tool at most. */
  readonly sent: Conversation;
  /** Whether the model is offered the recall tool. */
  readonly offers: boolean;
  readonly tokens: number;
  /** Messages without system, as they would be sent. */
  readonly messages: number;
};

/** A fold made anew, and by which steps. */
export type Planned = { readonly draft: Draft; readonly steps: readonly FoldStep[] };

/** How often one strategy is asked again when its estimate fell short. */
const mostRounds = 6;

/** `references: false`: with every result whole, as it stands when nothing that it refers to is left. */
export async function draft(
  input: PlanInput,
  edits: readonly Edit[],
  { references = true }: { readonly references?: boolean } = {},
): Promise<Draft> {
  const { codec, conversation } = input;
  await shrinkInSlices(input, edits);
  const shrinks = shrinksOf(input, edits, { references });
  const all = [...edits, ...shrinks];
  const offers = input.recallTool !== undefined && (input.isOffered || leavesOriginals(all));
  const recallTool = offers && !input.isHistoryKept ? input.recallTool : undefined;
  const body = codec.write(conversation, all, recallTool ? { recallTool } : {});
  const isAsItCame = all.length === 0;
  await input.slices?.pause();
  const sent = isAsItCame ? conversation : await readInSlices(codec, body, input.reading, input.slices);
  await input.slices?.pause();
  await countInSlices(input, sent);
  const tokens = input.counter.total(sent) + (isAsItCame ? await toolCost(input, recallTool, body) : 0);
  const messages = sent.messages.reduce((sum, { role }) => sum + Number(role !== 'system'), 0);
  return { edits, shrinks, body, sent, offers, tokens, messages };
}

/** Has the blocks counted that were not counted before. */
export async function countInSlices(
  { counter, slices }: Pick<PlanInput, 'counter' | 'slices'>,
  conversation: Conversation,
): Promise<void> {
  if (!slices) return;
  for (const block of counter.uncounted(conversation)) {
    if (slices.isOver()) await slices.pause();
    await counter.blockInSlices(conversation, block, slices);
  }
}

/** Measured once: most requests go out without edits, and reading those again for the sake of the tool would double their cost. */
async function toolCost(
  { codec, conversation, counter, reading, toolCosts, slices }: PlanInput,
  recallTool: RecallTool | undefined,
  body: Uint8Array,
): Promise<number> {
  if (!recallTool) return 0;
  const key = `${codec.name} ${counter.name} ${recallTool.name}`;
  const known = toolCosts.get(key);
  if (known !== undefined) return known;
  const offering = await readInSlices(codec, body, reading, slices);
  const ahead = (one: Conversation) =>
    one.preamble.reduce((sum, block) => sum + counter.block(one, block), 0);
  const cost = ahead(offering) - ahead(conversation);
  toolCosts.set(key, cost);
  return cost;
}

/**
 * A fold whose body is sound, or none. The body is read once more here, by other code than the one that made it; where that finds a
 * fault, the fold is made again with every step of it checked so, and what broke it is left out.
 */
export async function planFold(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<Planned> {
  const planned = await foldOnce(input, before, demand, strategies);
  await input.slices?.pause();
  const fault = faultIn(input, before, planned.draft);
  if (fault === undefined) return planned;
  const wary = await foldOnce({ ...input, isWary: true }, before, demand, strategies);
  if (faultIn(input, before, wary.draft) === undefined) return wary;
  return { draft: before, steps: [{ strategy: 'check', edits: 0, tokensSaved: 0, refused: fault }] };
}

/** Undefined for what was found sound before. */
function faultIn({ codec, conversation }: PlanInput, before: Draft, made: Draft): string | undefined {
  if (made === before) return undefined;
  const fault = newFault(codec.rules, conversation.body, made.body);
  if (fault === undefined) noteSound(made.edits);
  return fault;
}

async function foldOnce(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<Planned> {
  const plan = await runAll(input, before, demand, strategies);
  const { draft: after, steps } = plan;
  const isTooMuch = demand.atMost !== undefined && after.tokens > demand.atMost;
  // What was made smaller is not cut, too: where that is not enough, cutting alone may be.
  const others = strategies.filter(({ reach }) => reach !== 'newest');
  if (isTooMuch && steps.some(({ strategy }) => !others.some(({ name }) => name === strategy)))
    return foldOnce(input, before, demand, others);
  return paysOff(before, after, demand) ? { draft: after, steps } : { draft: before, steps: [] };
}

async function runAll(
  input: PlanInput,
  before: Draft,
  demand: Demand,
  strategies: readonly Strategy[],
): Promise<Planned> {
  const steps: FoldStep[] = [];
  const references = before.shrinks.filter(({ refers }) => refers !== undefined);
  // With the tool that comes with the fold, so that no step has to make up for it alone.
  const offering = { ...input, isOffered: true };
  const isAsPlanned = references.length === 0 && (before.offers || !input.recallTool);
  const start = isAsPlanned ? before : await draft(offering, before.edits, { references: false });
  const plan: Plan = { input: offering, demand, replayed: before.edits, references };
  let current = start;
  for (const strategy of strategies) {
    if (strategy.reach === 'everything' && !demand.force) continue;
    if (!demand.force && input.isTooLate()) break;
    const outcome = await runStrategy(plan, current, strategy);
    if (outcome.step) steps.push(outcome.step);
    current = outcome.draft;
  }
  // As it will be laid out from now on: with what went, a result may refer to another where it referred to none.
  const isFinal = input.shrinking?.repeats === undefined && isAsPlanned;
  const after = current === start ? before : isFinal ? current : await draft(input, current.edits);
  return { draft: after, steps };
}

/**
 * What strategies are run for. They see each result whole, for when lines go that another result refers to they stand there instead: what
 * a strategy takes out would come back elsewhere, and what was made to fit might not.
 */
type Plan = {
  readonly input: PlanInput;
  readonly demand: Demand;
  /** Edits of earlier folds: they were sent already, so what goes with them went with them then. */
  readonly replayed: readonly Edit[];
  /** Shrinks that refer to other results, where nothing more is folded. */
  readonly references: readonly Shrink[];
};

/**
 * A fold re-bills all that stands behind it. One that is only wished for must win a quarter of what is asked, or as much as would have
 * been asked of the newest results, or else the next request would ask for the next small fold, and so on every turn.
 */
function paysOff(before: Draft, after: Draft, demand: Demand): boolean {
  const won = amount(before, demand) - amount(after, demand);
  if (after.tokens > before.tokens || after.body.length > before.body.length) return false;
  if (demand.force || (demand.newest && after.tokens <= demand.newest.target)) return true;
  const asked = amount(before, demand) - demand.goal.target;
  return won >= Math.max(asked * (demand.only ? 0.5 : 0.25), demand.minTokens ?? 0);
}

async function runStrategy(
  plan: Plan,
  start: Draft,
  strategy: Strategy,
): Promise<{ draft: Draft; step?: FoldStep }> {
  const { input, demand } = plan;
  const startsOver = strategy.reach !== 'history';
  let best = start;
  let refused: string | undefined;
  // What names messages wants all there is to have of them.
  let asked = demand.only ? Number.POSITIVE_INFINITY : excess(start, demand, strategy);
  for (let round = 0; round < mostRounds && asked > 0; round++) {
    if (!demand.force && input.isTooLate()) break;
    // What makes texts smaller does so once to each, so it starts over with a larger wish; what takes them out goes on from where it is.
    const from = startsOver ? start : best;
    const proposed = strategy.propose(viewOf(plan, from, asked));
    if (proposed.length === 0) break;
    await input.slices?.pause();
    const next = await tryEdits(plan, from, proposed);
    if ('refused' in next) {
      refused = next.refused;
      break;
    }
    if (amount(next, demand) >= amount(best, demand)) break;
    best = next;
    const left = excess(best, demand, strategy);
    asked = demand.only ? asked : left <= 0 ? 0 : startsOver ? asked + left * 1.5 + 50 : left;
  }
  const before = new Set(start.edits);
  const edits = best.edits.filter((edit) => !before.has(edit)).length;
  if (edits === 0 && refused === undefined) return { draft: start };
  const step = { strategy: strategy.name, edits, tokensSaved: start.tokens - best.tokens };
  return { draft: best, step: refused === undefined ? step : { ...step, refused } };
}

async function tryEdits(
  { input, demand, replayed }: Plan,
  from: Draft,
  proposed: readonly Edit[],
): Promise<Draft | { readonly refused: string }> {
  const wasSent = new Set(replayed);
  const sent = from.edits.filter((edit) => wasSent.has(edit));
  const fresh = [...from.edits.filter((edit) => !wasSent.has(edit)), ...proposed];
  const completed = input.codec.rules.complete(input.conversation, fresh, demand.force);
  if (completed.status === 'refused') return { refused: completed.reason };
  const already = new Set(sent.map(placeOf));
  const added = completed.edits.filter((edit) => edit.kind !== 'drop-part' || !already.has(placeOf(edit)));
  const edits = withoutTakenIn([...sent, ...withOriginalIds(input.conversation, added, input.idOf)]);
  const next = await draft(input, edits, { references: false });
  const [broken] = newProblems(input.codec.rules, from.sent, next.sent);
  if (broken) return { refused: `${broken.rule}: ${broken.detail}` };
  const fault = input.isWary && newFault(input.codec.rules, input.conversation.body, next.body);
  if (fault) return { refused: fault };
  return next;
}

function placeOf(edit: Edit): string {
  return edit.kind === 'drop-part' ? placeKey(edit) : '';
}

export function viewOf(
  { input, demand, references }: Omit<Plan, 'replayed'>,
  from: Draft,
  asked: number,
): FoldView {
  const { conversation, counter, codec } = input;
  const stay = references.filter(({ refers }) =>
    refers?.every(({ message }) => staysWhole(demand.only, message)),
  );
  const stubs = new Map([...from.shrinks, ...stay].map(({ at, stub }) => [textKey(at), stub]));
  const saved = savedByMessage(from.shrinks);
  return {
    conversation,
    edits: from.edits,
    shrunk: (at) => stubs.get(textKey(at)),
    excess: { unit: demand.goal.unit, amount: asked },
    isForced: demand.force,
    isHistoryKept: input.isHistoryKept,
    ready: input.ready,
    ...(input.notReady && { notReady: input.notReady }),
    reportCompression: (text, compression) => input.compressions.set(text, compression),
    measure: {
      text: (text) => counter.text(text),
      part: (block, part) => counter.part(conversation, block, part),
      message: (index) => counter.message(conversation, index) - (saved.get(index) ?? 0),
    },
    protects: demand.only ? onlyThese(demand.only, input.protects) : input.protects,
    mayEdit: (edit) =>
      !(demand.only && isElsewhere(demand.only, edit)) && codec.rules.mayEdit(conversation, edit),
    idOf: input.idOf,
    recallTool: input.recallTool?.name,
    compressionBytesThreshold: input.compressionBytesThreshold,
  };
}

function textKey(at: TextPlace): string {
  return `${placeKey(at)}.${at.text}`;
}

function staysWhole(only: FoldOnly | undefined, message: number): boolean {
  return only !== undefined && !only.smaller.has(message) && !only.gone.has(message);
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

function amount(state: Draft, demand: Demand): number {
  return demand.goal.unit === 'tokens' ? state.tokens : state.messages;
}

/** How much is still too much for what reaches this far: the further it does, the less it is asked for. */
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

// Reasoning that the provider refused. Sealed reasoning is bound to the messages before it: what was written after a fold or a recall that is no
// longer known (another gateway, a lost store) would be refused for ever, so all of it is dropped.

/** Undefined when there is none, and when the rest would not be valid. */
export async function dropReasoning(input: PlanInput, start: Draft): Promise<Planned | undefined> {
  const gone = new Set(start.edits.flatMap((edit) => (edit.kind === 'drop-part' ? [placeKey(edit)] : [])));
  const dropped = input.conversation.messages.flatMap(({ index: message, parts }) =>
    parts.flatMap(({ type }, part): readonly Edit[] =>
      type === 'reasoning' && !gone.has(placeKey({ message, part }))
        ? [{ kind: 'drop-part', message, part, memory: undefined }]
        : [],
    ),
  );
  if (dropped.length === 0) return undefined;
  const result = await draft(input, [...start.edits, ...dropped]);
  const { rules } = input.codec;
  if (newProblems(rules, start.sent, result.sent).length > 0) return undefined;
  if (newFault(rules, input.conversation.body, result.body) !== undefined) return undefined;
  const tokensSaved = start.tokens - result.tokens;
  return { draft: result, steps: [{ strategy: 'drop-reasoning', edits: dropped.length, tokensSaved }] };
}
