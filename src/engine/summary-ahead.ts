/**
 * Summaries ahead of the fold that will need them. Long before a trigger fires it is said what that fold would take out; whoever can ask
 * a model has it summarised meanwhile, off the path of any request. A fold that comes earlier goes on with an extract.
 */
import type { Message } from '../conversation/conversation.ts';
import { lastMessageOf } from '../conversation/edit.ts';
import { demandInCounts } from './demand.ts';
import type { OpenedRequest } from './history.ts';
import { type Draft, type PlanInput, viewOf } from './plan.ts';
import { hasWayBack } from './protect.ts';
import { type EngineState, type FoldMemory, type SummaryNotes, placeForClient } from './state.ts';
import type { AheadOptions, SummaryJob } from './types.ts';
import { reasonOf } from '../errors.ts';
import type { SummaryRequest } from '../outline/summarizer.ts';
import { editableTexts, freeUnits, remainingTokens } from '../strategies/lib/editable-texts.ts';
import { summarySteps } from '../strategies/lib/summary-steps.ts';
import type { FoldView } from '../strategies/strategy.ts';
import { type Demand, type Trigger, type TriggerState, firstDemand } from '../triggers/trigger.ts';

/** Of the size at which a trigger fires. */
const soft = 0.6;

/**
 * The demand there will be when the conversation has grown as much again as it may; undefined while that is far away. What no fold can take
 * out does not grow.
 */
export function demandAhead(triggers: readonly Trigger[], state: TriggerState): Demand | undefined {
  const { economy: _, idleMs: __, fixed = 0, ...grown } = state;
  return firstDemand(triggers, {
    ...grown,
    fixed,
    tokens: fixed + (state.tokens - fixed) / soft,
    messages: Math.ceil(state.messages / soft),
  });
}

/** Messages of so many newest units are left to be read as they are. */
const unitsKept = 3;
/** Fewer new tokens are not worth asking a model. */
const fewestTokens = 1_500;
/** Of what the fold will take out, at least this much must be new. */
const leastNew = 0.25;
/** Tokens that what the user demanded may take beyond the aim. */
const mostForRules = 2_000;

/** Returns the summary that the next fold will need, when it should be written by now. */
export function summaryFor(
  { options, summaryNotes }: EngineState,
  { foldingDisabled, state, memory, input, calibrator }: OpenedRequest,
  result: Draft,
): SummaryJob | undefined {
  const { summaries, triggers, mode } = options;
  const isFree = !foldingDisabled && hasWayBack(options, input.conversation);
  const ahead = summaries && isFree ? demandAhead(triggers, state) : undefined;
  if (!summaries || !ahead || mode === 'observe') return undefined;
  const demand = demandInCounts(ahead, calibrator.correction);
  const fixed = Math.min(result.tokens, calibrator.correction.countFor(state.fixed ?? 0));
  return summaryJob({ ...summaries, notes: summaryNotes }, memory, input, result, { demand, fixed });
}

/**
 * `demand`: the one there will be, in counts, and `fixed` the counts that no fold can take out. Undefined where there is nothing (more) to be
 * written yet.
 */
export function summaryJob(
  { ready: summaries, maxTokens, notes }: AheadOptions & { readonly notes: SummaryNotes },
  memory: Pick<FoldMemory, 'tenant' | 'links' | 'whole' | 'same'>,
  input: PlanInput,
  draft: Draft,
  { demand, fixed }: { readonly demand: Demand; readonly fixed: number },
): SummaryJob | undefined {
  const { ready } = input;
  const { tenant, links, whole } = memory;
  const grown = demand.goal.unit === 'tokens' ? fixed + (draft.tokens - fixed) / soft : draft.messages / soft;
  const view = viewOf({ input, demand, references: [] }, draft, grown - demand.goal.target);
  if (stubsWillDo(view, grown - draft.tokens)) return undefined;
  const going = unitsGoing(view);
  const first = going[0]?.[0]?.index;
  const last = going.at(-1)?.at(-1)?.index;
  if (first === undefined || last === undefined) return undefined;
  // What was folded since is not summarised again.
  const before = ready && ready.from >= first ? ready : undefined;
  const messages = going.flat().filter(({ index }) => index >= (before?.upTo ?? 0));
  const remaining = remainingTokens(view);
  const sizeOf = (some: readonly Message[]) => some.reduce((sum, { index }) => sum + remaining(index), 0);
  const tokens = sizeOf(messages);
  if (tokens < Math.max(fewestTokens, sizeOf(going.flat()) * leastNew)) return undefined;
  const upTo = last + 1;
  const link = whole[upTo]!;
  const keyOf = (of: string) => `${tenant}/${of}`;
  const foundBy = placeForClient(memory, upTo);
  let earlier: ReadonlySet<string> | undefined;
  return {
    key: keyOf(link),
    earlier() {
      earlier ??= new Set(whole.slice(1, upTo).map(keyOf));
      return earlier;
    },
    tokens,
    async claim(forMs) {
      const isMine = await summaries.claim(tenant, links, { foundBy, known: ready?.matched ?? 0 }, forMs);
      if (!isMine) notes.note(tenant, link, 'another instance was writing the summary');
      return isMine;
    },
    async write(summarizer, signal) {
      const count = (text: string) => view.measure.text(text);
      const request: SummaryRequest = {
        steps: summarySteps(view.conversation, messages, view.recallTool),
        earlier: before ? [before.body] : [],
        known: [],
        budget: { aim: maxTokens, max: maxTokens + mostForRules },
        count,
      };
      const body = await noted({ notes, tenant, link }, () => summarizer.summarize(request, signal));
      if (body === undefined) return 0;
      await summaries.record(tenant, links[foundBy]!, { from: before?.from ?? first, upTo, link, body });
      return count(body);
    },
  };
}

/** Says meanwhile and afterwards why there is no summary, where there is none. */
async function noted(
  { notes, tenant, link }: { notes: SummaryNotes; tenant: string; link: string },
  write: () => Promise<string | undefined>,
): Promise<string | undefined> {
  notes.note(tenant, link, 'the summary was still being written');
  try {
    const body = await write();
    if (body === undefined) notes.note(tenant, link, 'the summary would have been empty');
    else notes.forget(tenant, link);
    return body;
  } catch (error) {
    notes.note(tenant, link, reasonOf(error));
    throw error;
  }
}

/** What the fold to come will take out, as far as it can be told now: the oldest units that may go. */
function unitsGoing(view: FoldView): readonly (readonly Message[])[] {
  const remaining = remainingTokens(view);
  const going: (readonly Message[])[] = [];
  let wanted = view.excess.amount;
  for (const unit of [...freeUnits(view)].slice(0, -unitsKept)) {
    if (wanted <= 0) break;
    going.push(unit);
    wanted -=
      view.excess.unit === 'messages'
        ? unit.length
        : unit.reduce((sum, { index }) => sum + remaining(index), 0);
  }
  return going;
}

// Folds that need no summary, because stubs in place of tool results free enough tokens.

/** Tokens of a stub, about. */
const stubTokens = 60;

/** `view` asks for what will be too much when there are so many tokens more. They are taken to be of the same kind as what came last. */
export function stubsWillDo(view: FoldView, more: number): boolean {
  if (view.excess.unit === 'messages') return false;
  const folded = view.edits.reduce((last, edit) => Math.max(last, lastMessageOf(edit)), -1);
  let saved = 0;
  let savedOfNew = 0;
  for (const { at, part, message, literal } of editableTexts(view, 'tool-result')) {
    const isSmall = literal.length - 2 < view.compressionBytesThreshold;
    // Of a result in several texts all are counted with the first.
    if (isSmall || at.text > 0 || view.protects.part(at.message, at.part)) continue;
    const shown = view.shrunk(at);
    const tokens = shown === undefined ? view.measure.part(message, part) : view.measure.text(shown);
    const gain = Math.max(0, tokens - stubTokens);
    saved += gain;
    if (at.message > folded) savedOfNew += gain;
  }
  const { messages } = view.conversation;
  const tokensOfNew = messages
    .slice(folded + 1)
    .reduce((sum, { index }) => sum + view.measure.message(index), 0);
  return saved + (more * savedOfNew) / Math.max(1, tokensOfNew) >= view.excess.amount;
}
