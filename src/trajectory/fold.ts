/**
 * Makes one summary: asks the summarizer, checks its answer, and uses the local summarizer if the answer cannot be used. Never rejects. No I/O
 * except by the summarizer.
 */
import { entryLines, textBudgetOf, wantedTokens, type EntrySizes } from '../outline/entry-lines.ts';
import { extract } from '../outline/extract.ts';
import { levelName, maxRatio, ratioFor, subgoalLength } from '../outline/levels.ts';
import { looksFailed, type Summarizer, type SummaryRequest } from '../outline/summarizer.ts';
import { compressionOf, type Compression, type SummaryBy } from '../receipts/compression.ts';
import { stepsOf, summaryStepsOf, entryTokens, subgoalTokens, type ContextMeasure } from './view.ts';
import type { PendingWork, TrajectorySettings } from './plan.ts';
import { coverOf, letterOf, type Summary, type TrajectoryState } from './state.ts';

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
  const steps = work.of.flatMap(stepsOf);
  const before = tokensBefore(work, measure);
  const isShort = work.kind === 'summarize' && work.of[0].actions.length < subgoalLength.min;
  const target = isShort ? undefined : ratioFor(settings.ratio, steps);
  const sizes = { before, wanted: wantedTokens(before, target), head: entryTokens(skeleton, measure) };
  const words = isShort ? localWords(steps, sizes, skeleton, measure, 'merge') : await wordsOf();
  const tokensAfter = entryTokens({ ...skeleton, text: words.text }, measure);
  const compression = compressionOf({
    id: skeleton.id,
    level: levelName(skeleton.level),
    tokensBefore: before,
    tokensAfter,
    target,
    by: words.by,
    problem: words.problem,
  });
  return { summary: { ...skeleton, text: words.text, tokens: tokensAfter }, compression };

  async function wordsOf(): Promise<SummaryWords> {
    const { summarizer, timeoutMs } = options;
    const room = textBudgetOf(sizes);
    const request = { earlier: [], known: [], budget: { aim: room, max: room }, count: measure.count };
    const local = (): SummaryWords => {
      // Summaries contain little but names, for which the lines themselves are best.
      const quoted =
        work.kind === 'level-up'
          ? undefined
          : extract({ ...request, steps: summaryStepsOf(work.of[0], false) });
      const said = localWords(steps, sizes, { ...skeleton, text: quoted ?? '' }, measure, 'extractive');
      const isSmaller = entryTokens({ ...skeleton, text: said.text }, measure) < before;
      return isSmaller ? said : localWords(steps, sizes, skeleton, measure, 'extractive');
    };
    if (summarizer === undefined) return local();
    const goal = work.kind === 'summarize' ? work.of[0].goal : '';
    const guidance = guidanceFor(levelName(skeleton.level), state.goal, goal);
    const given = work.of.flatMap((entry) => summaryStepsOf(entry, true));
    const answer = await answerOf(summarizer, { ...request, steps: given, guidance }, timeoutMs);
    return checked(answer, steps, sizes, skeleton, measure, local);
  }
}

type SummaryWords = { readonly text: string; readonly by: SummaryBy; readonly problem: string | undefined };

function checked(
  answer: SummarizerAnswer,
  steps: readonly string[],
  sizes: EntrySizes,
  skeleton: SummaryHead,
  measure: ContextMeasure,
  local: () => SummaryWords,
): SummaryWords {
  if ('problem' in answer) return { ...local(), ...answer };
  const { text } = answer;
  const tokens = entryTokens({ ...skeleton, text }, measure);
  if (tokens >= sizes.before) {
    return { ...local(), problem: 'not smaller than the original' };
  }
  if (tokens >= sizes.before / maxRatio) return { text, by: 'summarizer', problem: undefined };
  // The text is too short to be complete: the local summarizer adds to it.
  return {
    text: localText(steps, sizes, { ...skeleton, text }, measure),
    by: 'both',
    problem: `over ${maxRatio}:1`,
  };
}

function localWords(
  steps: readonly string[],
  sizes: EntrySizes,
  skeleton: SummaryHead,
  measure: ContextMeasure,
  by: 'extractive' | 'merge',
): SummaryWords {
  return { text: localText(steps, sizes, skeleton, measure), by, problem: undefined };
}

/** Writes the steps' own lines after the text that the entry has already. */
function localText(
  steps: readonly string[],
  sizes: EntrySizes,
  begun: SummaryHead,
  measure: ContextMeasure,
): string {
  const tokensOf = (text: string) => entryTokens({ ...begun, text }, measure);
  return entryLines(steps, sizes, { begun: begun.text, tokensOf, count: measure.count });
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
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
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
