/** What is to be folded next, if anything: data, so that it can be tested without folding. Pure. */
import { fanoutOf, newestOf, overviewLevel, type Settings, subgoalLength } from './settings.ts';
import { type Entry, isLong, type Subgoal, type Summary, type TrajectoryState } from './state.ts';

export type Work =
  /** A finished sub-goal becomes a summary. */
  | { readonly kind: 'summarize'; readonly of: readonly [Subgoal] }
  /** Summaries become one of a higher level. */
  | { readonly kind: 'level-up'; readonly of: readonly Summary[]; readonly level: number }
  /** The oldest actions of the open sub-goal become a finished part of it. */
  | { readonly kind: 'part'; readonly length: number };

/** What has too many tokens, so that everything that helps is to be done: the context, or the finished sub-goals that stand as they are. */
export type Pressure = { readonly context: boolean; readonly waiting: boolean };

export function nextWork(state: TrajectoryState, settings: Settings, pressure: Pressure): Work | undefined {
  if (isLong(state)) return { kind: 'part', length: subgoalLength.longest };
  const { entries, counts } = state;
  const oldest = entries.find(isSubgoal);
  const waiting: Work | undefined = oldest && { kind: 'summarize', of: [oldest] };
  const isDue = pressure.waiting && (pressure.context || counts.a >= settings.minActions);
  if (waiting && isDue) return waiting;
  const summaries = entries.filter((entry) => entry.kind === 'summary');
  if (!pressure.context) {
    return settings.levels === 'always' ? fullLevel(summaries, overviewLevel, 1) : undefined;
  }
  // What is done now must not squeeze out all that was done before.
  const part = halfOpen(state);
  if (part && openTokens(state) > settings.budget / 2) return part;
  const full = fullLevel(summaries, Infinity, 0);
  return full ?? waiting ?? largestLevel(summaries) ?? oldestTwo(summaries) ?? part;
}

/** The oldest of a level that has enough of them, the lowest level first. */
function fullLevel(summaries: readonly Summary[], below: number, keep: 0 | 1): Work | undefined {
  for (const run of runsOf(summaries).toReversed()) {
    const level = run[0]!.level;
    if (level >= below) continue;
    const fanout = fanoutOf(level);
    if (run.length >= fanout + keep * newestOf(level)) return levelUp(run.slice(0, fanout));
  }
  return undefined;
}

/** Fewer than make a level, because the budget needs it: where the most tokens are. */
function largestLevel(summaries: readonly Summary[]): Work | undefined {
  const runs = runsOf(summaries)
    .map((run) => run.slice(0, Math.max(run.length - newestOf(run[0]!.level), 2)))
    .filter(({ length }) => length >= 2);
  const largest = runs.toSorted((a, b) => tokensOf(b) - tokensOf(a))[0];
  return largest && levelUp(largest.slice(0, fanoutOf(largest[0]!.level)));
}

/** The last resort among summaries: each level has one. */
function oldestTwo(summaries: readonly Summary[]): Work | undefined {
  return summaries.length >= 2 ? levelUp(summaries.slice(0, 2)) : undefined;
}

/** All but the newest action of the open sub-goal, the older half first. */
function halfOpen({ open }: TrajectoryState): Work | undefined {
  const length = Math.floor((open?.actions.length ?? 0) / 2);
  return length > 0 ? { kind: 'part', length } : undefined;
}

function openTokens({ open }: TrajectoryState): number {
  return open?.actions.reduce((sum, { cost }) => sum + cost.action + cost.observation, 0) ?? 0;
}

function levelUp(of: readonly Summary[]): Work {
  return { kind: 'level-up', of, level: Math.max(...of.map(({ level }) => level)) + 1 };
}

/** Neighbours of one level, oldest first. */
function runsOf(summaries: readonly Summary[]): readonly (readonly Summary[])[] {
  const runs: Summary[][] = [];
  for (const summary of summaries) {
    const run = runs.at(-1);
    if (run?.[0]?.level === summary.level) run.push(summary);
    else runs.push([summary]);
  }
  return runs;
}

function tokensOf(run: readonly Summary[]): number {
  return run.reduce((sum, { tokens }) => sum + tokens, 0);
}

function isSubgoal(entry: Entry): entry is Subgoal {
  return entry.kind === 'subgoal';
}
