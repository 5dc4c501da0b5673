/**
 * Makes one summary: asks the summarizer, checks what it says, and takes the local one's words where that will not do. Never rejects.
 * No I/O but what the summarizer does.
 */
import { looksFailed } from '../outline/refusal.ts';
import { type Compression, compressionOf, type SummaryBy } from '../receipts/compression.ts';
import { extract } from '../outline/extractive.ts';
import { entryLines, type EntrySizes, roomOf, wantedTokens } from '../outline/entry-words.ts';
import { hardestRatio, levelName, subgoalLength } from '../outline/levels.ts';
import { ratioFor } from '../outline/ratio.ts';
import type { Summarizer, SummaryRequest } from '../outline/summarizer.ts';
import { guidanceFor } from './guidance.ts';
import { stepsOf, summaryStepsOf } from './layout.ts';
import type { Work } from './plan.ts';
import type { Settings } from './settings.ts';
import { coverOf, letterOf, type Summary, type TrajectoryState } from './state.ts';
import { entryTokens, type Measure, subgoalTokens } from './view.ts';

export type FoldWork = Exclude<Work, { readonly kind: 'part' }>;

export type FoldOptions = {
  readonly settings: Settings;
  readonly measure: Measure;
  /** Undefined: the local one alone. */
  readonly summarizer: Summarizer | undefined;
  /** Milliseconds the summarizer has. */
  readonly timeoutMs: number;
};

type Unkept = Omit<Summary, 'memory'>;
type Skeleton = Omit<Unkept, 'tokens'>;

/** Always fewer tokens than what it stands for. */
export async function fold(
  work: FoldWork,
  state: TrajectoryState,
  options: FoldOptions,
): Promise<{ readonly summary: Unkept; readonly compression: Compression }> {
  const { measure, settings } = options;
  const skeleton = skeletonOf(work, state);
  const steps = work.of.flatMap(stepsOf);
  const before = tokensBefore(work, measure);
  const isShort = work.kind === 'summarize' && work.of[0].actions.length < subgoalLength.shortest;
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

  async function wordsOf(): Promise<Words> {
    const { summarizer, timeoutMs } = options;
    const room = roomOf(sizes);
    const request = { earlier: [], known: [], budget: { aim: room, most: room }, count: measure.count };
    const local = (): Words => {
      // Of what was summarised already there is little but names left, which lines tell best.
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
    const told = work.of.flatMap((entry) => summaryStepsOf(entry, true));
    const answer = await answerOf(summarizer, { ...request, steps: told, guidance }, timeoutMs);
    return checked(answer, steps, sizes, skeleton, measure, local);
  }
}

type Words = { readonly text: string; readonly by: SummaryBy; readonly problem: string | undefined };

function checked(
  answer: Answer,
  steps: readonly string[],
  sizes: EntrySizes,
  skeleton: Skeleton,
  measure: Measure,
  local: () => Words,
): Words {
  if ('problem' in answer) return { ...local(), ...answer };
  const { text } = answer;
  const tokens = entryTokens({ ...skeleton, text }, measure);
  if (tokens >= sizes.before) {
    return { ...local(), problem: 'not smaller than the original' };
  }
  if (tokens >= sizes.before / hardestRatio) return { text, by: 'summarizer', problem: undefined };
  // Too short to have said it all: the local one says on.
  return {
    text: localText(steps, sizes, { ...skeleton, text }, measure),
    by: 'both',
    problem: `over ${hardestRatio}:1`,
  };
}

function localWords(
  steps: readonly string[],
  sizes: EntrySizes,
  skeleton: Skeleton,
  measure: Measure,
  by: 'extractive' | 'merge',
): Words {
  return { text: localText(steps, sizes, skeleton, measure), by, problem: undefined };
}

/** The steps' own words, behind what the entry says already. */
function localText(steps: readonly string[], sizes: EntrySizes, begun: Skeleton, measure: Measure): string {
  const tokensOf = (text: string) => entryTokens({ ...begun, text }, measure);
  return entryLines(steps, sizes, { begun: begun.text, tokensOf, count: measure.count });
}

type Answer = { readonly text: string } | { readonly problem: string };

/** What the summarizer says, or why that cannot be a summary. Content stays out of the reasons. */
async function answerOf(summarizer: Summarizer, request: SummaryRequest, timeoutMs: number): Promise<Answer> {
  const deadline = new AbortController();
  const { signal } = deadline;
  const late = new Promise<Answer>((resolve) => {
    signal.addEventListener('abort', () => resolve({ problem: 'too late' }));
  });
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
  try {
    return await Promise.race([said(), late]);
  } finally {
    clearTimeout(timer);
  }

  async function said(): Promise<Answer> {
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

function skeletonOf(work: FoldWork, state: TrajectoryState): Skeleton {
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

function tokensBefore(work: FoldWork, measure: Measure): number {
  return work.kind === 'summarize'
    ? subgoalTokens(work.of[0], measure)
    : work.of.reduce((sum, { tokens }) => sum + tokens, 0);
}
