/** What is to be folded next, if anything: data, so that it can be tested without folding. Pure. */
import { fullLevel, largestLevel, overviewLevel, subgoalLength } from '../outline/levels.ts';
import type { Settings } from './settings.ts';
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
    return settings.levels === 'always' ? levelUp(fullLevel([summaries], overviewLevel, 1)) : undefined;
  }
  // What is done now must not squeeze out all that was done before.
  const part = halfOpen(state);
  if (part && openTokens(state) > settings.budget / 2) return part;
  const full = levelUp(fullLevel([summaries], Infinity, 0));
  return full ?? waiting ?? levelUp(largestLevel([summaries])) ?? part;
}

/** All but the newest action of the open sub-goal, the older half first. */
function halfOpen({ open }: TrajectoryState): Work | undefined {
  const length = Math.floor((open?.actions.length ?? 0) / 2);
  return length > 0 ? { kind: 'part', length } : undefined;
}

function openTokens({ open }: TrajectoryState): number {
  return open?.actions.reduce((sum, { cost }) => sum + cost.action + cost.observation, 0) ?? 0;
}

function levelUp(of: readonly Summary[] | undefined): Work | undefined {
  return of && { kind: 'level-up', of, level: Math.max(...of.map(({ level }) => level)) + 1 };
}

function isSubgoal(entry: Entry): entry is Subgoal {
  return entry.kind === 'subgoal';
}
