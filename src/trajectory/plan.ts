/** Decides what a trajectory folds next, as data, so that it can be tested without folding; and checks its settings. Pure. */
import { LeporelloError } from '../errors.ts';
import {
  compressionLevelOf,
  fullLevel,
  largestLevel,
  overviewLevel,
  subgoalLength,
  type CompressionLevel,
  type Preset,
} from '../outline/levels.ts';
import { isLong, type Subgoal, type Summary, type TrajectoryEntry, type TrajectoryState } from './state.ts';

/** The next thing to fold. */
export type PendingWork =
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
export type HierarchyOptions = {
  /** Default `production`. Other options override it. */
  readonly preset?: Preset | undefined;
  /** Tokens before for one token after, 1.5 to 15, on each level; `adaptive`: from 15 for repetitive text to 5 for varied text. */
  readonly ratio?: number | 'adaptive' | undefined;
  /** Whether ten sub-goals become a phase, and five phases an overview, always, or only if the budget needs it. */
  readonly levels?: 'always' | 'as-needed' | undefined;
  /** Maximum tokens of `context()`. At least 1,000; default 16,000. */
  readonly budgetTokens?: number | undefined;
  /** Share of the budget, 0 to 0.6, for the newest finished sub-goals in full: recently read facts are likely to be used next. */
  readonly newestShare?: number | undefined;
  /** Tasks with fewer actions are not folded as long as they are under the budget. Default 20. */
  readonly minActions?: number | undefined;
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
  const hardness = compressionLevelOf(preset, options, "The trajectory's");
  const { newestShare: newest = newestBy[preset] } = options;
  if (!(budget >= 1_000)) throw bad(`budgetTokens ${budget} is too small: use at least 1000 tokens`);
  if (!(newest >= 0 && newest <= 0.6)) throw bad(`newestShare ${newest} is out of range: use 0 to 0.6`);
  return { ...hardness, budget, newest };
}

function bad(what: string): LeporelloError {
  return new LeporelloError('bad-config', `The trajectory's ${what}.`);
}
