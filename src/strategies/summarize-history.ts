/**
 * Replaces the oldest messages by one summary that includes the previous summary; calls always go together with their results. System messages,
 * the newest user message, the newest tool batch and pinned content always stay. All removed messages can be read by the ids in the summary.
 */
import { checkSettings, object, trueOrFalse, wholeNumber } from '../checks.ts';
import type { Message } from '../conversation/conversation.ts';
import type { Edit } from '../conversation/edit.ts';
import { inputOf } from '../conversation/messages.ts';
import { extractParts } from '../outline/extract.ts';
import { tellsPlan } from '../outline/node.ts';
import type { SummaryBudget, SummaryStep } from '../outline/summarizer.ts';
import { proseOf } from '../outline/summary-text.ts';
import { compressionOf, type Compression } from '../receipts/receipt.ts';
import { freeUnits, placesEdited, remainingTokens } from './lib/editable-texts.ts';
import { type PlacedSummary, placedSummaries, summarySteps } from './lib/summaries.ts';
import {
  dropsOf,
  loggedBetween,
  numbersIn,
  originalIds,
  partsOf,
  questionBehind,
  summaryEdits,
} from './lib/summary-parts.ts';
import type { FoldView, Strategy } from './strategy.ts';

const defaultMaxTokens = 1_500;

export type SummaryOptions = {
  /** Maximum tokens that a summary aims at. Default 1,500. */
  readonly maxTokens?: number | undefined;
  /**
   * Whether `prepared.summary` asks the program to have the next summary written before its fold. A fold without one uses the words of the
   * messages. Default false.
   */
  readonly isWrittenAhead?: boolean | undefined;
};

/** Checks the options. */
const summaryCheck = object<SummaryOptions>({ maxTokens: wholeNumber(100), isWrittenAhead: trueOrFalse });

/** A summary has a tenth of its messages' tokens if their calls differ, and a fifteenth if they repeat each other. */
const minSummaryRatio = 10;
const maxSummaryRatio = 15;
/** Minimum units for a new summary; fewer wait for more, or join an existing summary. */
const minUnits = 3;
/** Minimum tokens of a summary; less would say nothing. */
const minTokens = 60;
/** Maximum tokens that the user's demands may take beyond the aim. */
const maxForRules = 2_000;
/** Approximate tokens of a frame without ids, and of one id. */
const frameTokens = 85;
const idTokens = 22;

/**
 * Replaces messages by a summary. It belongs before `dropOldest` in the list. Throws `bad-config` for options that are not allowed.
 *
 * @example
 * const strategies = [offloadResults(), summarizeHistory({ maxTokens: 3_000 }), dropOldest({ reach: 'everything' }), clipNewest()];
 */
export function summarizeHistory(options: SummaryOptions = {}): Strategy {
  checkSettings(summaryCheck, options, 'summarizeHistory');
  const { maxTokens = defaultMaxTokens, isWrittenAhead = false } = options;
  return {
    name: 'summarize-history',
    reach: 'history',
    summary: { maxTokens, isWrittenAhead },
    propose: (view) => propose(view, maxTokens, isWrittenAhead),
  };
}

function propose(view: FoldView, maxTokens: number, isWrittenAhead: boolean): readonly Edit[] {
  const summaries = placedSummaries(view);
  const isAdded = isAddedTo(view, summaries, maxTokens);
  const earlier = isAdded ? [] : summaries;
  const retold = isWrittenAhead ? undefined : summarizedBy(view, earlier);
  const plan: SummaryPlan = { view, maxTokens, isAdded, summaries, earlier, retold };
  let edits: readonly Edit[] = [];
  let wanted = view.excess.amount;
  for (let round = 0; round < maxRounds; round++) {
    const chosen = choose(plan, wanted);
    const summarized = chosen && summarize(plan, chosen);
    if (!summarized) break;
    edits = summarized.edits;
    if (summarized.lacking <= 0 || chosen.isAll) break;
    wanted += summarized.lacking;
  }
  return edits;
}

/** Maximum number of attempts: more messages are added if the user's demands made the summary longer than planned. */
const maxRounds = 3;

type SummaryPlan = {
  readonly view: FoldView;
  readonly maxTokens: number;
  /** True if the new summary is added to existing ones instead of including them. */
  readonly isAdded: boolean;
  readonly summaries: readonly PlacedSummary[];
  /** The summaries that the new one includes. */
  readonly earlier: readonly PlacedSummary[];
  /** The messages that these stand for, so that the new one is made of them again; undefined if it can only be made of their texts. */
  readonly retold: readonly Message[] | undefined;
};

/** Returns the messages that summaries stand for; undefined if the conversation lacks some. */
function summarizedBy(
  { conversation, edits }: FoldView,
  summaries: readonly PlacedSummary[],
): readonly Message[] | undefined {
  const records = summaries.map(({ record }) => record);
  const ids = new Set(records.flatMap(({ memories }) => memories.map(({ id }) => id)));
  const messages = [...originalIds(edits)]
    .filter(([, id]) => ids.has(id))
    .map(([index]) => conversation.messages[index]!);
  return messages.length === sum(records, (record) => record.messages) ? messages : undefined;
}

/**
 * Returns the edits, and how much less they save than requested; undefined if there is no space for a useful summary. Logs between the messages are
 * taken in, and where messages stay between them, the summary is divided: each part stands where its messages stood.
 */
function summarize(
  { view, maxTokens, isAdded, summaries, earlier, retold }: SummaryPlan,
  chosen: Chosen,
): { readonly edits: readonly Edit[]; readonly lacking: number } | undefined {
  const steps = summarySteps(view.conversation, chosen.dropped, view.recallTool);
  const ratio = isAdded ? maxSummaryRatio : ratioOf(steps);
  const told = (retold === undefined ? earlier : []).toSorted((a, b) => a.before - b.before);
  const logged = loggedBetween(view, [...(retold ?? []), ...chosen.dropped], told);
  const taken = said(earlier) + logged.tokens;
  const wished = Math.min(maxTokens, taken + wishedFor(chosen, ratio));
  const budget = budgetOf(view, chosen, { wished, taken });
  if (!budget) return undefined;
  const ahead = writtenAhead(view, chosen.dropped);
  const body = ahead.body === undefined ? [] : [ahead.body];
  const dropped = [...(retold ?? []), ...chosen.dropped, ...logged.messages].toSorted(
    (a, b) => a.index - b.index,
  );
  const parts = partsOf(view, {
    dropped,
    logged: logged.messages,
    told,
    maxParts: 1 + Math.floor(budget.aim / tokensForPart),
  });
  const numberIn = numbersIn(parts);
  const read = dropped.filter((message) => !(ahead.body !== undefined && ahead.covers(message)));
  const stepsOf = read.map((message) => summarySteps(view.conversation, [message], view.recallTool));
  const stepsBefore = (index: number): number =>
    sum(stepsOf, (of, at) => (read[at]!.index < index ? of.length : 0));
  const places = [...told.map(({ before }) => before), ...body.map(() => view.ready!.from)];
  const texts = extractParts({
    steps: stepsOf.flat(),
    originals: read.flatMap((message, at) => stepsOf[at]!.map(() => numberIn(message))),
    earlier: [...told.map(({ record }) => record.body), ...body],
    known: isAdded ? summaries.map(({ record }) => record.body) : [],
    stepsAhead: places.map(stepsBefore),
    cuts: parts.flatMap(({ gap }) => {
      if (gap === undefined) return [];
      const isAhead = (place: number): boolean => place <= gap.from;
      return [{ ...gap, steps: stepsBefore(gap.from), summaries: places.filter(isAhead).length }];
    }),
    question: questionBehind(view, dropped),
    isPlanKnown: hasPlan(view, chosen.dropped),
    budget,
    count: (text) => view.measure.text(text),
  });
  const drops = dropsOf(parts);
  const inserted = texts && summaryEdits(view, { parts, texts, isInstead: earlier.length > 0 });
  if (!inserted) return undefined;
  const tokensBefore = chosen.tokens + logged.tokens + sum(earlier, ({ tokens }) => tokens);
  const tokensAfter = sum(inserted, ({ text }) => view.measure.text(text));
  view.reportCompression(
    inserted[0]!.text,
    compressionOf({
      id: parts.flatMap(({ originals }) => originals).findLast(({ isNew }) => isNew)!.id,
      level: 'history',
      tokensBefore,
      tokensAfter,
      target: tokensBefore / (budget.aim + frameOf(earlier)),
      ...wordsOf(ahead, texts.join('\n')),
    }),
  );
  // The new summary includes its text and ids, so its message has no original of its own.
  const takenIn = earlier
    .filter(({ isMessage }) => isMessage)
    .map(({ before }): Edit => ({ kind: 'drop-message', message: before, memory: undefined }));
  const saved = tokensBefore - tokensAfter;
  const lacking =
    view.excess.unit === 'tokens' && Number.isFinite(view.excess.amount) ? view.excess.amount - saved : 0;
  return { edits: [...inserted, ...takenIn, ...drops], lacking };
}

/** Tokens of a summary for each of its parts behind the first one. */
const tokensForPart = 150;

/** True if a message that stays has a plan: then those in the dropped messages are older. */
function hasPlan({ conversation, edits }: FoldView, dropped: readonly Message[]): boolean {
  const gone = new Set([...placesEdited(edits).messages, ...dropped.map(({ index }) => index)]);
  return conversation.messages.some(
    (message) =>
      !gone.has(message.index) &&
      message.parts.some(
        (part) =>
          part.type === 'tool-call' && tellsPlan(part.name, inputOf(conversation.body, message, part)),
      ),
  );
}

/**
 * Returns the tokens that a summary of these messages should have. Messages whose results are stubs by now still have as much to tell, so they get up
 * to a third of what they take now.
 */
function wishedFor({ tokens, whole }: Pick<Chosen, 'tokens' | 'whole'>, ratio: number): number {
  return Math.max(tokens / ratio, Math.min(tokens / 3, whole / ratio));
}

/** Returns the budget; undefined if there is no space for a useful summary. */
function budgetOf(
  view: FoldView,
  { tokens, whole, lacking }: Chosen,
  { wished, taken }: { readonly wished: number; readonly taken: number },
): SummaryBudget | undefined {
  // A short summary does no harm if the goal is out of reach anyway; if the goal must be reached, it comes first.
  const harmless = minTokens + wishedFor({ tokens, whole }, 2 * minSummaryRatio);
  const shortest = view.isForced ? 0 : Math.min(wished, harmless, 400);
  const aim = Math.floor(Math.max(wished - lacking, shortest));
  // Other content gives way before what earlier summaries and logs say, as long as there is some.
  const least = lacking > 0 && view.protects.hasGivenWay !== true ? Math.min(wished, taken) : 0;
  if (aim < Math.max(minTokens, least)) return undefined;
  const forRules =
    view.isForced && lacking > 0 ? 0 : Math.min(maxForRules, Math.max(tokens / 2, taken - aim));
  return { aim, max: aim + Math.floor(forRules) };
}

/**
 * True if the new summary is added to the existing ones. A fold of only idle content is made to save money: everything before it, summaries
 * included, stays in the cache, until the summaries together are too long.
 */
function isAddedTo({ excess }: FoldView, summaries: readonly PlacedSummary[], maxTokens: number): boolean {
  return (
    excess.amount === Number.POSITIVE_INFINITY && sum(summaries, ({ tokens }) => tokens) <= 2 * maxTokens
  );
}

/** Returns the tokens of summaries without their frames. */
function said(earlier: readonly PlacedSummary[]): number {
  return sum(earlier, ({ tokens, record }) =>
    Math.max(0, tokens - frameTokens - idTokens * record.memories.length),
  );
}

/** Returns the tokens of the frame of a summary that includes these. */
function frameOf(earlier: readonly PlacedSummary[]): number {
  return frameTokens + idTokens * (1 + sum(earlier, ({ record }) => record.memories.length));
}

type Chosen = {
  readonly dropped: readonly Message[];
  /** Their tokens now. */
  readonly tokens: number;
  /** Their tokens before earlier folds took their results out. */
  readonly whole: number;
  /** Tokens by which the summary must be shorter for the fold to save enough. */
  readonly lacking: number;
  /** True if nothing more may be dropped. */
  readonly isAll: boolean;
};

/** Chooses the oldest units that may be dropped, until they save as much as requested, summary included. */
function choose({ view, earlier, summaries, maxTokens }: SummaryPlan, wanted: number): Chosen | undefined {
  const isInTokens = view.excess.unit === 'tokens';
  const remaining = remainingTokens(view);
  const tokensBefore = sum(earlier, (one) => one.tokens);
  const isSummary = new Set(summaries.flatMap(({ before, isMessage }) => (isMessage ? before : [])));
  const dropped: Message[] = [];
  let tokens = 0;
  let whole = 0;
  let units = 0;
  let isAll = true;
  const saved = () => {
    if (!isInTokens) return dropped.length + earlier.length - 1;
    return (
      tokens +
      tokensBefore -
      Math.min(maxTokens, said(earlier) + wishedFor({ tokens, whole }, minSummaryRatio)) -
      frameOf(earlier)
    );
  };
  for (const unit of freeUnits(view)) {
    if (saved() >= wanted) {
      isAll = false;
      break;
    }
    if (unit.some(({ index }) => isSummary.has(index))) continue;
    for (const one of unit) dropped.push(one);
    tokens += sum(unit, ({ index }) => remaining(index));
    whole += sum(unit, ({ index }) => view.measure.message(index));
    units++;
  }
  if (units === 0 || (units < minUnits && earlier.length === 0) || saved() <= 0) return undefined;
  const lacking = isInTokens && Number.isFinite(wanted) ? Math.max(0, wanted - saved()) : 0;
  return { dropped, tokens, whole, lacking, isAll };
}

function ratioOf(steps: readonly SummaryStep[]): number {
  const texts = steps.map((step) => (step.type === 'said' ? step.text : `${step.tool} ${step.input}`));
  const repeated = 1 - new Set(texts).size / Math.max(1, texts.length);
  return minSummaryRatio + (maxSummaryRatio - minSummaryRatio) * repeated;
}

function sum<T>(items: readonly T[], of: (item: T, at: number) => number): number {
  return items.reduce((total, item, at) => total + of(item, at), 0);
}

type WrittenAhead =
  /** The summary, and which of the dropped messages it covers: all, or some. */
  | { readonly body: string; readonly covers: (message: Message) => boolean; readonly isWhole: boolean }
  /** Why there is no summary although one was to be written. */
  | { readonly body: undefined; readonly problem: string | undefined };

function writtenAhead({ ready, notReady }: FoldView, dropped: readonly Message[]): WrittenAhead {
  if (!ready) return { body: undefined, problem: notReady?.() };
  const covers = ({ index }: Message): boolean => index >= ready.from && index < ready.upTo;
  const covered = dropped.filter(covers).length;
  if (covered * 2 >= ready.upTo - ready.from)
    return { body: ready.body, covers, isWhole: covered === dropped.length };
  // It covers messages that were folded before, or more than are dropped now.
  const problem = covered === 0 ? notReady?.() : 'the summary that was ready covers more than is dropped now';
  return { body: undefined, problem };
}

/** Returns whose words a summary has. If space is tight, the user's demands may have displaced the text written ahead. */
function wordsOf(ahead: WrittenAhead, body: string): Pick<Compression, 'by' | 'problem'> {
  if (ahead.body === undefined) return { by: 'extractive', problem: ahead.problem };
  const prose = proseOf(ahead.body);
  const kept = new Set(proseOf(body));
  if (prose.length > 0 && !prose.some((line) => kept.has(line)))
    return { by: 'extractive', problem: 'no space was left for the summary that was ready' };
  return { by: ahead.isWhole ? 'summarizer' : 'both', problem: undefined };
}
