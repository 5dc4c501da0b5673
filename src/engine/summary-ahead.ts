/**
 * Summaries ahead of the fold that will need them. Long before a trigger fires it is said what that fold would take out; whoever can ask
 * a model has it summarised meanwhile, off the path of any request. A fold that comes earlier goes on with an extract.
 */
import type { Message } from '../conversation/conversation.ts';
import { reasonOf } from '../errors.ts';
import type { ReadySummaries } from '../store/ready-summaries.ts';
import { freeUnits, remainingTokens } from '../strategies/lib/free-units.ts';
import type { FoldView } from '../strategies/strategy.ts';
import { summarySteps } from '../strategies/lib/summary-steps.ts';
import type { Summarizer, SummaryRequest } from '../outline/summarizer.ts';
import { type Demand, firstDemand, type Trigger, type TriggerState } from '../triggers/trigger.ts';
import { type Draft, type PlanInput, viewOf } from './plan.ts';
import { type FoldMemory, placeForClient } from './replay.ts';
import { stubsWillDo } from './stubs-will-do.ts';
import type { SummaryNotes } from './summary-notes.ts';

export type AheadOptions = {
  readonly ready: ReadySummaries;
  /** Tokens that a summary aims at, at most. */
  readonly maxTokens: number;
};

/** A summary that will be needed. */
export type SummaryJob = {
  /** The same for two requests that want the same summary. */
  readonly key: string;
  /** The keys of summaries of earlier parts of the same conversation. */
  readonly earlier: () => ReadonlySet<string>;
  /** Tokens of the messages it is to stand for, those of the summary it takes in left out. */
  readonly tokens: number;
  /** Whether it is to be written here: for `forMs`, no other instance on the same store will. Rejects with `store-failed`. */
  readonly claim: (forMs: number) => Promise<boolean>;
  /** Has it written and keeps it; resolves with its tokens. Rejects where the summarizer fails, or with `store-failed`. */
  readonly write: (summarizer: Summarizer, signal?: AbortSignal) => Promise<number>;
};

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
