/**
 * Replaces the oldest messages by one summary that includes the previous summary; calls always go together with their results. System messages,
 * the newest user message, the newest tool batch and pinned content always stay. All removed messages can be read by the ids in the summary.
 */
import { checkSettings, object, trueOrFalse, wholeNumber } from '../checks.ts';
import type { Message } from '../conversation/conversation.ts';
import { type Edit, originalOfMessages } from '../conversation/edit.ts';
import { inputOf } from '../conversation/messages.ts';
import { extract } from '../outline/extract.ts';
import { tellsPlan } from '../outline/node.ts';
import type { SummaryBudget, SummaryStep } from '../outline/summarizer.ts';
import { proseOf } from '../outline/summary-text.ts';
import { compressionOf, type Compression } from '../receipts/receipt.ts';
import { freeUnits, placesEdited, remainingTokens } from './lib/editable-texts.ts';
import {
  type PlacedSummary,
  type SummaryRecord,
  spellRecord,
  placedSummaries,
  stayingTexts,
  summarySteps,
} from './lib/summaries.ts';
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
  const messages = edits.flatMap((edit) =>
    edit.kind === 'drop-message' && edit.memory !== undefined && ids.has(edit.memory)
      ? [conversation.messages[edit.message]!]
      : [],
  );
  return messages.length === sum(records, (record) => record.messages) ? messages : undefined;
}

/** Returns a function that finds the number of a message's original: those of earlier summaries come first, then the new one. */
function originalsIn({ edits }: FoldView, earlier: readonly PlacedSummary[]): (message: Message) => number {
  const ids = earlier.flatMap(({ record }) => record.memories.map(({ id }) => id));
  const numbers = new Map(ids.map((id, at) => [id, at + 1]));
  const known = new Map(
    edits.flatMap((edit) =>
      edit.kind === 'drop-message' ? [[edit.message, numbers.get(edit.memory ?? '')] as const] : [],
    ),
  );
  return ({ index }) => known.get(index) ?? ids.length + 1;
}

/** Returns the edits, and how much less they save than requested; undefined if there is no space for a useful summary. */
function summarize(
  { view, maxTokens, isAdded, summaries, earlier, retold }: SummaryPlan,
  chosen: Chosen,
): { readonly edits: readonly Edit[]; readonly lacking: number } | undefined {
  const steps = summarySteps(view.conversation, chosen.dropped, view.recallTool);
  const ratio = isAdded ? maxSummaryRatio : ratioOf(steps);
  const budget = budgetOf(view, chosen, Math.min(maxTokens, said(earlier) + wishedFor(chosen, ratio)));
  if (!budget) return undefined;
  const ahead = writtenAhead(view, chosen.dropped);
  const read = ahead.body === undefined ? [] : [ahead.body];
  const told = retold === undefined ? earlier : [];
  const fresh = ahead.body === undefined ? chosen.dropped : ahead.rest;
  const dropped = [...(retold ?? []), ...fresh].toSorted((a, b) => a.index - b.index);
  const stepsOf = dropped.map((message) => summarySteps(view.conversation, [message], view.recallTool));
  const numberOf = earlier.length === 0 ? undefined : originalsIn(view, earlier);
  const body = extract({
    steps: stepsOf.flat(),
    originals: numberOf && dropped.flatMap((message, at) => stepsOf[at]!.map(() => numberOf(message))),
    earlier: [...told.map(({ record }) => record.body), ...read],
    known: isAdded ? summaries.map(({ record }) => record.body) : [],
    staying: stayingTexts(view, dropped, fromOf(earlier, [...(retold ?? []), ...chosen.dropped])),
    stepsAbove: ahead.body === undefined ? stepsAbove(view, told, chosen.dropped) : 0,
    isPlanKnown: hasPlan(view, chosen.dropped),
    budget,
    count: (text) => view.measure.text(text),
  });
  if (body === undefined) return undefined;
  const summary = summaryEdit(view, { earlier, steps, body, dropped: chosen.dropped });
  if (!summary) return undefined;
  const { memory, edit } = summary;
  const tokensBefore = chosen.tokens + sum(earlier, ({ tokens }) => tokens);
  view.reportCompression(
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
  // The new summary includes its text and ids, so its message has no original of its own.
  const takenIn = earlier
    .filter(({ isMessage }) => isMessage)
    .map(({ before }): Edit => ({ kind: 'drop-message', message: before, memory: undefined }));
  const saved = tokensBefore - view.measure.text(edit.text);
  const lacking =
    view.excess.unit === 'tokens' && Number.isFinite(view.excess.amount) ? view.excess.amount - saved : 0;
  return { edits: [edit, ...takenIn, ...drops], lacking };
}

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
  wished: number,
): SummaryBudget | undefined {
  // A short summary does no harm if the goal is out of reach anyway; if the goal must be reached, it comes first.
  const harmless = minTokens + wishedFor({ tokens, whole }, 2 * minSummaryRatio);
  const shortest = view.isForced ? 0 : Math.min(wished, harmless, 400);
  const aim = Math.floor(Math.max(wished - lacking, shortest));
  if (aim < minTokens) return undefined;
  const forRules = view.isForced && lacking > 0 ? 0 : Math.min(maxForRules, tokens / 2);
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
  const summary = earlier.length === 0 ? 'beside' : 'instead';
  // It stands behind the messages that stay among those it tells of: what follows it came later.
  const behind = indices.at(-1)! + 1;
  const places = beginsWithReply(view, { earlier, dropped }, behind) ? [] : [behind];
  const taken = earlier.flatMap(({ before, isMessage }) => (isMessage ? before : []));
  const gone = new Set([...placesEdited(view.edits).messages, ...indices, ...taken]);
  const olderThan = (before: number): number =>
    view.conversation.messages.slice(before, behind).filter(({ index }) => !gone.has(index)).length;
  const edit = [...places, fromOf(earlier, dropped)]
    .map((before): SummaryEdit => {
      const text = spellRecord(record, view.recallTool, olderThan(before));
      return { kind: 'insert-message', before, role: 'user', text, summary };
    })
    .find((one) => view.mayEdit(one));
  return edit && { edit, memory };
}

/** True if the first message that stays ahead of `end` is a reply. Some formats allow none at the beginning, so the summary must stand ahead of it. */
function beginsWithReply(
  { conversation, edits }: FoldView,
  { earlier, dropped }: Pick<Summarized, 'earlier' | 'dropped'>,
  end: number,
): boolean {
  const takenIn = new Set(earlier.flatMap(({ before, isMessage }) => (isMessage ? [] : before)));
  const gone = new Set([
    ...placesEdited(edits).messages,
    ...dropped.map(({ index }) => index),
    ...earlier.flatMap(({ before, isMessage }) => (isMessage ? before : [])),
  ]);
  const first = conversation.messages.find(({ index, role }) => role !== 'system' && !gone.has(index));
  if (first === undefined || first.index >= end || first.role === 'user') return false;
  return !edits.some(
    (edit) => edit.kind === 'insert-message' && edit.before <= first.index && !takenIn.has(edit.before),
  );
}

/** Counts the steps of messages that stood above all earlier summaries. */
function stepsAbove(view: FoldView, earlier: readonly PlacedSummary[], dropped: readonly Message[]): number {
  const end = Math.min(...earlier.map(({ before }) => before));
  const before = earlier.length === 0 ? [] : dropped.filter(({ index }) => index < end);
  return summarySteps(view.conversation, before, view.recallTool).length;
}

/** Returns the index of the first message that a summary tells of. */
function fromOf(earlier: readonly PlacedSummary[], dropped: readonly Message[]): number {
  return Math.min(dropped[0]?.index ?? Number.POSITIVE_INFINITY, ...earlier.map(({ before }) => before));
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

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

type WrittenAhead =
  /** The summary, and the dropped messages that it does not cover. */
  | { readonly body: string; readonly rest: readonly Message[] }
  /** Why there is no summary although one was to be written. */
  | { readonly body: undefined; readonly problem: string | undefined };

function writtenAhead({ ready, notReady }: FoldView, dropped: readonly Message[]): WrittenAhead {
  if (!ready) return { body: undefined, problem: notReady?.() };
  const rest = dropped.filter(({ index }) => index < ready.from || index >= ready.upTo);
  const covered = dropped.length - rest.length;
  if (covered * 2 >= ready.upTo - ready.from) return { body: ready.body, rest };
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
  return { by: ahead.rest.length === 0 ? 'summarizer' : 'both', problem: undefined };
}
