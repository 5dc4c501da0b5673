/**
 * Makes one summary: asks the summarizer, checks its answer, and uses the local summarizer if the answer cannot be used. Never
 * rejects. No I/O except by the summarizer. Also decides what is folded next.
 */
import {
  type CompressionLevel,
  type CompressionOptions,
  type Preset,
  levelName,
  maxRatio,
  ratioFor,
  roomFor,
  subgoalLength,
  compressionLevelOf,
  fullLevel,
  largestLevel,
  overviewLevel,
} from '../outline/levels.ts';
import { type OutlineNode } from '../outline/node.ts';
import { keptIn, nodeAbove, type NodeText, spellNode, titleOf } from '../outline/record.ts';
import { type Summarizer, type SummaryRequest, looksFailed } from '../outline/summarizer.ts';
import { type Compression, type SummaryBy, compressionOf } from '../receipts/receipt.ts';
import {
  type ContextMeasure,
  entryNode,
  entryText,
  entryTokens,
  guidedSteps,
  subgoalTokens,
} from './view.ts';
import {
  type Summary,
  type TrajectoryState,
  type Subgoal,
  type TrajectoryEntry,
  coverOf,
  letterOf,
  isLong,
} from './state.ts';
import { maxTimerMs } from '../checks.ts';
import { LeporelloError } from '../errors.ts';

export type FoldWork = Exclude<PendingWork, { readonly kind: 'part' }>;

export type FoldOptions = {
  readonly settings: TrajectorySettings;
  readonly measure: ContextMeasure;
  /** Undefined: only the local summarizer. */
  readonly summarizer: Summarizer | undefined;
  /** Deadline of the summarizer, in milliseconds. */
  readonly timeoutMs: number;
};

type UnstoredSummary = Omit<Summary, 'memory'>;
type SummaryHead = Omit<UnstoredSummary, 'tokens'>;

/** Makes a summary with fewer tokens than its original. */
export async function fold(
  work: FoldWork,
  state: TrajectoryState,
  options: FoldOptions,
): Promise<{ readonly summary: UnstoredSummary; readonly compression: Compression }> {
  const { measure, settings } = options;
  const skeleton = skeletonOf(work, state);
  const node = nodeFor(work);
  const before = tokensBefore(work, measure);
  const isShort = work.kind === 'summarize' && work.of[0].actions.length < subgoalLength.min;
  const target = isShort ? undefined : ratioFor(settings, work.of.map(textOf));
  const children = node.children.length;
  const room = roomFor(settings, { before, head: entryTokens(skeleton, measure), target, children });
  const words = isShort ? { ...localWords(), by: 'merge' as const } : await wordsOf();
  const summary = { ...skeleton, ...words.made };
  const tokensAfter = entryTokens(summary, measure);
  const compression = compressionOf({
    id: skeleton.id,
    level: levelName(skeleton.level),
    tokensBefore: before,
    tokensAfter,
    target,
    by: words.by,
    problem: words.problem,
    kept: keptIn(node, entryText(summary)),
  });
  return { summary: { ...summary, tokens: tokensAfter }, compression };

  async function wordsOf(): Promise<SummaryWords> {
    const { summarizer, timeoutMs } = options;
    if (summarizer === undefined) return localWords();
    const budget = Math.max(1, room - entryTokens(skeleton, measure));
    const goal = work.kind === 'summarize' ? work.of[0].goal : '';
    const request = {
      steps: work.of.flatMap(guidedSteps),
      earlier: [],
      known: [],
      budget: { aim: budget, max: budget },
      count: measure.count,
      guidance: guidanceFor(levelName(skeleton.level), state.goal, goal),
    };
    const answer = await answerOf(summarizer, request, timeoutMs);
    if ('problem' in answer) return { ...localWords(), ...answer };
    const made = { title: titleOf(node, maxTitle), text: answer.text };
    const tokens = entryTokens({ ...skeleton, ...made }, measure);
    if (tokens >= before) return { ...localWords(), problem: 'not smaller than the original' };
    if (tokens >= before / maxRatio) return { made, by: 'summarizer', problem: undefined };
    // The text is too short to be complete: the local summarizer adds to it.
    const both = localWords(answer.text);
    return { ...both, by: 'both', problem: `over ${maxRatio}:1` };
  }

  /**
   * Writes the node in its own words, after the text that the summary has already. The shortest words may still be longer than the original, such as
   * one word of many rare signs; then the head has to do, which names the ids.
   */
  function localWords(heading = ''): SummaryWords {
    const madeOf = ({ title, body }: NodeText) => ({
      title,
      text: [heading, body].filter((part) => part !== '').join('\n'),
    });
    const tokensOf = (text: NodeText) => entryTokens({ ...skeleton, ...madeOf(text) }, measure);
    const spelled = spellNode(node, { room, tokensOf, count: measure.count, mark: '> ' });
    const forms = [spelled, { ...spelled, body: '' }, { title: '', body: '' }];
    const shorter = forms.find((form) => tokensOf(form) < before) ?? spelled;
    return { made: madeOf(shorter), by: 'extractive', problem: undefined };
  }
}

type SummaryWords = {
  readonly made: { readonly title: string; readonly text: string };
  readonly by: SummaryBy;
  readonly problem: string | undefined;
};

/** UTF-16 units of the title above a summarizer's text. */
const maxTitle = 240;

function nodeFor(work: FoldWork): OutlineNode {
  return work.kind === 'summarize' ? entryNode(work.of[0]) : nodeAbove(work.of.map(entryNode));
}

function textOf(entry: TrajectoryEntry): string {
  return entry.kind === 'summary'
    ? entry.text
    : entry.actions.map(({ action, observation }) => `${action} ${observation}`).join('\n');
}

type SummarizerAnswer = { readonly text: string } | { readonly problem: string };

/** Returns the summarizer's text, or why it cannot be used. Reasons contain no content. */
async function answerOf(
  summarizer: Summarizer,
  request: SummaryRequest,
  timeoutMs: number,
): Promise<SummarizerAnswer> {
  const deadline = new AbortController();
  const { signal } = deadline;
  const late = new Promise<SummarizerAnswer>((resolve) => {
    signal.addEventListener('abort', () => resolve({ problem: 'too late' }));
  });
  const timer = setTimeout(() => deadline.abort(), Math.min(timeoutMs, maxTimerMs));
  try {
    return await Promise.race([said(), late]);
  } finally {
    clearTimeout(timer);
  }

  async function said(): Promise<SummarizerAnswer> {
    try {
      const answer: unknown = await summarizer.summarize(request, signal);
      if (answer === undefined) return { problem: 'empty' };
      if (typeof answer !== 'string') return { problem: 'no text' };
      const text = answer.trim();
      if (text === '') return { problem: 'empty' };
      return looksFailed(text) ? { problem: 'an error or a refusal, no summary' } : { text };
    } catch {
      return { problem: 'rejected' };
    }
  }
}

function skeletonOf(work: FoldWork, state: TrajectoryState): SummaryHead {
  const covers = coverOf(work.of);
  if (work.kind === 'summarize') {
    const { id, goal, outcome } = work.of[0];
    const named = outcome === undefined ? { goal } : { goal, outcome };
    return { kind: 'summary', level: 1, id, ...named, text: '', covers };
  }
  const letter = letterOf(work.level);
  const id = `${letter}${state.counts[letter] + 1}`;
  return { kind: 'summary', level: work.level, id, goal: '', text: '', covers };
}

function tokensBefore(work: FoldWork, measure: ContextMeasure): number {
  return work.kind === 'summarize'
    ? subgoalTokens(work.of[0], measure)
    : work.of.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Writes the guidance for a summarizer: what the steps are and what the summary is for. `task` and `goal` are the agent's own words. */
function guidanceFor(level: string, task: string, goal: string): string {
  const what =
    level === 'subgoal'
      ? `the actions an agent took${goal === '' ? '' : ` for the sub-goal ${JSON.stringify(goal)}`}, each with what came of it`
      : `summaries of earlier work, oldest first, which together are one ${level}`;
  return [
    `The steps are ${what}.${task === '' ? '' : ` The task: ${JSON.stringify(task)}.`}`,
    'Write what the agent must still know of them: what was found, decided, changed, and what failed and why;',
    'paths, names, numbers, commands and errors word for word; requirements word for word.',
    'Keep the ids (such as a12, s3) of steps whose details may be needed again. No introduction, no advice.',
  ].join(' ');
}

// Decisions: what a trajectory folds next, as data, so that it can be tested without folding; and its settings. Pure.

/** The next thing to fold. */
type PendingWork =
  /** A finished sub-goal becomes a summary. */
  | { readonly kind: 'summarize'; readonly of: readonly [Subgoal] }
  /** Summaries become one summary of the next level. */
  | { readonly kind: 'level-up'; readonly of: readonly Summary[]; readonly level: number }
  /** The oldest actions of the open sub-goal become a finished part of it. */
  | { readonly kind: 'part'; readonly length: number };

/** Says what has too many tokens: the whole context, or the finished sub-goals that are shown in full. */
export type Pressure = { readonly context: boolean; readonly waiting: boolean };

/** Returns what to fold next, if anything. */
export function nextWork(
  state: TrajectoryState,
  settings: TrajectorySettings,
  pressure: Pressure,
): PendingWork | undefined {
  if (isLong(state)) return { kind: 'part', length: subgoalLength.max };
  const { entries, counts } = state;
  const oldest = entries.find(isSubgoal);
  const waiting: PendingWork | undefined = oldest && { kind: 'summarize', of: [oldest] };
  const isDue = pressure.waiting && (pressure.context || counts.a >= settings.minActions);
  if (waiting && isDue) return waiting;
  const summaries = entries.filter((entry) => entry.kind === 'summary');
  if (!pressure.context) {
    return settings.levels === 'always' ? levelUp(fullLevel([summaries], overviewLevel, 1)) : undefined;
  }
  // The open sub-goal must not displace everything before it.
  const part = halfOpen(state);
  if (part && openTokens(state) > settings.budget / 2) return part;
  const full = levelUp(fullLevel([summaries], Infinity, 0));
  return full ?? waiting ?? levelUp(largestLevel([summaries])) ?? part;
}

/** Returns the older half of the open sub-goal. */
function halfOpen({ open }: TrajectoryState): PendingWork | undefined {
  const length = Math.floor((open?.actions.length ?? 0) / 2);
  return length > 0 ? { kind: 'part', length } : undefined;
}

function openTokens({ open }: TrajectoryState): number {
  return open?.actions.reduce((sum, { cost }) => sum + cost.action + cost.observation, 0) ?? 0;
}

function levelUp(of: readonly Summary[] | undefined): PendingWork | undefined {
  return of && { kind: 'level-up', of, level: Math.max(...of.map(({ level }) => level)) + 1 };
}

function isSubgoal(entry: TrajectoryEntry): entry is Subgoal {
  return entry.kind === 'subgoal';
}

/** Settings of a trajectory. */
export type HierarchyOptions = CompressionOptions & {
  /** Default `production`. Other options override it. */
  readonly preset?: Preset | undefined;
  /** Maximum tokens of `context()`. At least 1,000; default 16,000. */
  readonly budgetTokens?: number | undefined;
  /** Share of the budget, 0 to 0.6, for the newest finished sub-goals in full: recently read facts are likely to be used next. */
  readonly newestShare?: number | undefined;
};

export type TrajectorySettings = CompressionLevel & { readonly budget: number; readonly newest: number };

const newestBy: Readonly<Record<Preset, number>> = {
  production: 0.5,
  debugging: 0.5,
  'long-horizon': 0.25,
  cost: 0,
};

/** Returns the settings. Throws `bad-config` for options out of range. */
export function settingsFrom(options: HierarchyOptions): TrajectorySettings {
  const { preset = 'production', budgetTokens: budget = 16_000 } = options;
  const level = compressionLevelOf(preset, options, "The trajectory's");
  const { newestShare: newest = newestBy[preset] } = options;
  if (!(budget >= 1_000)) throw bad(`budgetTokens ${budget} is too small: use at least 1000 tokens`);
  if (!(newest >= 0 && newest <= 0.6)) throw bad(`newestShare ${newest} is out of range: use 0 to 0.6`);
  return { ...level, budget, newest };
}

function bad(what: string): LeporelloError {
  return new LeporelloError('bad-config', `The trajectory's ${what}.`);
}
