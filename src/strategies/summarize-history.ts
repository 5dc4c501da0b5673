/**
 * Takes the oldest messages out, calls always together with their results, and puts one summary in their place, which takes the summary
 * of the fold before in. System, the newest user message, the newest tool batch and what is pinned are never among them. All that it
 * stands for can be read again by the ids that it names.
 */
import type { Message } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { originalOfMessages } from '../conversation/original.ts';
import { extract } from '../outline/extract.ts';
import type { SummaryBudget, SummaryStep } from '../outline/summarizer.ts';
import { proseOf } from '../outline/summary-text.ts';
import { compressionOf, type Compression } from '../receipts/compression.ts';
import { freeUnits, remainingTokens } from './lib/free-units.ts';
import {
  spellRecord,
  standingSummaries,
  type PlacedSummary,
  type SummaryRecord,
} from './lib/summary-record.ts';
import { summarySteps } from './lib/summary-steps.ts';
import type { FoldView, Strategy } from './strategy.ts';

export const defaultMostTokens = 1_500;

export type SummaryOptions = {
  /** Tokens that a summary aims at, at most. Default 1,500. */
  readonly mostTokens?: number | undefined;
};

/** A stretch takes a tenth of its room as a summary where its calls differ, and a fifteenth where they repeat each other. */
const softest = 10;
const hardest = 15;
/** Steps that are fewer wait for more, or go into a summary that is there. */
const fewestUnits = 3;
/** Tokens under which a summary would say nothing. */
const least = 60;
/** Tokens that what the user demanded may take beyond the aim. */
const mostForRules = 2_000;
/** Tokens of a frame without its ids, and of one id, about. */
const frameTokens = 85;
const idTokens = 22;

/**
 * A strategy that leaves a summary where whole messages go; before `drop-oldest` in the list it takes its place.
 *
 * @example
 * const strategies = [createSummarizeHistory({ mostTokens: 3_000 }), ...defaultStrategies];
 */
export function createSummarizeHistory({ mostTokens = defaultMostTokens }: SummaryOptions = {}): Strategy {
  return {
    name: 'summarize-history',
    reach: 'history',
    propose: (view) => propose(view, mostTokens),
  };
}

function propose(view: FoldView, mostTokens: number): readonly Edit[] {
  const standing = standingSummaries(view);
  const isBeside = staysBeside(view, standing, mostTokens);
  const plan: SummaryPlan = { view, mostTokens, isBeside, standing, earlier: isBeside ? [] : standing };
  let edits: readonly Edit[] = [];
  let wanted = view.excess.amount;
  for (let round = 0; round < mostRounds; round++) {
    const chosen = choose(plan, wanted);
    const summarized = chosen && summarize(plan, chosen);
    if (!summarized) break;
    edits = summarized.edits;
    if (summarized.lacking <= 0 || chosen.isAll) break;
    wanted += summarized.lacking;
  }
  return edits;
}

/** How often more is taken in because what the user demanded made the summary longer than it was thought to be. */
const mostRounds = 3;

type SummaryPlan = {
  readonly view: FoldView;
  readonly mostTokens: number;
  /** Whether the new summary stands beside those that are there. */
  readonly isBeside: boolean;
  readonly standing: readonly PlacedSummary[];
  /** Those it takes in. */
  readonly earlier: readonly PlacedSummary[];
};

/** The edits, and by how much they save less than is asked for; undefined where there is no room for a summary that says something. */
function summarize(
  { view, mostTokens, isBeside, standing, earlier }: SummaryPlan,
  chosen: Chosen,
): { readonly edits: readonly Edit[]; readonly lacking: number } | undefined {
  const steps = summarySteps(view.conversation, chosen.dropped, view.recallTool);
  const ratio = isBeside ? hardest : ratioOf(steps);
  const budget = budgetOf(view, chosen, Math.min(mostTokens, said(earlier) + chosen.tokens / ratio));
  if (!budget) return undefined;
  const ahead = writtenAhead(view, chosen.dropped);
  const read = ahead.body === undefined ? [] : [ahead.body];
  const body = extract({
    steps: ahead.body === undefined ? steps : summarySteps(view.conversation, ahead.rest, view.recallTool),
    earlier: [...earlier.map(({ record }) => record.body), ...read],
    known: isBeside ? standing.map(({ record }) => record.body) : [],
    budget,
    count: (text) => view.measure.text(text),
  });
  if (body === undefined) return undefined;
  const summary = summaryEdit(view, { earlier, steps, body, dropped: chosen.dropped });
  if (!view.mayEdit(summary.edit)) return undefined;
  const { memory, edit } = summary;
  const tokensBefore = chosen.tokens + sum(earlier, ({ tokens }) => tokens);
  view.tell(
    edit.text,
    compressionOf({
      id: memory,
      level: 'history',
      tokensBefore,
      tokensAfter: view.measure.text(edit.text),
      target: tokensBefore / (budget.aim + frameOf(earlier)),
      ...wordsOf(ahead, body),
    }),
  );
  const drops = chosen.dropped.map(({ index }): Edit => ({ kind: 'drop-message', message: index, memory }));
  // What it says stands in the new one, with its ids: its own id is named nowhere.
  const takenIn = earlier
    .filter(({ isMessage }) => isMessage)
    .map(({ before }): Edit => ({ kind: 'drop-message', message: before, memory: undefined }));
  const saved = tokensBefore - view.measure.text(edit.text);
  const lacking =
    view.excess.unit === 'tokens' && Number.isFinite(view.excess.amount) ? view.excess.amount - saved : 0;
  return { edits: [edit, ...takenIn, ...drops], lacking };
}

/** Undefined where there is no room for a summary that says something. */
function budgetOf(view: FoldView, { tokens, lacking }: Chosen, wished: number): SummaryBudget | undefined {
  // Where the goal is out of reach a short summary is no harm; where it must be reached, nothing may be in its way.
  const shortest = view.isForced ? 0 : Math.min(wished, least + tokens / 20, 400);
  const aim = Math.floor(Math.max(wished - lacking, shortest));
  if (aim < least) return undefined;
  const forRules = view.isForced && lacking > 0 ? 0 : Math.min(mostForRules, tokens / 2);
  return { aim, max: aim + Math.floor(forRules) };
}

type SummaryEdit = Extract<Edit, { readonly kind: 'insert-message' }>;

type Summarized = {
  readonly earlier: readonly PlacedSummary[];
  readonly dropped: readonly Message[];
  readonly steps: readonly SummaryStep[];
  readonly body: string;
};

function summaryEdit(view: FoldView, { earlier, dropped, steps, body }: Summarized) {
  const indices = dropped.map(({ index }) => index);
  const memory = view.idOf(originalOfMessages(view.conversation, indices));
  const records = earlier.map(({ record }) => record);
  const record: SummaryRecord = {
    messages: dropped.length + sum(records, ({ messages }) => messages),
    calls: steps.filter(({ type }) => type === 'called').length + sum(records, ({ calls }) => calls),
    memories: [...records.flatMap(({ memories }) => memories), { id: memory, messages: dropped.length }],
    body,
  };
  const edit: SummaryEdit = {
    kind: 'insert-message',
    before: Math.min(indices[0]!, ...earlier.map(({ before }) => before)),
    role: 'user',
    text: spellRecord(record, view.recallTool),
    summary: earlier.length === 0 ? 'beside' : 'instead',
  };
  return { edit, memory };
}

/**
 * A fold that takes only what has long been dead is made to save money: what stands in front of it stays in the cache, and so do the
 * summaries, until together they are too long.
 */
function staysBeside({ excess }: FoldView, standing: readonly PlacedSummary[], mostTokens: number): boolean {
  return (
    excess.amount === Number.POSITIVE_INFINITY && sum(standing, ({ tokens }) => tokens) <= 2 * mostTokens
  );
}

/** Tokens of what summaries say, without their frames. */
function said(earlier: readonly PlacedSummary[]): number {
  return sum(earlier, ({ tokens, record }) =>
    Math.max(0, tokens - frameTokens - idTokens * record.memories.length),
  );
}

/** Tokens of the frame of the summary that takes these in. */
function frameOf(earlier: readonly PlacedSummary[]): number {
  return frameTokens + idTokens * (1 + sum(earlier, ({ record }) => record.memories.length));
}

type Chosen = {
  readonly dropped: readonly Message[];
  /** That they take now. */
  readonly tokens: number;
  /** Tokens by which the summary must be smaller than it would be, for the rest to be enough. */
  readonly lacking: number;
  /** Whether there is nothing more that may go. */
  readonly isAll: boolean;
};

/** The oldest units that may go, until what they save is as much as wanted beside the summary. */
function choose(
  { view, earlier, standing: summaries, mostTokens }: SummaryPlan,
  wanted: number,
): Chosen | undefined {
  const isInTokens = view.excess.unit === 'tokens';
  const remaining = remainingTokens(view);
  const standing = sum(earlier, (one) => one.tokens);
  const isSummary = new Set(summaries.flatMap(({ before, isMessage }) => (isMessage ? before : [])));
  const dropped: Message[] = [];
  let tokens = 0;
  let units = 0;
  let isAll = true;
  const saved = () => {
    if (!isInTokens) return dropped.length + earlier.length - 1;
    return tokens + standing - Math.min(mostTokens, said(earlier) + tokens / softest) - frameOf(earlier);
  };
  for (const unit of freeUnits(view)) {
    if (saved() >= wanted) {
      isAll = false;
      break;
    }
    if (unit.some(({ index }) => isSummary.has(index))) continue;
    dropped.push(...unit);
    tokens += sum(unit, ({ index }) => remaining(index));
    units++;
  }
  if (units === 0 || (units < fewestUnits && earlier.length === 0) || saved() <= 0) return undefined;
  const lacking = isInTokens && Number.isFinite(wanted) ? Math.max(0, wanted - saved()) : 0;
  return { dropped, tokens, lacking, isAll };
}

function ratioOf(steps: readonly SummaryStep[]): number {
  const texts = steps.map((step) => (step.type === 'said' ? step.text : `${step.tool} ${step.input}`));
  const repeated = 1 - new Set(texts).size / Math.max(1, texts.length);
  return softest + (hardest - softest) * repeated;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

type WrittenAhead =
  /** With the messages that go beside those it is of. */
  | { readonly body: string; readonly rest: readonly Message[] }
  /** Why there is none where one was to be written. */
  | { readonly body: undefined; readonly problem: string | undefined };

function writtenAhead({ ready, notReady }: FoldView, dropped: readonly Message[]): WrittenAhead {
  if (!ready) return { body: undefined, problem: notReady?.() };
  const rest = dropped.filter(({ index }) => index < ready.from || index >= ready.upTo);
  const covered = dropped.length - rest.length;
  if (covered * 2 >= ready.upTo - ready.from) return { body: ready.body, rest };
  // Of what was folded before; or of more than goes now.
  const problem = covered === 0 ? notReady?.() : 'the summary that was ready is of more than goes now';
  return { body: undefined, problem };
}

/** Where there is little room, what the user demanded may have left none to what was written ahead. */
function wordsOf(ahead: WrittenAhead, body: string): Pick<Compression, 'by' | 'problem'> {
  if (ahead.body === undefined) return { by: 'extractive', problem: ahead.problem };
  const prose = proseOf(ahead.body);
  const stands = new Set(proseOf(body));
  if (prose.length > 0 && !prose.some((line) => stands.has(line)))
    return { by: 'extractive', problem: 'no room was left for the words that were ready' };
  return { by: ahead.rest.length === 0 ? 'summarizer' : 'both', problem: undefined };
}
